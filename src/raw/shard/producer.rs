//! The private state of a shard's owner: the staged items and the position of the next one.

use crate::raw::memory::{number, DirectoryPage, Entry, Segment, Slot};
use crate::raw::shard::{Producer, Shard};
use crate::sync::{AtomicU64, Ordering};
use std::ptr;
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

    /// The number of the next segment to open.
    pub(in crate::raw) fn opened(&self) -> u64 {
        number::<T>(self.limit)
    }

    /// Whether the next item needs another segment. True for a producer without a shard.
    #[inline]
    pub(in crate::raw) fn is_full(&self) -> bool {
        self.next >= self.limit
    }

    /// Records the time of the item that is stored next. Must not be [full](Self::is_full).
    pub(in crate::raw) fn note_time(&self, since: u64) {
        assert!(self.next < self.limit);
        if let Some(segment) = self.segment {
            // SAFETY: as in `put`.
            unsafe { segment.set_since(self.next, since) };
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

    /// Takes the last published item back, if it is at the head and nobody else claims it.
    /// Nothing is staged.
    pub(in crate::raw) fn retract(&mut self, shard: &Shard<T>) -> Option<Entry<T>> {
        let position = self.next.checked_sub(1)?;
        let segment = self.segment?;
        // SAFETY: the segment covers the position before `next`: it was opened for it, or before.
        unsafe { shard.retract(segment, position) }
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

    /// Opens the next segment; in a queue all segments are `timed`, or none.
    pub(in crate::raw) fn open(&mut self, shard: &Shard<T>, stamps: &AtomicU64, timed: bool) {
        let number = self.opened();
        let segment = shard.spare().unwrap_or_else(|| Segment::new(timed));
        // SAFETY: the owner's last page is never retired.
        if !unsafe { self.page.as_ref() }.is_some_and(|page| page.covers(number)) {
            self.page = DirectoryPage::append(shard.directory(), self.page, number);
        }
        // ORDERING: Relaxed; a logical clock that only compares ages.
        let stamp = stamps.fetch_add(1, Ordering::Relaxed) + 1;
        // SAFETY: as above.
        let page = unsafe { &*self.page };
        page.enter(number, segment, stamp);
        self.segment = Some(segment);
        self.limit += Segment::<T>::LEN as u64;
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
        let start = self.limit.saturating_sub(Segment::<T>::LEN as u64);
        let Some(segment) = self.segment.filter(|_| self.next == start) else {
            return;
        };
        // SAFETY: none of its positions was published, so it belongs to this producer alone. It may have been
        // shared for positions that are claimed by now.
        unsafe { segment.retire() };
        self.limit = start;
        // SAFETY: the page covers the segment just closed, whose positions were never published.
        self.page = unsafe { DirectoryPage::take_back(self.page, self.opened()) };
        // What was staged before is in the segment before, which is alive. Otherwise that is used up, or was freed.
        self.segment = (self.staged > 0)
            // SAFETY: positions of that segment are not published.
            .then(|| unsafe { DirectoryPage::segment_on(self.page, self.opened() - 1) })
            .flatten();
    }

    /// Frees the memory that an idle shard does not need. Nothing is staged.
    pub(in crate::raw) fn vacate(&mut self, shard: &Shard<T>) {
        self.next = shard.vacate(self.next, self.limit, self.segment);
    }

    /// Frees the memory of a shard in which nothing is left, after [`vacate`](Self::vacate), until it is
    /// [reopened](Shard::reopen).
    pub(in crate::raw) fn retire(&mut self, shard: &Shard<T>) {
        // SAFETY: called by the owner, which forgets its page and its segment, which is used up.
        if self.is_full() && unsafe { shard.retire(self.next) } {
            self.segment = None;
            self.page = ptr::null_mut();
        }
    }
}
