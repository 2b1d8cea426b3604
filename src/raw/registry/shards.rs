//! All shards of one queue: the injector is shard 0, those of handles follow.

use crate::raw::hold::Hold;
use crate::raw::injector::Injector;
use crate::raw::memory::drops::drop_all;
use crate::raw::memory::entry::Entry;
use crate::raw::memory::reclaim;
use crate::raw::memory::segment::{Segment, FIRST_STAMP};
use crate::raw::registry::consumer::Consumer;
use crate::raw::registry::counters::{Counters, Tally};
use crate::raw::registry::detach::Detaching;
use crate::raw::registry::holder::Holder;
use crate::raw::registry::record_pool::{RecordPool, FIRST};
use crate::raw::shard::attached::{AttachedSet, Members, SetVersion};
use crate::raw::shard::producer::Producer;
use crate::raw::shard::sink::Sink;
use crate::raw::shard::Shard;
use crate::sync::{barrier, AtomicU64, AtomicUsize, Ordering, SMALL};
use crossbeam_utils::CachePadded;
use std::iter;
use std::sync::Arc;

/// How many of the first shards are not detached when they are released, and how many counters are never retired, since
/// they are acquired again first; in the models none.
const PERMANENT: usize = if SMALL { 0 } else { FIRST };

/// Everything that the handles of a queue share.
pub(crate) struct Shards<T> {
    injector: Injector<T>,
    records: RecordPool<Shard<T>>,
    attached: Arc<AttachedSet>,
    detaching: CachePadded<Detaching>,
    handles: RecordPool<CachePadded<Counters>>,
    /// The handle whose transaction was found open last.
    last_open: AtomicUsize,
    /// Counts items popped by no handle.
    popped: Counters,
    /// Counts items that were put in without a push.
    restored: AtomicU64,
    /// The logical clock that stamps segments when they are opened.
    stamps: CachePadded<AtomicU64>,
    /// Whether items keep their times.
    timed: bool,
    /// How many items a consumer takes from a shard before it compares shards again.
    stickiness: u32,
}

impl<T> Shards<T> {
    /// A tick of the logical clock, as a difference between [ages](Self::age).
    pub(in crate::raw) const TICK: u64 = Segment::<T>::LEN as u64;

    pub(crate) fn new(timed: bool) -> Self {
        barrier::prepare();
        Self {
            injector: Injector::new(timed),
            records: RecordPool::new(PERMANENT),
            attached: Arc::new(AttachedSet::new()),
            detaching: CachePadded::default(),
            handles: RecordPool::new(PERMANENT),
            last_open: AtomicUsize::new(0),
            popped: Counters::default(),
            restored: AtomicU64::new(0),
            stamps: CachePadded::new(AtomicU64::new(FIRST_STAMP)),
            timed,
            stickiness: u32::MAX,
        }
    }

    /// Pushes without a handle, unless `admit` refuses after the push has begun.
    pub(crate) fn push(&self, item: T, since: u64, admit: impl Fn() -> bool) -> Result<(), T> {
        self.injector.push(item, since, &self.stamps, admit)
    }

    pub(in crate::raw) fn injector(&self) -> &Injector<T> {
        &self.injector
    }

    pub(in crate::raw) fn records(&self) -> &RecordPool<Shard<T>> {
        &self.records
    }

    pub(in crate::raw) fn attached(&self) -> &AttachedSet {
        &self.attached
    }

    pub(in crate::raw) fn detaching(&self) -> &Detaching {
        &self.detaching
    }

    pub(in crate::raw) fn handles(&self) -> &RecordPool<CachePadded<Counters>> {
        &self.handles
    }

    pub(in crate::raw) fn last_open(&self) -> &AtomicUsize {
        &self.last_open
    }

    pub(in crate::raw) fn stamps(&self) -> &AtomicU64 {
        &self.stamps
    }

    pub(in crate::raw) fn timed(&self) -> bool {
        self.timed
    }

    /// One more than the highest number of a shard so far.
    #[inline]
    pub(in crate::raw) fn end(&self) -> usize {
        self.records.len() + 1
    }

