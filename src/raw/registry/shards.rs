//! All shards of one queue: the common shard is number 0, those of handles follow.
//!
//! The common shard has no handle. Aborted items that came from no shard return there, and what is pushed without a
//! handle, under a lock: only dead letters are.

use crate::raw::hold::Hold;
use crate::raw::memory::{DeliveryMeta, Entry, Notes, NumberSet, FIRST_STAMP, MAX_ITEMS};
use crate::raw::registry::counters::{Counters, Ending, Holder, Tally};
use crate::raw::registry::record_pool::{RecordPool, FIRST};
use crate::raw::shard::{Cursor, Producer, Shard, Sink};
use crate::sync::{
    barrier, lock, planted, step, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, SMALL,
};
use crossbeam_utils::CachePadded;
use std::iter;
use std::sync::Arc;

/// How many of the first shards are not detached when they are released, and how many counters are never retired, since
/// they are acquired again first; in the models none.
const PERMANENT: usize = if SMALL { 0 } else { FIRST };

/// The number of the common shard.
pub(in crate::raw) const COMMON: usize = 0;

/// The shards of a queue, each of which has the address of the set of attached shards.
type ShardPool<T> = RecordPool<Shard<T>, Arc<NumberSet>>;

/// Everything that the handles of a queue share.
///
/// What is seldom used is between the clock, which is written for each segment, and the records, which all read: so these
/// are not on one cache line.
#[repr(C)]
pub(crate) struct Shards<T> {
    /// The logical clock that stamps segments when they are opened.
    pub(in crate::raw) stamps: AtomicU64,
    /// Counts items popped by no handle.
    popped: AtomicU64,
    /// Counts items that were put in without a push.
    restored: AtomicU64,
    /// The handle whose transaction was found open last.
    pub(in crate::raw) last_open: AtomicUsize,
    /// Held by whoever pushes into the common shard, which it owns then. The clock when its segment was opened.
    pushing: Mutex<u64>,
    /// Whether a thread detaches idle shards.
    pub(super) detaching: AtomicBool,
    /// Whether items keep their times.
    pub(in crate::raw) timed: bool,
    /// How many items a consumer takes from a shard before it compares shards again.
    pub(in crate::raw) stickiness: u32,
    pub(in crate::raw) records: ShardPool<T>,
    pub(in crate::raw) handles: RecordPool<CachePadded<Counters>>,
}

impl<T> Shards<T> {
    /// A tick of the logical clock, as a difference between [ages](crate::raw::shard::Shard::age).
    pub(in crate::raw) const TICK: u64 = MAX_ITEMS as u64;

    /// `timed`: whether items keep their times. See also [stickiness](crate::Builder::stickiness).
    pub(crate) fn with(timed: bool, stickiness: u32) -> Self {
        barrier::prepare();
        Self {
            stamps: AtomicU64::new(FIRST_STAMP),
            popped: AtomicU64::new(0),
            restored: AtomicU64::new(0),
            last_open: AtomicUsize::new(0),
            pushing: Mutex::new(0),
            detaching: AtomicBool::new(false),
            timed,
            stickiness,
            records: RecordPool::with_reserved(PERMANENT),
            handles: RecordPool::new(PERMANENT),
        }
    }

    /// Without a stickiness.
    #[cfg(test)]
    pub(crate) fn new(timed: bool) -> Self {
        Self::with(timed, u32::MAX)
    }

    /// Whether nothing was ever pushed.
    pub(super) fn is_new(&self) -> bool {
        self.records.len() == 1 && self.attached().from(0).next().is_none()
    }

    /// Pushes into the common shard, unless `admit` refuses after the push and the item can be taken back.
    pub(crate) fn push(&self, item: T, since: u64, admit: impl Fn() -> bool) -> Result<(), T> {
        let delivery = DeliveryMeta::after(0, if self.timed { since } else { 0 });
        self.push_common(Entry { item, delivery }, |shard, producer| {
            let is_late = !admit() && !planted!("shards.admits-late");
            let refused = is_late.then(|| producer.retract(shard)).flatten();
            refused.map_or(Ok(()), Err)
        })
    }

    /// Puts an item that was delivered before at the tail of the common shard.
    pub(crate) fn put_at_tail(&self, entry: Entry<T>) {
        self.push_common(entry, |shard, _| shard.count_skipped(1));
    }

    /// Pushes into the common shard, and does something `then`, as its owner.
    fn push_common<R>(
        &self,
        Entry { item, delivery }: Entry<T>,
        then: impl FnOnce(&Shard<T>, &mut Producer<T>) -> R,
    ) -> R {
        let mut opened = lock(&self.pushing);
        let shard = self.common();
        // SAFETY: the lock makes the caller its owner, after the last one.
        let mut producer = unsafe { shard.check_out() };
        // ORDERING: Relaxed, as where it ticks.
        let stamp = || self.stamps.load(Ordering::Relaxed);
        if shard.backlog() == 0 && *opened != stamp() {
            // In the segment in use the item would look as old as that is.
            producer.vacate(shard);
        }
        if producer.is_full() {
            producer.open(shard, &self.stamps, Notes::Deliveries);
            *opened = stamp();
        }
        step!("shards.notes-no-time", producer.note(delivery));
        producer.push(shard, item);
        shard.show();
        let result = then(shard, &mut producer);
        // SAFETY: as above; the unlock is a release.
        unsafe { shard.check_in(producer) };
        result
    }

