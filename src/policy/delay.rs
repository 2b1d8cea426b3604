//! Delayed items, until they are due: failed ones that are to be retried, and scheduled ones.
//!
//! | an item comes by | which has | because |
//! |---|---|---|
//! | the inbox, if it failed | no lock | an abort waits for nobody |
//! | the arrivals, if it was pushed with a time | a lock that is held for a few steps | pushes do not wait for each other's place in the heap |
//!
//! Both are moved into a heap by those who take out what is due, and by a push if the arrivals are many. An item is
//! *counted* before it comes, and until it is ready. The time of the due timer is never after that of any item: a push
//! plans its time under the lock of the arrivals, unless an earlier arrival has planned; whoever clears the plan then takes in
//! all arrivals, and plans the next time.

use super::due_heap::DueHeap;
pub(crate) use super::due_heap::Scheduled;
use super::failed::Failed;
use crate::order::{Due, Ticket};
use crate::raw::{Entry, Inbox, OnceBox, Vacant};
use crate::sync::{lock, step, try_lock, weak, AtomicUsize, Mutex, Ordering};
use crate::time::NEVER;
use std::mem;

mod visit;

pub(crate) use visit::Shown;

/// How many arrivals are many.
const MANY: usize = 64;

/// The delayed items of one queue.
pub(crate) struct Delayed<T> {
    inbox: Inbox<Failed<T>>,
    /// Made for the first item with a time.
    arrivals: OnceBox<Mutex<Arrivals<T>>>,
    /// Locked by whoever makes due items ready. The others do not wait for it: it may be stalled.
    releasing: Mutex<()>,
    /// Made for the first item.
    heap: Mutex<Option<Box<DueHeap<T>>>>,
    /// The number of items in the inbox, in the arrivals, in the heap, and due but not yet ready.
    count: AtomicUsize,
}

/// Scheduled items that are not in the heap yet.
struct Arrivals<T> {
    items: Vec<Scheduled<T>>,
    /// The least of their times.
    first: u64,
}

/// Due items: those that failed, and the scheduled ones.
pub(crate) type DueItems<T> = [Vec<Due<Entry<T>>>; 2];

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            first: NEVER,
        }
    }
}

impl<T> Delayed<T> {
    pub(super) fn new() -> Self {
        Self {
            inbox: Inbox::new(),
            arrivals: OnceBox::default(),
            releasing: Mutex::new(()),
            heap: Mutex::new(None),
            count: AtomicUsize::new(0),
        }
    }

    /// Adds a failed item. Lock-free, and allocates nothing.
    pub(crate) fn put(&self, envelope: Vacant<Failed<T>>, failed: Failed<T>) {
        self.count_coming(1);
        self.inbox.put(envelope, failed);
    }

    /// Counts items that are about to come, so that they are never unseen.
    pub(crate) fn count_coming(&self, items: usize) {
        // ORDERING: Relaxed; a thread that sees the end of the transaction that held or staged them sees the count.
        self.count.fetch_add(items, Ordering::Relaxed);
    }

    /// The number of delayed items.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: Acquire; pairs with `delayed.release`: a thread that does not find an item counted here finds it at
        // the head.
        self.count.load(weak!("delayed.count", Acquire))
    }

    /// Records that `items` of the delayed ones are ready, or gone.
    pub(crate) fn count_released(&self, items: usize) {
        // ORDERING: Release; pairs with `delayed.count`.
        self.count
            .fetch_sub(items, weak!("delayed.release", Release));
    }

    /// Adds scheduled items, which were counted. `plan` is called with the first of their times before anybody takes them
    /// out, unless an earlier one was planned for others that are still here. Returns whether it was called.
    pub(crate) fn schedule(
        &self,
        items: impl Iterator<Item = Scheduled<T>>,
        plan: impl FnOnce(u64),
    ) -> bool {
        let mut arrivals = lock(self.arrivals.get_or_add(Mutex::default));
        let before = arrivals.first;
        for item in items {
            arrivals.first = arrivals.first.min(item.due);
            arrivals.items.push(item);
        }
        let earlier = arrivals.first < before;
        if earlier {
            step!("delayed.plans-nothing", plan(arrivals.first));
        }
        let are_many = arrivals.items.len() >= MANY;
        drop(arrivals);
        if are_many {
            if let Some(mut heap) = try_lock(&self.heap) {
                self.take_in(&mut heap);
            }
        }
        earlier
    }

    /// Takes out the due items, and passes them to `put`, which makes them ready. Returns `false` if another thread is doing
    /// so.
    ///
    /// `begin` runs before the items are inspected, `end` with the due time of the next one, both while this
    /// thread is the only one to take items out.
    pub(crate) fn release(
        &self,
        now: u64,
        begin: impl FnOnce(),
        put: impl FnOnce(DueItems<T>),
        end: impl FnOnce(u64),
    ) -> bool {
        let Some(_releasing) = try_lock(&self.releasing) else {
            return false;
        };
        let mut heap = lock(&self.heap);
        // Before the inbox is emptied: an item that is put in later lowers the due time again. Only one thread clears it at a
        // time, so none erases the plan of another one.
        begin();
        let heap = self.take_in_all(&mut heap);
        let mut due = DueItems::default();
        while let Some((item, is_scheduled)) = heap.pop_due(now) {
            due[usize::from(is_scheduled)].push(item);
        }
        // Under the lock: whoever looks for one of them by its ticket finds it here, or where it is ready.
        put(due);
        end(heap.next());
        true
    }

    /// Moves the arrivals, and what is in the inbox, into the heap.
    fn take_in_all<'h>(&self, heap: &'h mut Option<Box<DueHeap<T>>>) -> &'h mut DueHeap<T> {
        let failed = self.inbox.take_all();
        let heap = self.take_in(heap);
        for Failed { entry, due, .. } in failed {
            heap.insert(due, None, entry);
        }
        heap
    }

    /// Moves the arrivals into the heap.
    fn take_in<'h>(&self, heap: &'h mut Option<Box<DueHeap<T>>>) -> &'h mut DueHeap<T> {
        let heap = heap.get_or_insert_with(Box::default);
        let mut items = mem::take(&mut heap.spare);
        if let Some(arrivals) = self.arrivals.get() {
            let mut arrivals = lock(arrivals);
            arrivals.first = NEVER;
            mem::swap(&mut arrivals.items, &mut items);
        }
        for Scheduled { due, ticket, entry } in items.drain(..) {
            heap.insert(due, Some(ticket), entry);
        }
        items.shrink_to(MANY);
        heap.spare = items;
        heap
    }

    /// Calls `f` with the heap, if an item was ever scheduled.
    fn with_scheduled<R>(&self, f: impl FnOnce(&mut DueHeap<T>) -> R) -> Option<R> {
        self.arrivals.get()?;
        let mut heap = lock(&self.heap);
        Some(f(self.take_in(&mut heap)))
    }

    /// The time of the next scheduled item; [`NEVER`] if there is none.
    pub(crate) fn next_scheduled(&self) -> u64 {
        let next = self.with_scheduled(|heap| heap.next_scheduled());
        next.flatten().unwrap_or(NEVER)
    }

    /// Removes the scheduled item with a ticket. It stays counted.
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<Entry<T>> {
        self.with_scheduled(|heap| heap.remove(ticket))?
    }

    /// Changes the scheduled item with a ticket by `change`; returns `false` if there is none.
    pub(crate) fn change(&self, ticket: Ticket, change: impl FnOnce(&mut Entry<T>)) -> bool {
        let found = self.with_scheduled(|heap| heap.get_mut(ticket).map(change));
        found.flatten().is_some()
    }
}
