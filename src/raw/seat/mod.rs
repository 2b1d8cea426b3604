//! A seat: what one handle has at the shards of its queue, and the steps of its transactions.
//!
//! The seat keeps the state of the transaction, so that a forgotten transaction is found and ended at the next use
//! of the handle, or when it is dropped. No step runs user code, but the destructors of items that have left.

mod end;
mod put;
mod take;

pub(crate) use put::Stager;
pub(crate) use take::Purpose;

use super::consumer::Consumer;
use super::desk::Desk;
use super::hold::Hold;
use super::lanes::Lanes;
use super::producer::Producer;
use super::shard::Shard;
use std::ptr::NonNull;
use std::sync::Arc;

/// One handle's part in a queue.
pub(crate) struct Seat<T> {
    /// Without a shard until the first push.
    producer: Producer<T>,
    lease: Option<Lease<T>>,
    pub(super) consumer: Consumer<T>,
    pub(super) hold: Hold<T>,
    /// Whether what is held was committed, and only waits to be taken out.
    taken: bool,
    /// The item that is looked at.
    pub(super) peeked: Option<Box<Hold<T>>>,
    desk: NonNull<Desk>,
    desk_number: usize,
    pub(super) lanes: Arc<Lanes<T>>,
}

/// The lease of a shard.
struct Lease<T> {
    shard: NonNull<Shard<T>>,
    number: usize,
}

// SAFETY: a seat owns what it points to or shares it as `Lanes` does; items are of type T. It has
// no tie to the thread that made it.
unsafe impl<T: Send> Send for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
        let desk_number = lanes.desks().lease();
        let desk: &Desk = lanes.desks().get(desk_number);
        Self {
            producer: Producer::new(),
            lease: None,
            consumer: Consumer::new(desk_number),
            hold: Hold::new(),
            taken: false,
            peeked: None,
            desk: NonNull::from(desk),
            desk_number,
            lanes,
        }
    }

    #[inline]
    pub(super) fn desk<'a>(&self) -> &'a Desk {
        // SAFETY: desks are type-stable, and the seat keeps its queue alive.
        unsafe { self.desk.as_ref() }
    }

    /// The leased shard.
    #[inline]
    fn shard<'a>(&self) -> Option<&'a Shard<T>> {
        // SAFETY: shards are type-stable, and the seat keeps its queue alive.
        self.lease
            .as_ref()
            .map(|lease| unsafe { lease.shard.as_ref() })
    }

    /// The number of the handle's desk.
    pub(crate) fn number(&self) -> usize {
        self.desk_number
    }

    /// Staged items.
    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.producer.staged()
    }

    /// Held items, or those left to take out after a commit.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.hold.len()
    }

    /// Whether a transaction is open, or was committed and not all of its items were taken out.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.staged() | self.held() != 0
    }

    /// Whether what is held was committed, and only waits to be taken out.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }
}
