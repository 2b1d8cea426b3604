//! The registry of an order: what it records of items outside its sequence.

use super::Ticket;
use crate::time::Time;
use std::fmt::Debug;
use std::time::Instant;

/// What an order records of all its items, from before they are pushed until they are removed. Used
/// concurrently by many threads.
pub(crate) trait Registry<T, M> {
    /// Whether it records anything: if not, items need not be registered.
    const RECORDS: bool = true;
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

    /// The metadata of an item that has another due time. It is counted once, as before.
    fn reschedule(&self, meta: M, _due: u64) -> M {
        meta
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
    /// Whether the item, though it is staged, may replace another one with its key, or follow it. Then nothing is staged.
    pub supersedes: bool,
}

impl StorePlace {
    /// The place, and when the item is due if its time has not come.
    #[inline]
    pub(crate) fn place<P: Place>(self, time: &Time) -> (P, Terms) {
        self.place_at(self.due.and_then(|due| time.if_ahead(due)))
    }

    /// As [`StorePlace::place`], with another time.
    #[inline]
    pub(crate) fn place_at<P: Place>(self, due: Option<u64>) -> (P, Terms) {
        let terms = Terms {
            due: due.unwrap_or(0),
            ticket: Some(Ticket::of_store(self.number)),
            deadline: 0,
            supersedes: self.supersedes,
        };
        (P::of_store(self, due), terms)
    }
}

/// The ticket of a push, and its times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// When it is due, if that is later; otherwise 0.
    due: u64,
    pub(crate) ticket: Option<Ticket>,
    /// When its time to live is over, if it has one of its own: the first time at which it is not delivered any more.
    /// Otherwise 0.
    pub(crate) deadline: u64,
    pub(crate) supersedes: bool,
}

impl Terms {
    #[inline]
    pub(crate) fn when(&self) -> Option<When> {
        let due = self.due;
        let ticket = self.ticket.filter(|_| due > 0);
        ticket.map(|ticket| When { due, ticket })
    }

    /// Those of the nth item of a batch.
    pub(crate) fn nth(&self, nth: usize) -> Self {
        let ticket = self.ticket.map(|ticket| ticket.nth(nth));
        Self { ticket, ..*self }
    }
}

/// When an item is due, or the first of a batch, and its ticket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) due: u64,
    pub(crate) ticket: Ticket,
}
