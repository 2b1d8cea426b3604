//! Delayed items, until they are due.

use super::failed::Failed;
use crate::raw::{Entry, Inbox, Vacant};
use crate::sync::{try_lock, weak, AtomicUsize, Mutex, Ordering};
use crate::time::NEVER;
use std::cmp::{self, Reverse};
use std::collections::BinaryHeap;

/// The delayed items of one queue.
pub(crate) struct Delayed<T> {
    inbox: Inbox<Failed<T>>,
    items: Mutex<DelayedItems<T>>,
    /// The number of items in the inbox, in the heap, and due but not yet at the head.
    count: AtomicUsize,
}

/// Delayed items.
struct DelayedItems<T> {
    /// The first one is the next to be due.
    by_due: BinaryHeap<DelayedItem<T>>,
    /// How many items ever arrived.
    arrivals: u64,
}

struct DelayedItem<T> {
    /// By due time and arrival, so that items with the same due time keep their order. The heap has the greatest one first.
    order: Reverse<(u64, u64)>,
    entry: Entry<T>,
}

impl<T> PartialEq for DelayedItem<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for DelayedItem<T> {}

impl<T> PartialOrd for DelayedItem<T> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for DelayedItem<T> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl<T> Delayed<T> {
    pub(super) fn new() -> Self {
        Self {
            inbox: Inbox::new(),
            items: Mutex::new(DelayedItems {
                by_due: BinaryHeap::new(),
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
        let mut items = try_lock(&self.items)?;
        // Before the inbox is emptied: an item that is put in later lowers the due time again. Only one thread clears it at a
        // time, so none erases the plan of another one.
        begin();
        items.take_in(self.inbox.take_all());
        let due = items.take_due(now);
        end(items.next());
        Some(due)
    }
}

impl<T> DelayedItems<T> {
    fn take_in(&mut self, failed: Vec<Failed<T>>) {
        for Failed { entry, due, .. } in failed {
            self.arrivals += 1;
            let order = Reverse((due, self.arrivals));
            self.by_due.push(DelayedItem { order, entry });
        }
    }

    fn take_due(&mut self, now: u64) -> Vec<Entry<T>> {
        let mut due = Vec::new();
        while self.next() <= now {
            due.extend(self.by_due.pop().map(|item| item.entry));
        }
        if self.by_due.len() < self.by_due.capacity() / 4 {
            self.by_due.shrink_to(2 * self.by_due.len());
        }
        due
    }

    /// The due time of the next item.
    fn next(&self) -> u64 {
        self.by_due.peek().map_or(NEVER, |item| item.order.0 .0)
    }
}
