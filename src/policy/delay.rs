//! Delayed items, until they are due.

use super::failed::Failed;
use crate::raw::{Entry, Inbox, Vacant};
use crate::sync::{try_lock, weak, AtomicUsize, Mutex, Ordering};
use crate::time::NEVER;
use std::collections::BTreeMap;

/// The delayed items of one queue.
pub(crate) struct Delayed<T> {
    inbox: Inbox<Failed<T>>,
    items: Mutex<DelayedItems<T>>,
    /// The number of items in the inbox, in the map, and due but not yet at the head.
    count: AtomicUsize,
}

/// Delayed items.
struct DelayedItems<T> {
    /// By due time and arrival, so that those with the same due time keep their order.
    by_due: BTreeMap<(u64, u64), Entry<T>>,
    /// How many items ever arrived.
    arrivals: u64,
}

impl<T> Delayed<T> {
    pub(super) fn new() -> Self {
        Self {
            inbox: Inbox::new(),
            items: Mutex::new(DelayedItems {
                by_due: BTreeMap::new(),
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
            self.by_due.insert((due, self.arrivals), entry);
        }
    }

    fn take_due(&mut self, now: u64) -> Vec<Entry<T>> {
        let mut due = Vec::new();
        while self.next() <= now {
            due.extend(self.by_due.pop_first().map(|(_, entry)| entry));
        }
        due
    }

    /// The due time of the next item.
    fn next(&self) -> u64 {
        let first = self.by_due.first_key_value();
        first.map_or(NEVER, |((due, _), _)| *due)
    }
}
