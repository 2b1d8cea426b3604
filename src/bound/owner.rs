//! The owner of a record: where a handle takes permits, and puts them back.

use super::record::PermitRecord;
use super::Capacity;
use crate::sync::{planted, SMALL};
use std::mem;
use std::sync::Arc;

/// After this number of permits put back, the owner checks whether others collect them.
const BATCH: usize = if SMALL { 2 } else { 64 };

/// A record that a handle has acquired. One thread uses it at a time.
pub(crate) struct RecordOwner {
    record: Arc<PermitRecord>,
    number: usize,
    /// The first position of the range that is not used.
    used: usize,
    /// The end of the range when it was opened; a revoker may have lowered it since.
    end: usize,
    /// All permits ever put back, and how many of them there were at the last check.
    put: usize,
    checked: usize,
    /// The record where permits were found last.
    first: usize,
    /// Permits that others may have missed while this handle had them in hand, and that are available now.
    unsaid: usize,
}

impl RecordOwner {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        let number = capacity.records.acquire_for_use();
        let record = Arc::clone(capacity.records.get(number));
        // The range of the previous owner goes on.
        let (used, end) = record.range.bounds();
        Self {
            used,
            end,
            put: record.returned.put_so_far(),
            checked: record.returned.put_so_far(),
            first: number,
            unsaid: 0,
            number,
            record,
        }
    }

    /// Takes up to `want` permits, fewer only if no permit was free at some point during the call. `ahead`: whether to
    /// take more for the range from where many are free. Waiters must be woken for those [unsaid](Self::unsaid).
    #[must_use = "the permits are taken"]
    pub(crate) fn take(&mut self, capacity: &Capacity, want: usize, ahead: bool) -> usize {
        if self.take_ahead(want) {
            return want;
        }
        let rest = self.withdraw();
        let range = ahead.then_some(&*self.record.range);
        let hand = rest + capacity.gather(want - rest, range, &mut self.first);
        let got = hand.min(want);
        self.keep(hand - got);
        got
    }

    /// Takes `want` permits or none; none only if fewer were free at some point during the call. Waiters must be woken for
    /// those unsaid.
    pub(crate) fn take_all(&mut self, capacity: &Capacity, want: usize) -> bool {
        if self.take_ahead(want) {
            return true;
        }
        self.record.range.begin_filling();
        let shown = capacity.give_shared(self.withdraw());
        let moved = capacity.gather_all(want, &self.record.range);
        self.record.range.end_filling();
        if let Err(moved) = moved {
            self.unsaid += shown * usize::from(!planted!("owner.says-no-shown")) + moved;
        }
        moved.is_ok()
    }

    /// Takes `want` permits out of the range: `false` if there are fewer, or if a revoker has marked or truncated it; then
    /// waiters must be woken for those unsaid.
    #[inline]
    pub(crate) fn take_ahead(&mut self, want: usize) -> bool {
        if want > self.left() {
            return false;
        }
        let next = self.used + want;
        if self.record.range.advance(next) {
            self.used = next;
            return true;
        }
        self.give_ahead();
        false
    }

    /// Puts the range back, after a position was tried in vain: it would stay hidden from others.
    #[cold]
    fn give_ahead(&mut self) {
        self.record.range.begin_filling();
        let rest = self.withdraw();
        self.put_back(rest);
        self.record.range.end_filling();
        self.unsaid += rest * usize::from(!planted!("owner.says-no-rest"));
    }

    /// The number of waiters to wake, for permits that they may have missed.
    pub(crate) fn unsaid(&mut self) -> usize {
        mem::take(&mut self.unsaid)
    }

    /// Puts permits back. Their waiters must be woken.
    #[inline]
    pub(crate) fn put_back(&mut self, permits: usize) {
        self.put = self.put.wrapping_add(permits);
        self.record.returned.put_up_to(self.put);
    }

    /// Whether many permits were put back since the last check.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.put.wrapping_sub(self.checked) >= BATCH
    }

    /// Moves many permits that nobody has collected to the pool, if that is due, where one take finds them all. Returns the
    /// number of waiters to wake after `permits` were put back.
    #[cold]
    pub(crate) fn tidy(&mut self, capacity: &Capacity, permits: usize) -> usize {
        if !self.is_due() {
            return permits;
        }
        self.checked = self.put;
        let own = &self.record.returned;
        let seen = own.snapshot();
        if seen.free < BATCH / 2 {
            return permits;
        }
        self.record.range.begin_filling();
        let moved = capacity.give_shared(own.take(seen, seen.free));
        self.record.range.end_filling();
        planted!("owner.says-no-old", return permits);
        permits.max(moved)
    }

    /// Releases the record. What is in it stays there, where others find it.
    pub(crate) fn leave(self, capacity: &Capacity) {
        capacity.release_record(self.number);
    }

    /// Permits taken ahead, not counting revocations that the owner has not seen.
    pub(super) fn left(&self) -> usize {
        self.end - self.used
    }

    /// Takes the rest of the range, which is empty then.
    fn withdraw(&mut self) -> usize {
        if self.left() == 0 {
            return 0;
        }
        let beyond = self.end + 1;
        let rest = self.record.range.withdraw(beyond) - self.used;
        (self.used, self.end) = (beyond, beyond);
        rest
    }

    /// Puts permits into the range, which is empty, and ends its filling.
    fn keep(&mut self, permits: usize) {
        if permits > 0 {
            let start = self.end + 1;
            (self.used, self.end) = (start, start + permits);
            self.record.range.open(start, start + permits);
            self.record.range.end_filling();
            self.unsaid += permits * usize::from(!planted!("owner.says-no-surplus"));
        }
    }
}
