//! The common part of all sorting orders: the lock, and a linearizable Empty.
//!
//! Items enter the partition only from the shards, or when they are put back after a visit, and leave it; all under
//! its lock. So a thread that holds the lock, finds nothing ready in the partition, and then finds the shards
//! [empty](Shards::is_empty) at one instant knows that nothing was ready at that instant. One intake does not show that: it
//! stops where something was returned.
//!
//! # Partitions
//!
//! If the last item of a handle is the next one for it ([`Sequence::ANOTHER`]), handles need no common order. The first pop that
//! has to wait for the lock makes partitions beside the first one, each with a [share](crate::raw::Endpoint::share) of the
//! shards. A handle takes from the partition of its own shard, then from the others, one lock at a time. What comes first for all, the
//! returned items, stays in the first partition, and so does what comes last: items that went to the tail, dead letters that are
//! pushed again, and those that were there before.
//!
//! A thread that has looked into one partition after another has not seen that nothing was ready: an item may have become
//! ready in the first one while the last one was looked at. It then takes all locks, in the order of the shares, and looks
//! again: as above with all partitions for one.
//!
//! # No consumer takes ahead
//!
//! A pop takes one turn. A handle that took several under one lock, and kept them for its next pops, would hold the lock less
//! often, but other consumers would get later items of the same key before the kept ones, and each kept item would wait for
//! that handle. If others could take kept items back, each pop would visit all handles; a priority queue that did not would
//! deliver a kept item although a better one was visible before. What needs no lock is done without it.

use super::partition::Partition;
use super::{Dequeued, Due, Registry, Sequence, Shown, Source, Ticket};
use crate::raw::{Choice, Endpoint, Entry, OnceBox, Shards, Stored, SHARES};
use crate::sync::{lock, planted, try_lock, AtomicBool, Mutex, MutexGuard, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::{array, iter};

type Locked<T, M, S> = CachePadded<Mutex<Partition<T, M, S>>>;
type Guard<'a, T, M, S> = MutexGuard<'a, Partition<T, M, S>>;

/// The source of a sorting order: partitions under locks, and the registry.
pub(crate) struct Sorted<T, M, S, R> {
    /// Takes in the items of all shards, or of the common one if there are others.
    first: Locked<T, M, S>,
    others: OnceBox<[Locked<T, M, S>; SHARES]>,
    registry: R,
    shards: Arc<Shards<Stored<T, M>>>,
    tracks_removal: bool,
    /// Whether there may be [returned](Sequence::has_returned) items in the first partition.
    has_returned: AtomicBool,
}

/// All partitions, locked.
struct All<'a, T, M, S> {
    first: Guard<'a, T, M, S>,
    others: Option<[Guard<'a, T, M, S>; SHARES]>,
}

/// The progress of a visit to one partition after the other.
pub(crate) struct Visit<V> {
    of_present: V,
    /// The share of the present partition.
    share: usize,
    is_over: bool,
}

impl<V> Visit<V> {
    /// Begins with the first partition.
    pub(super) fn new(of_first: V) -> Self {
        Self {
            of_present: of_first,
            share: 0,
            is_over: false,
        }
    }
}

impl<'a, T, M, S> All<'a, T, M, S> {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Guard<'a, T, M, S>> {
        iter::once(&mut self.first).chain(self.others.iter_mut().flatten())
    }
}

impl<T, M: Copy, S: Sequence<T, M>, R: Registry<T, M>> Sorted<T, M, S, R> {
    /// Creates the source of a queue with these shards.
    pub(crate) fn new(sequence: S, registry: R, shards: &Arc<Shards<Stored<T, M>>>) -> Self {
        Self {
            tracks_removal: sequence.tracks_removal(),
            first: Partition::locked(sequence, shards, None),
            others: OnceBox::default(),
            registry,
            shards: Arc::clone(shards),
            has_returned: AtomicBool::new(false),
        }
    }

    /// The partitions beside the first one; exact for a thread that has locked any.
    #[inline]
    fn others(&self) -> Option<&[Locked<T, M, S>; SHARES]> {
        S::ANOTHER.and_then(|_| self.others.get())
    }

    /// All partitions, by share.
    fn each(&self) -> impl Iterator<Item = &Locked<T, M, S>> {
        iter::once(&self.first).chain(self.others().into_iter().flatten())
    }

    /// The partition of a share.
    fn of(&self, share: usize) -> &Locked<T, M, S> {
        let other = share.checked_sub(1).zip(self.others());
        other.map_or(&self.first, |(other, others)| &others[other])
    }

