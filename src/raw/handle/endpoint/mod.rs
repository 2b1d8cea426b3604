//! An endpoint: a handle's connection to the shards of its queue, and the steps of its transactions.
//!
//! The endpoint keeps the state of the transaction, so that a forgotten transaction is detected and ended at the next
//! use of the handle, or when the handle is dropped. No step runs user code, except destructors of removed items.
//! Where something must come between two steps, such as the choice of the order, or whether the queue is closed, the first
//! step announces what is under way (an item is expected, something is staged), the caller asks, and the second step ends it; a
//! guard of the caller ends it if user code panics.

mod end;
mod put;
mod take;

pub(crate) use put::Stager;
pub(in crate::raw) use take::hold_of;
pub(crate) use take::Purpose;

use crate::raw::hold::Hold;
use crate::raw::registry::intake::share_of;
use crate::raw::registry::{Consumer, Counters, Holder, Shards};
use crate::raw::shard::{Producer, Shard};
use std::ptr::NonNull;
use std::sync::Arc;

/// One handle's connection to a queue.
pub(crate) struct Endpoint<T> {
    /// Without a shard until the first push.
    pub(in crate::raw) producer: Producer<T>,
    acquired: Option<AcquiredShard<T>>,
    pub(in crate::raw) consumer: Consumer<T>,
    pub(in crate::raw) hold: Hold<T>,
    /// Holds a peeked item.
    pub(in crate::raw) peeked: Option<Box<Hold<T>>>,
    counters: NonNull<Counters>,
    handle_number: usize,
    pub(in crate::raw) shards: Arc<Shards<T>>,
}

/// The shard that a handle has acquired.
struct AcquiredShard<T> {
    shard: NonNull<Shard<T>>,
    number: usize,
}

// SAFETY: an endpoint owns what it points to or shares it as `Shards` does; items are of type T. It is
// not tied to the thread that created it.
unsafe impl<T: Send> Send for Endpoint<T> {}

impl<T> Endpoint<T> {
    pub(crate) fn new(shards: Arc<Shards<T>>) -> Self {
        let handle_number = shards.handles.acquire_for_use();
        let counters: &Counters = shards.handles.get(handle_number);
        Self {
            producer: Producer::new(),
            acquired: None,
            consumer: Consumer::new(&shards, handle_number),
            hold: Hold::new(),
            peeked: None,
            counters: NonNull::from(counters),
            handle_number,
            shards,
        }
    }

    /// The handle's counters, which the caller steps for items that it moves itself.
    #[inline]
    pub(crate) fn counters<'a>(&self) -> &'a Counters {
        // SAFETY: counters are type-stable, and the endpoint keeps its queue alive.
        unsafe { self.counters.as_ref() }
    }

    /// The acquired shard.
    #[inline]
    fn shard<'a>(&self) -> Option<&'a Shard<T>> {
        // SAFETY: shards are type-stable, and the endpoint keeps its queue alive.
        self.acquired
            .as_ref()
            .map(|acquired| unsafe { acquired.shard.as_ref() })
    }

    /// The number of the handle's counters.
    pub(crate) fn number(&self) -> usize {
        self.handle_number
    }

    /// The share of the handle's shard; without one, any but that of the common one.
    pub(crate) fn share(&self) -> usize {
        let shard = self.acquired.as_ref().map(|acquired| acquired.number);
        share_of(shard.unwrap_or(1 + self.handle_number))
    }

    /// The identity of this transaction, for other threads.
    pub(crate) fn holder(&self) -> Holder {
        self.counters().holder(self.number())
    }

    /// The number of staged items.
    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.producer.staged()
    }

    /// The number of held items, or after a commit of those not yet taken out.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.hold.len()
    }

    /// Whether a transaction is open, or was committed without all of its items being taken out.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.staged() | self.held() != 0
    }

    /// Whether the held items are committed, and still have to be taken out.
    pub(crate) fn is_taken(&self) -> bool {
        self.hold.is_committed()
    }
}