    /// The shard without a handle, which is made for the first handle.
    #[inline]
    pub(in crate::raw) fn common(&self) -> &Shard<T> {
        self.records.reserved(|| {
            let shard = Shard::default();
            shard.begin_detached(self.records.owner_of_used(), COMMON);
            shard
        })
    }

    /// Whether items keep their times.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed
    }

    /// A consumer's cursor on a shard.
    pub(in crate::raw) fn cursor(&self, shard: usize) -> Cursor<T> {
        let (shard, noted) = match shard {
            COMMON => (self.common(), true),
            _ => (self.records.get(shard), self.timed),
        };
        Cursor::new(shard, noted, self.stickiness)
    }

    /// Whether items were returned to the common shard.
    #[inline]
    pub(crate) fn has_returned(&self) -> bool {
        self.common().front().has_runs()
    }

    pub(in crate::raw) fn attached(&self) -> &NumberSet {
        self.records.used()
    }

    /// Whether a shard is attached.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(in crate::raw) fn is_attached(&self, shard: usize) -> bool {
        self.attached().has(shard)
    }

    /// The number of attached shards, which a walk visits.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.attached().from(0).count()
    }

    /// The number of handles whose counters are in use.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn handles_in_use(&self) -> usize {
        self.handles.used().from(0).count()
    }

    /// All attached shards, beginning at `start`.
    #[inline]
    pub(in crate::raw) fn round_from(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        // Read only when the walk gets there.
        let before = iter::once_with(|| self.attached().from(0)).flatten();
        let before = before.take_while(move |&shard| shard < start);
        self.attached().from(start).chain(before)
    }

    /// Frees the memory of empty shards without an owner.
    pub(crate) fn vacate_all(&self) {
        let shards = self.attached().from(0);
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
        shard.is_retired() && !self.attached().see(number).has(number)
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
        if !self.attached().see(number).has(number) {
            self.vacate(number);
        }
    }

    /// The number of ready items, exact at rest.
    pub(crate) fn ready(&self) -> u64 {
        let shards = self.attached().from(0);
        shards.map(|shard| self.records.get(shard).ready()).sum()
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
                hold.reserve(1, self.common().front().home());
                // SAFETY: room was reserved for it.
                unsafe { hold.accept(item, delivery) };
            }
            hold.give_back();
        }
        count
    }

    /// The handles whose transactions hold something.
    pub(crate) fn holders(&self) -> impl Iterator<Item = Holder> + '_ {
        let counters = self.handles.used().from(0);
        let holders = counters.map(|counters| self.handles.get(counters).holder(counters));
        holders.filter(|holder| holder.held > 0)
    }

    /// Counts items that have expired, and were moved out of the transaction with these counters.
    pub(crate) fn count_expired(&self, counters: usize, items: usize) {
        let counters = self.handles.get(counters);
        counters.count_elsewhere(Ending::Expired, items);
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
        let shards = self.attached().from(0);
        let shards = shards.filter_map(|number| self.records.get(number).oldest());
        shards.min()
    }

    /// Takes up to `most` items that were pushed at `until` or before from the heads of the shards. Returns the least time of
    /// those that are at the heads then; that of an item behind a younger one counts when it comes there. The caller counts
    /// what is taken beforehand.
    pub(crate) fn take_old(
        &self,
        until: u64,
        most: usize,
        into: &mut Vec<Entry<T>>,
    ) -> Option<u64> {
        let mut least = None;
        for number in self.attached().from(0) {
            let mut cursor = self.cursor(number);
            let next = loop {
                // One that there is no more room for is old, too.
                let until = if into.len() < most { until } else { 0 };
                if let Err(next) = cursor.take_old(into, until) {
                    break next;
                }
            };
            cursor.flush();
            least = least.into_iter().chain(next).min();
        }
        least
    }

    /// The number of items ever pushed, exact at rest.
    pub(crate) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        let restored = self.restored.load(Ordering::Relaxed);
        restored + self.records.iter().map(Shard::pushed).sum::<u64>()
    }

    /// Counts an item as pushed that does not come through a push.
    pub(crate) fn count_restored(&self, items: usize) {
        // ORDERING: Relaxed; statistics.
        self.restored.fetch_add(items as u64, Ordering::Relaxed);
    }

    /// Counts items that were popped without a handle.
    pub(crate) fn count_popped(&self, items: usize) {
        // ORDERING: Relaxed; statistics.
        self.popped.fetch_add(items as u64, Ordering::Relaxed);
    }

    /// The sum of all handles' counters.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.handles
            .iter()
            .for_each(|counters| counters.add_to(&mut tally));
        // ORDERING: Relaxed; as where it is counted.
        tally.committed += self.popped.load(Ordering::Relaxed);
        tally
    }
}

/// Acquires a shard. It may be detached: whoever publishes something in it [shows](Shard::show) it.
pub(in crate::raw) fn acquire<T>(records: &ShardPool<T>) -> (usize, &Shard<T>) {
    let number = records.acquire();
    let shard = records.get(number);
    if shard.front().is_new() {
        shard.begin_detached(records.owner_of_used(), number);
    }
    shard.reopen();
    (number, shard)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod lengths;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
#[cfg(all(test, not(any(loom, shuttle))))]
mod times;
