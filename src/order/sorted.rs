//! The common part of all orders that sort: the lock, and a strict Empty.
//!
//! Items come into the partition only from the shards, or when they were shown, and leave it, all under its lock. So
//! whoever has the lock, finds nothing ready in the partition, and then finds the shards [empty](Shards::is_empty) at one instant,
//! knows that nothing was ready at that instant.

use super::partition::Partition;
use super::{Dequeued, Next, Registry, Sequence, Shown, Source, Visit};
use crate::raw::{Entry, Intake, Shards, Stored};
use crate::sync::{lock, planted, Mutex, MutexGuard};
use crate::wait::DueTimer;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// Items in an order that a sequence keeps.
pub(crate) struct Sorted<T, M, S, R> {
    partition: CachePadded<Mutex<Partition<T, M, S>>>,
    registry: R,
    shards: Arc<Shards<Stored<T, M>>>,
    minds_leaving: bool,
}

impl<T, M: Copy, S: Sequence<T, M>, R: Registry<T, M>> Sorted<T, M, S, R> {
    /// Makes the source of a queue with these shards.
    pub(crate) fn new(
        sequence: S,
        registry: R,
        shards: &Arc<Shards<Stored<T, M>>>,
        due_timer: &Arc<DueTimer>,
    ) -> Self {
        let minds_leaving = sequence.minds_leaving();
        let intake = Intake::new(Arc::clone(shards));
        let partition = Partition::new(sequence, intake, Arc::clone(due_timer));
        Self {
            partition: CachePadded::new(Mutex::new(partition)),
            registry,
            shards: Arc::clone(shards),
            minds_leaving,
        }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Partition<T, M, S>> {
        lock(&self.partition)
    }

    /// Shows the sequence, with what the shards have, and plans what is due earlier by what was done to it.
    pub(crate) fn with<B>(&self, look: impl FnOnce(&mut S) -> B) -> B {
        let mut partition = self.lock();
        partition.take_in();
        let result = look(&mut partition.sequence);
        partition.plan_if_earlier();
        result
    }

    #[inline]
    fn next(&self, for_good: bool) -> Next<Dequeued<T, M>> {
        let mut partition = self.lock();
        loop {
            if partition.take_in() {
                return Next::Due;
            }
            if let Some(given) = partition.sequence.next(for_good) {
                return Next::Item(given);
            }
            if planted!("sorted.looks-nowhere") || self.shards.is_empty() {
                return self.leave_shards(partition);
            }
        }
    }

    /// Gives back the memory of shards that are empty.
    #[cold]
    fn leave_shards<I>(&self, mut partition: MutexGuard<'_, Partition<T, M, S>>) -> Next<I> {
        partition.leave_shards();
        drop(partition);
        self.shards.vacate_all();
        Next::Nothing
    }

    /// Takes the next item, and tells the registry of what is gone.
    #[inline]
    fn take_next(&self, for_good: bool) -> Next<Entry<Stored<T, M>>> {
        self.next(for_good).map(|Dequeued { entry, gone }| {
            if gone > 0 {
                self.registry.unregister(entry.item.meta, gone);
            }
            entry
        })
    }
}

impl<T, M, S, R> Source<T, M> for Sorted<T, M, S, R>
where
    T: Send,
    M: Copy + Send,
    S: Sequence<T, M> + Send,
    R: Registry<T, M>,
{
    const SORTS: bool = true;
    type Registry = R;

    fn registry(&self) -> &R {
        &self.registry
    }

    fn leave(&self, meta: M) -> usize {
        let ready = if self.minds_leaving {
            self.lock().sequence.leave(meta)
        } else {
            0
        };
        self.registry.unregister(meta, 1);
        ready
    }

    #[inline]
    fn take(&self) -> Next<Entry<Stored<T, M>>> {
        self.take_next(false)
    }

    #[inline]
    fn pop(&self) -> (Next<Entry<Stored<T, M>>>, usize) {
        let next = self.take_next(!self.minds_leaving);
        match &next {
            Next::Item(entry) if self.minds_leaving => {
                let ready = self.leave(entry.item.meta);
                (next, ready)
            }
            _ => (next, 0),
        }
    }

    fn take_in(&self) -> bool {
        self.lock().take_in()
    }

    fn counts(&self) -> (usize, usize) {
        let partition = self.lock();
        (partition.sequence.ready(), partition.sequence.waiting())
    }

    fn oldest(&self) -> Option<u64> {
        let (mut visit, mut least) = (self.begin_visit(), None);
        while self.lock().sequence.look_at_times(&mut visit, &mut least) {}
        self.end_visit();
        least
    }

    fn begin_visit(&self) -> Visit {
        self.lock().sequence.begin_visit()
    }

    fn show(&self, visit: &mut Visit, into: &mut Vec<Shown<T, M>>) -> bool {
        self.lock().sequence.show(visit, into)
    }

    fn put_back(&self, visit: &mut Visit, shown: &mut Vec<Shown<T, M>>) {
        let mut partition = self.lock();
        while let Some(shown) = shown.pop() {
            partition.sequence.put_back(visit, shown);
        }
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
        partition.sequence.ready() + partition.sequence.waiting() + partition.sequence.shown() == 0
    }

    fn arrange(&self, now: u64) -> usize {
        self.lock().arrange(now)
    }

    fn advance(&self, now: u64) -> usize {
        self.lock().advance(now)
    }
}
