//! The orders of durable queues: those of `requeue`, over entries.
//!
//! | file | contents |
//! |---|---|
//! | `leased` | adds leases to any order |
//! | `staging` | pushes in memory, with a place or without |

mod leased;
mod staging;

pub use leased::Unleased;

pub(crate) use staging::{Load, Many, One};

use crate::entry::Entry;
use crate::format::OrderTag;
use requeue::{ByKey, ByPriority, Fifo, PriorityQueue, StorePlace};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

pub(crate) const DEFAULT_PRIORITY: u16 = PriorityQueue::<()>::DEFAULT_PRIORITY;

/// The order of a [`DurableQueue`](crate::DurableQueue): an order of `requeue`. Sealed.
#[allow(private_bounds)] // sealed
pub trait Order<T>: Engine<T> {}

impl<T, O: Engine<T>> Order<T> for O {}

/// An item of a queue in memory.
pub(crate) type EntryOf<T, O> = Entry<T, <O as Engine<T>>::Key>;
/// A queue in memory.
pub(crate) type RamQueue<T, O> = requeue::Queue<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// The key of an item.
pub(crate) type KeyOf<T, O> = Arc<dyn Fn(&T) -> <O as Engine<T>>::Key + Send + Sync>;
/// Its builder.
pub(crate) type RamBuilder<T, O> = requeue::Builder<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// Its transactions.
pub(crate) type RamTx<T, O> = requeue::OwnedTransaction<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// What they took.
pub(crate) type RamTaken<T, O> = requeue::OwnedTaken<EntryOf<T, O>, <O as Engine<T>>::Ram>;

/// The priority and the due time of a push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) priority: u16,
    pub(crate) due: Option<Instant>,
}

impl Place {
    /// In memory, for the item of this number.
    pub(crate) fn numbered(self, number: u64) -> StorePlace {
        let Self { priority, due } = self;
        StorePlace {
            number,
            priority,
            due,
            ..StorePlace::default()
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self {
            priority: DEFAULT_PRIORITY,
            due: None,
        }
    }
}

/// The implementation of an [`Order`].
pub(crate) trait Engine<T>: Sized + 'static {
    /// The keys of items, `()` if they have none.
    type Key: Clone + Hash + Eq + Send + Sync + 'static;
    /// The order in memory.
    type Ram: requeue::Order<Entry<T, Self::Key>>;

    const TAG: OrderTag;

    /// The key of all items, if they have none.
    fn unkeyed() -> Option<Self::Key> {
        None
    }
}

impl<T: Send + 'static> Engine<T> for Fifo {
    type Key = ();
    type Ram = Fifo;
    const TAG: OrderTag = OrderTag::Fifo;

    fn unkeyed() -> Option<()> {
        Some(())
    }
}

impl<T: Send + 'static, K: Clone + Hash + Eq + Send + Sync + 'static> Engine<T> for ByKey<K, T> {
    type Key = K;
    type Ram = ByKey<K, Entry<T, K>>;
    const TAG: OrderTag = OrderTag::ByKey;
}

impl<T: Send + 'static> Engine<T> for ByPriority {
    type Key = ();
    type Ram = ByPriority;
    const TAG: OrderTag = OrderTag::ByPriority;

    fn unkeyed() -> Option<()> {
        Some(())
    }
}
