//! The private state of a shard's owner: the staged items and the position of the next one.

use crate::raw::memory::{DeliveryMeta, DirectoryEnd, Entry, Notes, Segment, Slot};
use crate::raw::shard::{Producer, Shard};
use crate::sync::{barrier, AtomicU64, Ordering};
use std::slice;

impl<T> Producer<T> {
    /// The number of staged items.
    #[inline]
    pub(in crate::raw) fn staged(&self) -> usize {
        self.staged
    }

    /// The tail of the shard after publishing now.
    pub(in crate::raw) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the next item needs another segment. True for a producer without a shard.
    #[inline]
    pub(in crate::raw) fn is_full(&self) -> bool {
        self.next >= self.limit
    }

    /// Records what is known of the item that is stored next. Must not be [full](Self::is_full).
    pub(in crate::raw) fn note(&self, delivery: DeliveryMeta) {
        assert!(self.next < self.limit);
        if let Some(segment) = self.segment {
            // SAFETY: as in `put`.
            unsafe { segment.set_delivery(self.next, delivery) };
        }
    }

    /// Stages an item: stores it without publishing it. Must not be [full](Self::is_full).
    #[inline]
    pub(in crate::raw) fn stage(&mut self, item: T) {
        self.put(item);
        self.staged += 1;
    }

    /// The slots of the next items in the open segment. Must not be [full](Self::is_full).
    #[inline]
    pub(in crate::raw) fn vacant<'s>(&self) -> slice::Iter<'s, Slot<T>> {
        assert!(self.next < self.limit);
        // SAFETY: below the limit a segment is open, and alive at least until its items are published.
        unsafe { self.segment.unwrap_unchecked().slots_from(self.next) }.iter()
    }

    /// Counts as staged the items stored in the first `count` [vacant](Self::vacant) slots.
    ///
    /// # Safety
    ///
    /// These slots are filled.
    #[inline]
    pub(in crate::raw) unsafe fn count_staged(&mut self, count: usize) {
        self.staged += count;
        self.next += count as u64;
    }

    /// Publishes an item, without [showing](Shard::show) the shard. Nothing is staged, and the producer is not [full](Self::is_full).
    #[inline]
    pub(in crate::raw) fn push(&mut self, shard: &Shard<T>, item: T) {
        debug_assert!(self.staged == 0);
        self.put(item);
        shard.publish(self.next);
    }

    /// Takes the last published item, if it is at the head and nobody else claims it. Nothing is staged.
    #[inline(always)] // the pop of a stack
    pub(in crate::raw) fn take_last(&mut self, shard: &Shard<T>) -> Option<T> {
        let segment = self.segment.filter(|it| it.first() < self.next)?;
        // SAFETY: the segment covers the position before `next`, which was published.
        unsafe { shard.take_at(segment, self.next - 1) }
    }

    /// As [`take_last`](Self::take_last), for an item that is not delivered.
    pub(in crate::raw) fn retract(&mut self, shard: &Shard<T>) -> Option<T> {
        // ORDERING: SeqCst, between the publication and the read of the head; pairs with `strict.between`,
        // between the two passes of `Shards::left_when_closed`: if the first pass shows that the item before
        // is claimed, either that is seen here too, or the second pass shows the publication.
        barrier::full("shard.retract");
        let item = self.take_last(shard)?;
        shard.count_skipped(1);
        Some(item)
    }

    #[inline]
    fn put(&mut self, item: T) {
        assert!(self.next < self.limit);
        // SAFETY: below the limit a segment is open. A position behind the tail is vacant and belongs to
        // the owner alone, and its segment is unfinished.
        unsafe {
            let segment = self.segment.unwrap_unchecked();
            segment.slot(self.next).fill(item);
        }
        self.next += 1;
    }

    /// Opens the next segment; all segments of a shard have the same notes.
    pub(in crate::raw) fn open(&mut self, shard: &Shard<T>, stamps: &AtomicU64, notes: Notes) {
        let (first, len) = (self.limit, shard.next_len(self.next));
        let segment = shard
            .spare(len, first)
            .unwrap_or_else(|| Segment::new(first, len, notes));
        // SAFETY: this producer's, and alive until the last of its positions is finished, the first of which is to be published.
        self.limit += unsafe { segment.len() } as u64;
        // ORDERING: Relaxed; a logical clock that only compares ages.
        let stamp = stamps.fetch_add(1, Ordering::Relaxed) + 1;
        self.end
            .enter(shard.directory(), segment, self.limit, stamp);
        self.segment = Some(segment);
    }

    /// Publishes all staged items at once. The caller [shows](Shard::show) the shard, or has announced a joint.
    #[inline]
    pub(in crate::raw) fn publish(&mut self, shard: &Shard<T>) {
        shard.publish(self.next);
        self.staged = 0;
    }

    /// Takes the last staged item back out.
    pub(in crate::raw) fn unstage(&mut self) -> Option<Entry<T>> {
        if self.staged == 0 {
            return None;
        }
        // A segment may have been opened for an item that was then refused, or not pushed.
        self.close_if_vacant();
        self.next -= 1;
        let segment = self.segment?;
        // SAFETY: filled by this producer, and not published; the segment covers this position, since it is
        // not vacant.
        let entry = unsafe { segment.take_one(self.next) };
        self.staged -= 1;
        self.close_if_vacant();
        Some(entry)
    }

    /// Takes the last open segment back if it is vacant.
    fn close_if_vacant(&mut self) {
        let vacant = |segment: &Segment<T>| self.next == segment.first();
        let Some(segment) = self.segment.filter(vacant) else {
            return;
        };
        // SAFETY: none of its positions was published, so it belongs to this producer alone. It may have been
        // shared for positions that are claimed by now.
        unsafe { segment.retire() };
        self.limit = self.next;
        // SAFETY: as above.
        let before = unsafe { self.end.take_back() };
        // What was staged before is in the segment before, which is alive. Otherwise that is used up, or was freed.
        self.segment = before.filter(|_| self.staged > 0);
    }

    /// Frees the memory that an idle shard does not need. Nothing is staged.
    pub(in crate::raw) fn vacate(&mut self, shard: &Shard<T>) {
        self.next = shard.vacate(self.next, self.limit, self.segment);
    }

    /// Frees the memory of a shard in which nothing is left, after [`vacate`](Self::vacate), until it is
    /// [reopened](Shard::reopen).
    pub(in crate::raw) fn retire(&mut self, shard: &Shard<T>) {
        // SAFETY: called by the owner, which forgets its pages and its segment, which is used up.
        if self.is_full() && unsafe { shard.retire(self.next) } {
            self.segment = None;
            self.end = DirectoryEnd::new();
        }
    }
}