    /// Locks the partition where a pop looks first.
    #[inline(always)] // the pop of an order
    fn lock_own(&self, by: &Endpoint<Stored<T, M>>) -> Guard<'_, T, M, S> {
        let Some(another) = S::ANOTHER else {
            return lock(&self.first);
        };
        match self.others.get() {
            None => try_lock(&self.first).unwrap_or_else(|| self.divide(another)),
            Some(_) if self.returns_some() => lock(&self.first),
            Some(_) => lock(self.of(by.share())),
        }
    }

    /// Makes the other partitions, and locks the first one.
    #[cold]
    fn divide(&self, another: fn() -> S) -> Guard<'_, T, M, S> {
        let mut first = lock(&self.first);
        self.others.get_or_add(|| {
            first.narrow();
            let of = |share| Partition::locked(another(), &self.shards, Some(share));
            array::from_fn(|other| of(1 + other))
        });
        first
    }

    #[cfg(test)]
    pub(super) fn divide_now(&self) {
        drop(S::ANOTHER.map(|another| self.divide(another)));
    }

    /// Locks all partitions, always in this order.
    fn lock_all(&self) -> All<'_, T, M, S> {
        let first = lock(&self.first);
        let others = self.others();
        let others = others.map(|others| array::from_fn(|other| lock(&others[other])));
        All { first, others }
    }

    /// Calls `f` with the first sequence after an intake from its shards.
    pub(crate) fn with<B>(&self, f: impl FnOnce(&mut S) -> B) -> B {
        self.with_one(&self.first, f)
    }

    fn with_one<B>(&self, one: &Locked<T, M, S>, f: impl FnOnce(&mut S) -> B) -> B {
        let mut partition = lock(one);
        partition.take_in_slowly();
        let result = f(&mut partition.sequence);
        self.note_returned(&partition);
        result
    }

    /// Notes under the lock of the first partition whether returned items come before those of all others.
    #[inline]
    fn note_returned(&self, partition: &Partition<T, M, S>) {
        if S::ANOTHER.is_none() {
            return;
        }
        // ORDERING: Relaxed; a hint, which decides about the order alone.
        let (noted, has) = (
            self.has_returned.load(Ordering::Relaxed),
            partition.sequence.has_returned(),
        );
        if noted != has && partition.is_first() {
            self.has_returned.store(has, Ordering::Relaxed);
        }
    }

    /// Whether there may be returned items.
    #[inline(always)] // the pop of an order
    fn returns_some(&self) -> bool {
        // ORDERING: Relaxed; as in `note_returned`.
        self.has_returned.load(Ordering::Relaxed) || self.shards.has_returned()
    }

    /// Takes the next item of a partition, after an intake from its shards.
    #[inline(always)] // the pop of an order
    fn next(
        &self,
        partition: &mut Partition<T, M, S>,
        for_good: bool,
        number: &mut u64,
    ) -> Option<Dequeued<T, M>> {
        partition.take_in();
        let next = partition.sequence.next(for_good)?;
        self.note_returned(partition);
        partition.taken += 1;
        *number = partition.taken;
        Some(next)
    }

    /// Takes an item wherever there is one; nothing is ready in this partition. If nothing is ready at all, releases the memory
    /// of the shards.
    #[cold]
    #[inline(never)]
    fn search(
        &self,
        partition: Guard<'_, T, M, S>,
        share: usize,
        for_good: bool,
        number: &mut u64,
    ) -> Option<Dequeued<T, M>> {
        let mut next = |partition: &mut Guard<'_, T, M, S>| self.next(partition, for_good, number);
        let mut all = if let Some(others) = self.others() {
            drop(partition);
            let (before, after) = (&others[..share - 1], &others[share..]);
            let mut each = after.iter().chain(before).chain([&self.first]);
            if let Some(found) = each.find_map(|one| next(&mut lock(one))) {
                return Some(found);
            }
            if planted!("sorted.looks-one-by-one") && self.shards.is_empty() {
                return None;
            }
            let mut all = self.lock_all();
            if let Some(found) = all.iter_mut().find_map(&mut next) {
                return Some(found);
            }
            all
        } else {
            All {
                first: partition,
                others: None,
            }
        };
        while !planted!("sorted.looks-nowhere") && !self.shards.is_empty() {
            if let Some(found) = all.iter_mut().find_map(&mut next) {
                return Some(found);
            }
        }
        all.iter_mut()
            .for_each(|partition| partition.leave_shards());
        drop(all);
        self.shards.vacate_all();
        None
    }

    /// Continues a visit by a step that tells whether there may be more in its partition; tells whether there is in any.
    fn step(
        &self,
        visit: &mut Visit<S::Visit>,
        step: impl FnOnce(&mut Partition<T, M, S>, &mut S::Visit) -> bool,
    ) -> bool {
        let mut partition = lock(self.of(visit.share));
        if visit.is_over {
            partition.sequence.end_visit();
            drop(partition);
            visit.share += 1;
            partition = lock(self.of(visit.share));
            // Where there are several, no item waits for others.
            visit.of_present = partition.sequence.begin_visit(true);
        }
        visit.is_over = !step(&mut partition, &mut visit.of_present);
        !visit.is_over || self.others().is_some() && visit.share < SHARES
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
    type Visit = Visit<S::Visit>;
    type Position = S::Position;

    fn registry(&self) -> &R {
        &self.registry
    }

    fn leave(&self, meta: M, for_good: bool) -> usize {
        let ready = if self.tracks_removal {
            lock(&self.first).sequence.leave(meta)
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
    fn take(
        &self,
        by: &Endpoint<Stored<T, M>>,
        for_good: bool,
        number: &mut u64,
    ) -> Option<Entry<Stored<T, M>>> {
        let mut partition = self.lock_own(by);
        let Dequeued { entry, gone } = match self.next(&mut partition, for_good, number) {
            Some(next) => {
                drop(partition);
                next
            }
            None => self.search(partition, by.share(), for_good, number)?,
        };
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
        S::ANOTHER.is_some() && !self.returns_some()
    }

    fn take_in(&self) {
        self.each().for_each(|one| self.with_one(one, |_| ()));
    }

    fn restore(&self, entries: Vec<Entry<Stored<T, M>>>) {
        self.with(|sequence| entries.into_iter().for_each(|entry| sequence.arrive(entry)));
    }

    /// Into any partition, as if another handle had pushed them.
    fn merge(&self, due: Vec<Due<Entry<Stored<T, M>>>>) {
        let time = due.first().map_or(0, |first| first.due);
        let share = usize::try_from(time % SHARES as u64).unwrap_or(0);
        let mut partition = lock(self.of(share));
        partition.merge(due);
        self.note_returned(&partition);
    }

    fn cancel(&self, ticket: Ticket) -> Option<Entry<Stored<T, M>>> {
        self.with(|sequence| sequence.cancel(ticket))
    }

    fn counts(&self) -> (usize, usize) {
        self.each().fold((0, 0), |(ready, waiting), one| {
            let sequence = &lock(one).sequence;
            (ready + sequence.ready(), waiting + sequence.waiting())
        })
    }

    fn ready_until(&self, priority: u16, most: usize) -> Option<usize> {
        let of = |one| self.with_one(one, |sequence| sequence.ready_until(priority, most));
        Some(self.each().map(of).sum())
    }

    fn retain_empty(&self, group_of: fn(&T) -> u16, groups: &mut Vec<u16>) {
        self.with(|sequence| sequence.retain_empty(group_of, groups));
    }

    fn oldest(&self) -> Option<u64> {
        let (mut visit, mut least) = (self.begin_visit(false), None);
        while self.step(&mut visit, |partition, visit| {
            partition.sequence.scan_times(visit, &mut least)
        }) {}
        self.end_visit(&visit);
        least
    }

    fn take_old(&self, until: u64, most: usize, into: &mut Vec<Dequeued<T, M>>) -> Option<u64> {
        let least = self
            .each()
            .filter_map(|one| self.with_one(one, |sequence| sequence.take_old(until, most, into)));
        least.min()
    }

    fn begin_visit(&self, all: bool) -> Visit<S::Visit> {
        Visit::new(lock(&self.first).sequence.begin_visit(all))
    }

    fn show(
        &self,
        visit: &mut Visit<S::Visit>,
        into: &mut Vec<Shown<T, M, S::Position>>,
        applies: impl FnOnce() -> bool,
    ) -> bool {
        let mut goes_on = true;
        let more = self.step(visit, |partition, visit| {
            goes_on = applies();
            let more = goes_on && partition.sequence.show(visit, into);
            partition.shown += into.len();
            more
        });
        goes_on && more
    }

    fn put_back(
        &self,
        visit: &mut Visit<S::Visit>,
        shown: &mut Vec<Shown<T, M, S::Position>>,
        gone: Choice,
    ) -> Vec<Entry<Stored<T, M>>> {
        let mut removed = Vec::new();
        let mut partition = lock(self.of(visit.share));
        partition.shown -= shown.len();
        while let Some(last) = shown.pop() {
            if gone.has(shown.len()) {
                removed.push(last);
            } else {
                partition.sequence.put_back(&mut visit.of_present, last);
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

    fn end_visit(&self, visit: &Visit<S::Visit>) {
        lock(self.of(visit.share)).sequence.end_visit();
    }

    fn is_empty(&self) -> bool {
        let mut all = self.lock_all();
        let ready: usize = all.iter_mut().map(|it| it.sequence.ready()).sum();
        ready == 0 && self.shards.is_empty()
    }

    fn has_none(&self) -> bool {
        let mut all = self.lock_all();
        let each = all.iter_mut();
        let items = each.map(|it| it.sequence.ready() + it.sequence.waiting() + it.shown);
        items.sum::<usize>() == 0
    }
}