    /// Whether a shard is attached.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(in crate::raw) fn is_attached(&self, shard: usize) -> bool {
        shard
            .checked_sub(1)
            .map_or(true, |number| self.attached.has(number))
    }

    /// Identifies a shard for [`Shards::is_only`].
    pub(in crate::raw) fn only_flag(shard: usize) -> u64 {
        AttachedSet::only_flag(shard.wrapping_sub(1)) // no record has the number of the injector
    }

    /// Whether the shard with this [`Shards::only_flag`] is the only one that is attached.
    #[inline]
    pub(in crate::raw) fn is_only(&self, flag: u64) -> bool {
        self.injector.is_unused() && self.attached.is_only(flag)
    }

    /// The number of attached shards, which a walk visits.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.walk().count()
    }

    /// The number of handles whose counters are in use.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn handles_in_use(&self) -> usize {
        self.handles.count_in_use()
    }

    /// The version of the set of attached shards.
    #[inline]
    pub(in crate::raw) fn version(&self) -> SetVersion {
        self.attached.version()
    }

    /// The attached shards, in ascending order.
    #[inline]
    pub(in crate::raw) fn walk(&self) -> impl Iterator<Item = usize> + '_ {
        iter::once(0).chain(self.records_from(0))
    }

    /// All attached shards, beginning at `start`.
    #[inline]
    pub(in crate::raw) fn round_from(&self, start: usize) -> Round<'_> {
        Round {
            attached: &self.attached,
            walk: self.attached.from(start.saturating_sub(1)),
            injector_is_next: start == 0,
            end: usize::MAX,
            before: start,
        }
    }

    /// The first attached shard from `first` on.
    pub(in crate::raw) fn next_from(&self, first: usize) -> Option<usize> {
        match first.checked_sub(1) {
            None => Some(0),
            Some(number) => self.records_from(number).next(),
        }
    }

    /// The shards whose records are attached, from the record `number` on.
    #[inline]
    pub(in crate::raw) fn records_from(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        self.attached.from(number).map(|number| number + 1)
    }

    /// When the item at a shard's head was pushed, as [`Shard::age`] says; `None` if nothing is visible there.
    pub(in crate::raw) fn age(&self, shard: usize) -> Option<u64> {
        match shard.checked_sub(1) {
            None => Some(self.injector.age()?.saturating_mul(Self::TICK)),
            Some(number) => self.records.get(number).age(),
        }
    }

    /// How many items a consumer takes from a shard before it compares shards again.
    pub(in crate::raw) fn stickiness(&self) -> u32 {
        self.stickiness
    }

    /// Sets the [stickiness](crate::Builder::stickiness).
    pub(crate) fn with_stickiness(mut self, stickiness: u32) -> Self {
        self.stickiness = stickiness;
        self
    }

    /// Frees the memory of empty shards without an owner.
    pub(crate) fn vacate_all(&self) {
        let shards = self.attached.from(0);
        shards.for_each(|number| self.vacate(number));
    }

    /// Frees the memory of an empty shard and detaches it, if it has no owner.
    #[inline]
    pub(in crate::raw) fn vacate(&self, number: usize) {
        if self.records.is_free(number) {
            self.vacate_free(number);
        }
    }

    #[cold]
    fn vacate_free(&self, number: usize) {
        if self.is_done_with(number) || !self.records.acquire_if_free(number) {
            return;
        }
        let shard = self.records.get(number);
        // SAFETY: acquired just now.
        let producer = unsafe { shard.check_out() };
        self.give_up(number, producer);
    }

    /// Whether nothing is left to do for an idle shard without an owner, as a hint.
    fn is_done_with(&self, number: usize) -> bool {
        let shard = self.records.get(number);
        if self.records.stays(number) {
            return shard.is_vacant();
        }
        shard.is_retired() && !self.attached.see(number).has(number)
    }

    /// Acquires a shard. It may be detached: whoever publishes something in it [shows](Shard::show) it.
    pub(in crate::raw) fn acquire(&self) -> (usize, &Shard<T>) {
        let number = self.records.acquire();
        let shard = self.records.get(number);
        if shard.front().is_new() {
            shard.begin_detached(&self.attached, number);
        }
        shard.reopen();
        (number, shard)
    }

    /// Releases a shard, and frees its memory and detaches it if it is empty.
    pub(in crate::raw) fn give_up(&self, number: usize, mut producer: Producer<T>) {
        let shard = self.records.get(number);
        // First: the head of a shard that is empty by then stays at its tail, whoever detaches it.
        let detached = !self.records.stays(number) && self.detach_own(number);
        producer.vacate(shard);
        if detached {
            producer.retire(shard);
        }
        // SAFETY: the caller owns the shard until it is released.
        unsafe { shard.check_in(producer) };
        self.records.release(number);
        if !detached && !self.records.stays(number) {
            self.vacate_detached(number);
        }
    }

    /// Frees the memory of a shard that another thread has detached while its owner released it.
    #[cold]
    fn vacate_detached(&self, number: usize) {
        // ORDERING: SeqCst, between the release and the check; pairs with `detach.removed`: either the shard is seen
        // detached here, or free by the thread that detaches it.
        barrier::full("shards.released");
        if !self.attached.see(number).has(number) {
            self.vacate(number);
        }
    }

    /// The number of ready items, exact at rest.
    pub(crate) fn ready(&self) -> u64 {
        self.walk().map(|shard| self.ready_in(shard)).sum()
    }

    /// The number of ready items of one shard, exact at rest.
    pub(in crate::raw) fn ready_in(&self, shard: usize) -> u64 {
        self.backlog(shard) + self.front(shard).ready() as u64
    }

    /// The number of ready items of one shard that were never returned, exact at rest.
    fn backlog(&self, shard: usize) -> u64 {
        match shard.checked_sub(1) {
            None => self.injector.backlog(),
            Some(number) => self.records.get(number).backlog(),
        }
    }

    /// Puts items at the head of the queue, in their order, and returns their number.
    pub(crate) fn put_at_head<I>(&self, entries: I) -> usize
    where
        I: IntoIterator<Item = Entry<T>>,
        I::IntoIter: ExactSizeIterator,
    {
        let entries = entries.into_iter();
        let count = entries.len();
        if count > 0 {
            let mut hold = Hold::for_one_run(count);
            for Entry { item, delivery } in entries {
                hold.reserve(1, self.injector.front());
                // SAFETY: room was reserved for it.
                unsafe { hold.accept(item, delivery) };
            }
            self.injector.set_used();
            hold.give_back();
        }
        count
    }

    /// The handles whose transactions hold something.
    pub(crate) fn holders(&self) -> impl Iterator<Item = Holder> + '_ {
        let counters = self.handles.in_use_from(0);
        let holders = counters.map(|counters| Holder::new(counters, self.handles.get(counters)));
        holders.filter(|holder| holder.held > 0)
    }

    /// Counts items that have expired, and were moved out of the transaction with these counters.
    pub(crate) fn count_expired(&self, counters: usize, items: usize) {
        self.handles.get(counters).count_expired(items);
    }

    /// The least time of the items at the heads and of the returned ones, exact at rest; `None` if
    /// none is ready, or none has a time.
    ///
    /// This is the time of the oldest ready item if those of each shard were pushed in the order of
    /// their times.
    pub(crate) fn oldest(&self) -> Option<u64> {
        if !self.timed {
            return None;
        }
        let shards = self.attached.from(0);
        let shards = shards.filter_map(|number| self.records.get(number).oldest());
        shards.chain(self.injector.oldest()).min()
    }

    /// The number of items ever pushed, exact at rest.
    pub(crate) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        let restored = self.restored.load(Ordering::Relaxed);
        restored + self.injector.pushed() + self.records.iter().map(Shard::pushed).sum::<u64>()
    }

    /// Counts an item as pushed that does not come through a push.
    pub(crate) fn count_restored(&self) {
        // ORDERING: Relaxed; statistics.
        self.restored.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts items that were popped without a handle.
    pub(crate) fn count_popped(&self, items: usize) {
        self.popped.share_popped(items);
    }

    /// The sum of all handles' counters.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.handles
            .iter()
            .for_each(|counters| counters.add_to(&mut tally));
        self.popped.add_to(&mut tally);
        tally
    }
}

/// A walk over all attached shards, from any of them.
pub(in crate::raw) struct Round<'l> {
    attached: &'l AttachedSet,
    walk: Members<'l>,
    injector_is_next: bool,
    end: usize,
    /// If not 0, the walk continues with the shards before this one.
    before: usize,
}

impl Iterator for Round<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.injector_is_next {
            self.injector_is_next = false;
            return Some(0);
        }
        match self.walk.next() {
            Some(number) => Some(number + 1).filter(|&shard| shard < self.end),
            None if self.before > 0 => {
                self.walk = self.attached.from(0);
                self.end = std::mem::take(&mut self.before);
                Some(0)
            }
            None => None,
        }
    }
}

impl<T> Shards<T> {
    /// Unlinks the runs of empty shards: one that was used up while another one was on top of it is still linked.
    fn unlink_runs(&self) {
        for shard in self.walk() {
            self.front(shard).take(&mut None::<T>, 1);
        }
    }
}

impl<T> Drop for Shards<T> {
    /// Drops the items; the fields then free their memory.
    fn drop(&mut self) {
        let mut consumer = Consumer::new(0);
        drop_all(|| consumer.take_one(self));
        consumer.leave();
        self.unlink_runs();
        reclaim::collect();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
