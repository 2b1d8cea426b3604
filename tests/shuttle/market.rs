//! A queue and its ledger, and calls that are recorded in it.

use super::ledger::Ledger;
use super::{below, one_of};
use requeue::{
    Builder, ByKey, ByPriority, Fifo, Handle, Order, PopError, PushError, Queue, Unleased,
};
use shuttle::thread::{self, Thread};
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// An item that tells the consumer which drains the queue to stop.
pub(super) const POISON: u32 = u32::MAX;

pub(super) struct Market<O: Order<u32> = Fifo> {
    pub(super) queue: Queue<u32, O>,
    pub(super) ledger: Ledger,
    /// Whether keys have limits, so that waiting pushes may be refused, and the held items of a transaction make no
    /// room for its staged ones.
    pub(super) has_limits: bool,
}

impl<O: Kind> Market<O> {
    pub(super) fn new(room: Option<usize>) -> Self {
        // Half of the room for each of two keys, so that one can be at its limit while the other is not.
        let has_limits = O::HAS_KEYS && below(2) == 0;
        let limit = has_limits.then(|| room.unwrap_or(4).div_ceil(2));
        Self {
            queue: O::queue(room, limit),
            ledger: Ledger::new(room),
            has_limits,
        }
    }

    /// A queue of any size.
    pub(super) fn any() -> Arc<Self> {
        Arc::new(Self::new(one_of(&[None, Some(1), Some(2), Some(7)])))
    }

    /// Pushes one item: false if the queue is closed.
    pub(super) fn push(&self, push: impl FnOnce(u32) -> Result<(), PushError<u32>>) -> bool {
        let item = self.ledger.item();
        match push(item) {
            Ok(()) => self.ledger.accepted(&[item]),
            Err(refused) => return self.refused(refused, &item),
        }
        true
    }

    /// Pushes some items: false if the queue is closed.
    pub(super) fn push_batch(
        &self,
        count: usize,
        push: impl FnOnce(Vec<u32>) -> Result<usize, PushError<Vec<u32>>>,
    ) -> bool {
        let items = self.ledger.items(count);
        match push(items.clone()) {
            Ok(pushed) => assert_eq!(pushed, count),
            Err(refused) => return self.refused(refused, &items),
        }
        self.ledger.accepted(&items);
        true
    }

    /// A refused push returned all items: false if the queue is closed.
    pub(super) fn refused<I: PartialEq + std::fmt::Debug>(
        &self,
        refused: PushError<I>,
        items: &I,
    ) -> bool {
        let full = refused.is_full();
        assert!(full || self.queue.is_closed());
        assert_eq!(refused.into_inner(), *items);
        full
    }

    /// Pops one item.
    pub(super) fn pop(&self, pop: impl FnOnce() -> Result<u32, PopError>) -> Result<u32, PopError> {
        self.ledger.vacate(1);
        let result = pop();
        match result {
            Ok(POISON) => {}
            Ok(item) => self.ledger.received(&[item]),
            Err(_) => self.ledger.occupy(1),
        }
        result
    }

    /// Pops up to `max` items, and returns how many of them were poison.
    pub(super) fn pop_batch(
        &self,
        max: usize,
        pop: impl FnOnce(&mut Vec<u32>) -> usize,
    ) -> (usize, usize) {
        let mut items = Vec::new();
        self.ledger.vacate(max);
        let count = pop(&mut items);
        assert_eq!(count, items.len());
        self.ledger.occupy(max - count);
        items.retain(|&item| item != POISON);
        self.ledger.received(&items);
        (count, count - items.len())
    }

    /// Pushes an item that is not in the ledger.
    pub(super) fn poison(&self, handle: &mut Handle<u32, O>) {
        while let Err(refused) = handle.push_blocking(POISON) {
            assert!(self.has_limits && refused.is_full());
            thread::yield_now();
        }
        self.ledger.occupy(1);
    }

    /// Checks a closed queue that is no longer used.
    pub(super) fn check_closed(&self) {
        assert_eq!(self.queue.pop(), Err(PopError::Closed));
        assert_eq!(self.queue.len(), 0);
        self.ledger.check();
        self.ledger.check();
    }

    /// Checks that all room is free, in a queue that is no longer used.
    pub(super) fn check_room(&self) {
        assert_eq!(self.queue.pop(), Err(PopError::Empty));
        self.ledger.check();
        let Some(room) = self.queue.capacity() else {
            return;
        };
        let mut handle = self.queue.handle();
        let items = 0..u32::try_from(room).unwrap();
        for item in items {
            assert!(handle.push(item).is_ok(), "room for {item} of {room}");
        }
        assert!(handle.push(0).unwrap_err().is_full());
    }
}

fn with<O: Order<u32>>(builder: Builder<u32, O>, room: Option<usize>) -> Builder<u32, O> {
    match room {
        Some(room) => builder.capacity(room),
        None => builder,
    }
}

/// An order, and a constructor of its queues.
pub(super) trait Kind: Order<u32> + Unleased + 'static {
    /// Whether there are two keys, which may have limits.
    const HAS_KEYS: bool = false;

    fn queue(room: Option<usize>, limit: Option<usize>) -> Queue<u32, Self>;
}

impl Kind for Fifo {
    fn queue(room: Option<usize>, _: Option<usize>) -> Queue<u32> {
        with(Queue::builder(), room).build()
    }
}

impl Kind for ByPriority {
    fn queue(room: Option<usize>, _: Option<usize>) -> Queue<u32, Self> {
        with(Queue::builder().by_priority(), room).build()
    }
}

impl Kind for ByKey<u32, u32> {
    const HAS_KEYS: bool = true;

    fn queue(room: Option<usize>, limit: Option<usize>) -> Queue<u32, Self> {
        let builder = with(Queue::builder().fair_by(|item| item % 2), room);
        match limit {
            Some(limit) => builder.key_capacity(limit).build(),
            None => builder.build(),
        }
    }
}

/// Calls a function that is generic over the order with one of them.
macro_rules! of_any_order {
    ($call:ident $(, $order:ty)*) => {
        match crate::below(4) {
            0 => $call::<$($order,)* requeue::ByKey<u32, u32>>(),
            1 => $call::<$($order,)* requeue::ByPriority>(),
            _ => $call::<$($order,)* requeue::Fifo>(),
        }
    };
}

/// The same for a function that is generic over two orders.
macro_rules! of_any_two_orders {
    ($call:ident) => {
        match crate::below(3) {
            0 => crate::market::of_any_order!($call, requeue::ByKey<u32, u32>),
            1 => crate::market::of_any_order!($call, requeue::ByPriority),
            _ => crate::market::of_any_order!($call, requeue::Fifo),
        }
    };
}

pub(super) use {of_any_order, of_any_two_orders};

/// Polls a future a few times. If it is still pending, drops it, or forgets it.
pub(super) fn poll_a_little<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    let output = poll_until_tired(&mut future);
    if output.is_none() && below(3) == 0 {
        mem::forget(future);
    }
    output
}

/// Polls a future a few times.
pub(super) fn poll_until_tired<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Alarm(thread::current())));
    for _ in 0..=below(4) {
        let poll = pin!(&mut future).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(output) = poll {
            return Some(output);
        }
        thread::yield_now();
    }
    None
}

struct Alarm(Thread);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
