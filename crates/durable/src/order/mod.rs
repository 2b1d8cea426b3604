//! The orders of durable queues: those of `requeue`, over entries.
//!
//! | file | contents |
//! |---|---|
//! | `fifo`, `fair`, `priority` | an order each |
//! | `leased` | adds leases to any of them |
//! | `staging` | pushes in memory, with a place or without |

pub(crate) mod fair;
mod fifo;
pub(crate) mod leased;
mod priority;
mod staging;

pub use leased::Unleased;

pub(crate) use priority::DEFAULT_PRIORITY;
pub(crate) use staging::Staging;

use crate::entry::Entry;
use crate::format::OrderTag;
use std::time::Instant;

/// The order of a [`DurableQueue`](crate::DurableQueue): an order of `requeue`. Sealed.
#[allow(private_bounds)] // sealed
pub trait Order<T>: Engine<T> {}

impl<T, O: Engine<T>> Order<T> for O {}

/// An item of a queue in memory.
pub(crate) type EntryOf<T, O> = Entry<T, <O as Engine<T>>::Key>;
/// A queue in memory.
pub(crate) type RamQueue<T, O> = requeue::Queue<EntryOf<T, O>, <O as Engine<T>>::Ram>;
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
    type Key: Clone + Send + Sync + 'static;
    /// The order in memory.
    type Ram: requeue::Order<Entry<T, Self::Key>>;
    /// How items are pushed in memory.
    type Staging: Staging<Entry<T, Self::Key>, Self::Ram>;
    /// What the order is made of.
    type Settings: Clone + Send + Sync + 'static;

    const TAG: OrderTag;

    fn key(settings: &Self::Settings, item: &T) -> Self::Key;

    /// The settings with limits that leave room for items with these keys.
    fn with_room<'k>(
        settings: &Self::Settings,
        _keys: impl Iterator<Item = &'k Self::Key>,
    ) -> Self::Settings {
        settings.clone()
    }

    /// A builder of the queue in memory.
    fn builder(settings: &Self::Settings) -> RamBuilder<T, Self>;
}
