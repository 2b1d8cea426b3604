//! A pool of consumers for pops without a handle.
//!
//! A thread first tries the consumer of its own number, so that threads rarely contend. If all are in
//! use it creates a temporary one: no thread waits for another.

use super::consumer::Consumer;
use super::counters::{Counters, Tally};
use super::shards::Shards;
use crate::sync::{weak, AtomicBool, UnsafeCell, SMALL};
use crossbeam_utils::CachePadded;

const POOLED: usize = if SMALL { 1 } else { 8 };

/// The consumers for pops without a handle.
pub(super) struct ConsumerPool<T> {
    pool: [CachePadded<PooledConsumer<T>>; POOLED],
    /// Counts the pops of temporary consumers.
    shared: Counters,
}

struct PooledConsumer<T> {
    busy: AtomicBool,
    consumer: UnsafeCell<Consumer<T>>,
    counters: Counters,
}

// SAFETY: a consumer contains addresses of the queue's own shards, whose items are of type T.
unsafe impl<T: Send> Send for PooledConsumer<T> {}
// SAFETY: `consumer` belongs to the thread that set `busy`.
unsafe impl<T: Send> Sync for PooledConsumer<T> {}

impl<T> ConsumerPool<T> {
    pub(super) fn new() -> Self {
        Self {
            pool: std::array::from_fn(|seed| CachePadded::new(PooledConsumer::new(seed))),
            shared: Counters::default(),
        }
    }

    #[allow(clippy::modulo_one)] // of `SMALL`
    /// Pops an item; with `from_head` items that were put back without a handle come first.
    pub(super) fn pop(&self, shards: &Shards<T>, from_head: bool) -> Option<T> {
        let first = thread_number();
        for step in 0..POOLED {
            let pooled = &self.pool[(first + step) % POOLED];
            if pooled.acquire() {
                return pooled.pop(shards, from_head);
            }
        }
        let mut consumer = Consumer::new(first);
        let item = take_one(&mut consumer, shards, from_head);
        consumer.leave();
        self.shared.share_popped(usize::from(item.is_some()));
        item
    }

    /// Counts items popped by other means.
    pub(super) fn count_popped(&self, items: usize) {
        self.shared.share_popped(items);
    }

    /// Makes all consumers leave their shards.
    pub(super) fn leave(&mut self) {
        for pooled in &self.pool {
            pooled.consumer.with_mut(|consumer| {
                // SAFETY: `&mut self`: the consumer is not in use.
                unsafe { &mut *consumer }.leave();
            });
        }
    }

    pub(super) fn add_to(&self, tally: &mut Tally) {
        self.shared.add_to(tally);
        for pooled in &self.pool {
            pooled.counters.add_to(tally);
        }
    }
}

impl<T> PooledConsumer<T> {
    fn new(seed: usize) -> Self {
        Self {
            busy: AtomicBool::new(false),
            consumer: UnsafeCell::new(Consumer::new(seed)),
            counters: Counters::default(),
        }
    }

    /// Acquires the consumer unless it is in use. Returns whether it did.
    fn acquire(&self) -> bool {
        // ORDERING: Acquire; pairs with `pool.release`.
        !self.busy.swap(true, weak!("pool.acquire", Acquire))
    }

    /// Pops with the acquired consumer, and releases it.
    fn pop(&self, shards: &Shards<T>, from_head: bool) -> Option<T> {
        let item = self.consumer.with_mut(|consumer| {
            // SAFETY: `busy` was acquired, so the consumer belongs to this thread.
            take_one(unsafe { &mut *consumer }, shards, from_head)
        });
        self.counters.count_popped(usize::from(item.is_some()));
        // ORDERING: Release; pairs with `pool.acquire`.
        self.busy.store(false, weak!("pool.release", Release));
        item
    }
}

fn take_one<T>(consumer: &mut Consumer<T>, shards: &Shards<T>, from_head: bool) -> Option<T> {
    if from_head {
        consumer.go_to_head(shards);
    }
    consumer.take_one(shards)
}

/// A small number of the current thread, different from that of every other one.
fn thread_number() -> usize {
    #[cfg(any(loom, shuttle))]
    return 0;
    #[cfg(not(any(loom, shuttle)))]
    {
        use std::cell::Cell;
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        std::thread_local! {
            static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
        }
        let number = NUMBER.try_with(|number| {
            number.get().unwrap_or_else(|| {
                // ORDERING: Relaxed; only distinct numbers matter.
                let new = NEXT.fetch_add(1, Ordering::Relaxed);
                number.set(Some(new));
                new
            })
        });
        // 0: the thread-locals of the thread are already destroyed.
        number.unwrap_or(0)
    }
}
