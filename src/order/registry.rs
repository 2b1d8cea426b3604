//! The registry of an order: what it records of items outside its sequence.

use crate::time::Time;
use std::fmt::Debug;
use std::time::Instant;

/// What an order records of all its items, from before they are pushed until they are removed. Used
/// concurrently by many threads.
pub(crate) trait Registry<T, M> {
    /// The options of a push.
    type Place: Place;

    /// Returns the metadata of an item that is about to be pushed to this place; `None` if a limit of the order is
    /// reached.
    ///
    /// May run user code.
    fn register(&self, item: &T, place: Self::Place) -> Option<M>;

    /// Same as [`Registry::register`], for an item that had this metadata before.
    fn register_again(&self, item: &T, _meta: M) -> Option<M> {
        self.register(item, Self::Place::default())
    }

    /// Unregisters `count` items with this metadata that were removed, or never pushed. May run destructors of
    /// user code, whose panics are caught.
    fn unregister(&self, _meta: M, _count: u32) {}

    /// Whether the order has limits of its own, besides the capacity of the queue.
    fn is_limited(&self) -> bool {
        false
    }

    /// Whether the limits of the order permit these items. May run user code.
    fn fits(&self, _items: &[T]) -> bool {
        true
    }

    /// The time from which on an item with this metadata could be taken; 0 if it is not scheduled.
    fn due_of(&self, _meta: M) -> u64 {
        0
    }

    /// Whether there are scheduled items, so that the order depends on the time.
    fn is_scheduled(&self) -> bool {
        false
    }
}

/// The options of a push, such as a priority: where the order puts the item.
pub(crate) trait Place: Copy + Debug + Default + Send + Sync {
    /// The place of the nth item of a batch that is pushed to this one.
    fn nth(self, _nth: usize) -> Self {
        self
    }

    /// The place that a store has kept, with its due time by the clock of the queue.
    fn of_store(_place: StorePlace, _due: Option<u64>) -> Self {
        Self::default()
    }
}

impl Place for () {}

/// Where an item goes, or the first of a batch, in an order with options of a push: for crates that keep queues elsewhere too.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StorePlace {
    /// The number of its ticket.
    pub number: u64,
    /// The first is 0.
    pub priority: u16,
    /// The time before which it is not delivered.
    pub due: Option<Instant>,
}

impl StorePlace {
    #[inline]
    pub(crate) fn place<P: Place>(self, time: &Time) -> P {
        P::of_store(self, self.due.map(|due| time.nanos(due)))
    }
}
