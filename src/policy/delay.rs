//! Delayed items, until they are due.

use super::retry::Failed;
use crate::raw::{Entry, Inbox, Vacant};
use crate::sync::{try_lock, weak, AtomicUsize, Mutex, Ordering};
use crate::time::NEVER;
use std::cmp::{Ordering as Order, Reverse};
use std::collections::BinaryHeap;

/// A heap of up to this capacity is not shrunk.
const SMALL: usize = 64;

/// The delayed items of one queue.
pub(crate) struct Delayed<T> {
    inbox: Inbox<Failed<T>>,
    heap: Mutex<DelayHeap<T>>,
    /// The number of items in the inbox, in the heap, and due but not yet at the head.
    count: AtomicUsize,
}

/// Delayed items by due time.
struct DelayHeap<T> {
    items: BinaryHeap<Reverse<Due<T>>>,
    /// How many items ever arrived, so that those with the same due time keep their order.
    arrivals: u64,
}

struct Due<T> {
    at: u64,
    arrival: u64,
    entry: Entry<T>,
}

impl<T> Delayed<T> {
    pub(super) fn new() -> Self {
        Self {
            inbox: Inbox::new(),
            heap: Mutex::new(DelayHeap {
                items: BinaryHeap::new(),
                arrivals: 0,
            }),
            count: AtomicUsize::new(0),
        }
    }

    /// Adds an item. Lock-free, and allocates nothing. It is counted until it is at the head, so that it is never unseen.
    pub(crate) fn put(&self, envelope: Vacant<Failed<T>>, failed: Failed<T>) {
        // ORDERING: Relaxed; a thread that sees the end of the transaction that held the item sees the count.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inbox.put(envelope, failed);
    }

    /// The number of delayed items.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: Acquire; pairs with `delayed.release`: a thread that does not find an item counted here finds it at
        // the head.
        self.count.load(weak!("delayed.count", Acquire))
    }

    /// Records that `items` of the due items are at the head.
    pub(crate) fn count_released(&self, items: usize) {
        // ORDERING: Release; pairs with `delayed.count`.
        self.count
            .fetch_sub(items, weak!("delayed.release", Release));
    }

    /// Takes out the due items, in order. `None`: another thread is doing so.
    ///
    /// `begin` runs before the items are inspected, `end` with the due time of the next one, both while this
    /// thread is the only one to take items out.
    pub(crate) fn take_due(
        &self,
        now: u64,
        begin: impl FnOnce(),
        end: impl FnOnce(u64),
    ) -> Option<Vec<Entry<T>>> {
        // A caller never waits for another one, which may be stalled.
        let mut heap = try_lock(&self.heap)?;
        // Before the inbox is emptied: an item that is put in later lowers the due time again. Only one thread clears it at a
        // time, so none erases the plan of another one.
        begin();
        heap.take_in(self.inbox.take_all());
        let due = heap.take_due(now);
        end(heap.next());
        Some(due)
    }
}

impl<T> DelayHeap<T> {
    fn take_in(&mut self, failed: Vec<Failed<T>>) {
        for Failed { entry, due, .. } in failed {
            self.arrivals += 1;
            self.items.push(Reverse(Due {
                at: due,
                arrival: self.arrivals,
                entry,
            }));
        }
    }

    fn take_due(&mut self, now: u64) -> Vec<Entry<T>> {
        let mut due = Vec::new();
        while self.next() <= now {
            due.extend(self.items.pop().map(|Reverse(due)| due.entry));
        }
        self.shrink();
        due
    }

    /// Gives memory back when most of it is not used, and keeps twice what is: so many items have left since the heap
    /// was that large that the items which are moved now cost little.
    fn shrink(&mut self) {
        let len = self.items.len();
        if self.items.capacity() > SMALL.max(4 * len) {
            self.items.shrink_to(SMALL.max(2 * len));
        }
    }

    /// The due time of the next item.
    fn next(&self) -> u64 {
        self.items.peek().map_or(NEVER, |Reverse(due)| due.at)
    }
}

impl<T> Due<T> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.arrival)
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> Order {
        self.key().cmp(&other.key())
    }
}
