//! The common part of all sorting orders: the lock, and a linearizable Empty.
//!
//! Items enter the partition only from the shards, or when they are put back after a visit, and leave it; all under
//! its lock. So a thread that holds the lock, finds nothing ready in the partition, and then finds the shards
//! [empty](Shards::is_empty) at one instant knows that nothing was ready at that instant. One intake does not show that: it
//! stops where something was returned.
//!
//! # No consumer takes ahead
//!
//! A pop takes one turn. A handle that took several under one lock, and kept them for its next pops, would hold the lock less
//! often, but other consumers would get later items of the same key before the kept ones, and each kept item would wait for
//! that handle. If others could take kept items back, each pop would visit all handles; a priority queue that did not would
//! deliver a kept item although a better one was visible before. What needs no lock is done without it.

use super::partition::Partition;
use super::{Dequeued, Due, Registry, Sequence, Shown, Source, Ticket};
use crate::raw::{Choice, Entry, Intake, Shards, Stored};
use crate::sync::{lock, planted, AtomicBool, Mutex, MutexGuard, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// The source of a sorting order: a partition under a lock, and the registry.
pub(crate) struct Sorted<T, M, S, R> {
    partition: CachePadded<Mutex<Partition<T, M, S>>>,
    registry: R,
    shards: Arc<Shards<Stored<T, M>>>,
    tracks_removal: bool,
    /// Whether there may be [returned](Sequence::has_returned) items in the sequence.
    has_returned: AtomicBool,
}

impl<T, M: Copy, S: Sequence<T, M>, R: Registry<T, M>> Sorted<T, M, S, R> {
    /// Creates the source of a queue with these shards.
    pub(crate) fn new(sequence: S, registry: R, shards: &Arc<Shards<Stored<T, M>>>) -> Self {
        let tracks_removal = sequence.tracks_removal();
        let intake = Intake::new(Arc::clone(shards));
        let partition = Partition::new(sequence, intake);
        Self {
            partition: CachePadded::new(Mutex::new(partition)),
            registry,
            shards: Arc::clone(shards),
            tracks_removal,
            has_returned: AtomicBool::new(false),
        }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Partition<T, M, S>> {
        lock(&self.partition)
    }

    /// Calls `f` with the sequence after an intake from the shards.
    pub(crate) fn with<B>(&self, f: impl FnOnce(&mut S) -> B) -> B {
        let mut partition = self.lock();
        partition.take_in_slowly();
        let result = f(&mut partition.sequence);
        self.note_returned(&partition);
        result
    }

    /// Notes under the lock whether an owner finds its last item behind others.
    #[inline]
    fn note_returned(&self, partition: &Partition<T, M, S>) {
        if S::LAST_FIRST {
            // ORDERING: Relaxed; a hint, which decides about the order alone.
            self.has_returned
                .store(partition.sequence.has_returned(), Ordering::Relaxed);
        }
    }

    /// Releases the memory of empty shards.
    #[cold]
    fn leave_shards(&self, mut partition: MutexGuard<'_, Partition<T, M, S>>) {
        partition.leave_shards();
        drop(partition);
        self.shards.vacate_all();
    }
}

impl<T, M, S, R> Source<T, M> for Sorted<T, M, S, R>
where
    M: Copy,
    S: Sequence<T, M>,
    R: Registry<T, M>,
{
    const SORTS: bool = true;
    type Registry = R;
    type Visit = S::Visit;
    type Position = S::Position;

    fn registry(&self) -> &R {
        &self.registry
    }

    fn leave(&self, meta: M, for_good: bool) -> usize {
        let ready = if self.tracks_removal {
            self.lock().sequence.leave(meta)
        } else {
            0
        };
        if for_good {
            self.registry.unregister(meta, 1);
        }
        ready
    }

    /// Also unregisters removed items.
    #[inline(always)] // the pop of an order
    fn take(&self, for_good: bool, number: &mut u64) -> Option<Entry<Stored<T, M>>> {
        let mut partition = self.lock();
        let Dequeued { entry, gone } = loop {
            partition.take_in();
            if let Some(dequeued) = partition.sequence.next(for_good) {
                break dequeued;
            }
            if planted!("sorted.looks-nowhere") || self.shards.is_empty() {
                self.leave_shards(partition);
                return None;
            }
        };
        self.note_returned(&partition);
        partition.taken += 1;
        *number = partition.taken;
        drop(partition);
        if gone > 0 {
            self.registry.unregister(entry.item.meta, gone);
        }
        Some(entry)
    }

    #[inline]
    fn tracks_removal(&self) -> bool {
        self.tracks_removal
    }

    #[inline(always)] // the pop of an order
    fn yields_to_owner(&self) -> bool {
        // ORDERING: Relaxed; as in `note_returned`.
        S::LAST_FIRST && !self.has_returned.load(Ordering::Relaxed) && !self.shards.has_returned()
    }

    fn take_in(&self) {
        self.with(|_| ());
    }

    fn restore(&self, entries: Vec<Entry<Stored<T, M>>>) {
        self.with(|sequence| entries.into_iter().for_each(|entry| sequence.arrive(entry)));
    }

    fn merge(&self, due: Vec<Due<Entry<Stored<T, M>>>>) {
        let mut partition = self.lock();
        partition.merge(due);
        self.note_returned(&partition);
    }

    fn cancel(&self, ticket: Ticket) -> Option<Entry<Stored<T, M>>> {
        self.with(|sequence| sequence.cancel(ticket))
    }

    fn counts(&self) -> (usize, usize) {
        let partition = self.lock();
        (partition.sequence.ready(), partition.sequence.waiting())
    }

    fn oldest(&self) -> Option<u64> {
        let (mut visit, mut least) = (self.begin_visit(), None);
        while self.lock().sequence.scan_times(&mut visit, &mut least) {}
        self.end_visit();
        least
    }

    fn take_old(&self, until: u64, most: usize, into: &mut Vec<Dequeued<T, M>>) -> Option<u64> {
        self.with(|sequence| sequence.take_old(until, most, into))
    }

    fn begin_visit(&self) -> S::Visit {
        self.lock().sequence.begin_visit()
    }

    fn begin_full_visit(&self) -> S::Visit {
        self.lock().sequence.begin_full_visit()
    }

    fn show(
        &self,
        visit: &mut S::Visit,
        into: &mut Vec<Shown<T, M, S::Position>>,
        applies: impl FnOnce() -> bool,
    ) -> bool {
        let mut partition = self.lock();
        let more = applies() && partition.sequence.show(visit, into);
        partition.shown += into.len();
        more
    }

    fn put_back(
        &self,
        visit: &mut S::Visit,
        shown: &mut Vec<Shown<T, M, S::Position>>,
        gone: Choice,
    ) -> Vec<Entry<Stored<T, M>>> {
        let mut removed = Vec::new();
        let mut partition = self.lock();
        partition.shown -= shown.len();
        while let Some(last) = shown.pop() {
            if gone.has(shown.len()) {
                removed.push(last);
            } else {
                partition.sequence.put_back(visit, last);
            }
        }
        let removed: Vec<_> = removed
            .into_iter()
            .map(|Shown { entry, position }| {
                let count = partition.sequence.remove_shown(entry.item.meta, position);
                (entry, count)
            })
            .collect();
        self.note_returned(&partition);
        drop(partition);
        let removed = removed.into_iter().rev().map(|(entry, count)| {
            self.registry.unregister(entry.item.meta, count);
            entry
        });
        removed.collect()
    }

    fn end_visit(&self) {
        self.lock().sequence.end_visit();
    }

    fn is_empty(&self) -> bool {
        let partition = self.lock();
        partition.sequence.ready() == 0 && self.shards.is_empty()
    }

    fn has_none(&self) -> bool {
        let partition = self.lock();
        partition.sequence.ready() + partition.sequence.waiting() + partition.shown == 0
    }
}
