//! The permit cache of a handle: the owner's operations on its record.

use super::record::PermitRecord;
use super::{Capacity, Took};
use crate::sync::{planted, SMALL};
use std::sync::Arc;

/// After this many permits given back, the owner checks whether others collect them.
const BATCH: usize = if SMALL { 2 } else { 64 };

/// The permits of one handle, in a record that it has acquired. One thread uses it at a time.
pub(crate) struct PermitCache {
    record: Arc<PermitRecord>,
    number: usize,
    /// The first position not used.
    used: usize,
    /// The end of the range when it was opened; a thief may have lowered it since.
    end: usize,
    /// All permits ever given back, and how many of them there were at the last inspection.
    returned: usize,
    inspected: usize,
    /// The record where permits were found last.
    first: usize,
}

impl PermitCache {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        let number = capacity.records.acquire_for_use();
        let record = Arc::clone(capacity.records.get(number));
        // Its previous owner has left an empty range.
        let used = record.range.used();
        let returned = record.returned.put_so_far();
        Self {
            record,
            number,
            used,
            end: used,
            returned,
            inspected: returned,
            first: 0,
        }
    }

    /// Takes one permit, and more for the range if it may take `ahead`. Returns how many more it made available to
    /// others, as [`Took::visible`], or `None` if no permit was free at some point during the call.
    #[must_use = "the permit is taken, and waiters must be notified of those visible"]
    pub(crate) fn take_one(&mut self, capacity: &Capacity, ahead: bool) -> Option<usize> {
        if self.take_ahead(1) {
            return Some(0);
        }
        let rest = self.withdraw(1);
        let took = self.refill(capacity, rest, 1, ahead);
        (took.got == 1).then_some(took.visible)
    }

    /// Takes up to `want` permits, fewer only if no permit was free at some point during the call.
    pub(crate) fn take(&mut self, capacity: &Capacity, want: usize) -> Took {
        if self.take_ahead(want) {
            return Took::all(want);
        }
        let rest = self.withdraw(want);
        self.refill(capacity, rest, want, true)
    }

    /// Takes `want` permits or none; none only if fewer were free at some point during the call.
    pub(crate) fn take_all(&mut self, capacity: &Capacity, want: usize) -> Took {
        if self.take_ahead(want) {
            return Took::all(want);
        }
        let rest = self.withdraw(0);
        if rest >= want {
            return self.use_some(rest, want);
        }
        let shown = capacity.give_shared(rest);
        self.record.range.end_filling();
        match capacity.gather_all(want, &self.record.range) {
            Ok(hand) => self.use_some(hand, want),
            Err(moved) => Took {
                got: 0,
                visible: shown * usize::from(!planted!("cache.reports-no-shown")) + moved,
            },
        }
    }

    /// Takes `want` permits out of the range: `false` if there are fewer, or if a thief has marked or truncated it.
    #[inline]
    pub(crate) fn take_ahead(&mut self, want: usize) -> bool {
        if want > self.left() {
            return false;
        }
        let next = self.used + want;
        let taken = self.record.range.advance(next);
        if taken {
            self.used = next;
        }
        taken
    }

    /// Gives permits back. Returns how many became available to others, including those that were only
    /// temporarily in hand: the number of waiters to wake.
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn give(&mut self, capacity: &Capacity, permits: usize) -> usize {
        self.put_back(permits);
        self.tidy(capacity, permits)
    }

    /// Gives permits back; [`tidy`](Self::tidy) must follow if it is [due](Self::is_due).
    #[inline]
    pub(crate) fn put_back(&mut self, permits: usize) {
        self.returned = self.returned.wrapping_add(permits);
        self.record.returned.put_up_to(self.returned);
    }

    /// Whether many permits were given back since the last inspection.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.returned.wrapping_sub(self.inspected) >= BATCH
    }

    /// Moves permits to the pool if that is due, after `permits` were put back. Returns the same as
    /// [`give`](Self::give).
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn tidy(&mut self, capacity: &Capacity, permits: usize) -> usize {
        if !self.is_due() {
            return permits;
        }
        let moved = self.move_to_pool(capacity);
        planted!("cache.reports-no-old", return permits);
        permits.max(moved)
    }

    /// Moves permits that nobody has collected to the pool, so that takers need not search every free count.
    #[cold]
    #[must_use = "waiters for the permits must be woken"]
    fn move_to_pool(&mut self, capacity: &Capacity) -> usize {
        self.inspected = self.returned;
        self.record.range.begin_filling();
        let own = &self.record.returned;
        let seen = own.snapshot();
        let moved = match seen.free {
            few if few < BATCH / 2 => 0,
            free => own.take(seen, free),
        };
        let moved = capacity.give_shared(moved);
        self.record.range.end_filling();
        moved
    }

    /// Gives everything back, and releases the record. Returns the same as [`give`](Self::give).
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn leave(&mut self, capacity: &Capacity) -> usize {
        let freed = self.give_ahead(capacity);
        capacity.release_record(self.number);
        freed
    }

    /// Gives back the permits taken ahead. Returns the same as [`give`](Self::give).
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn give_ahead(&mut self, capacity: &Capacity) -> usize {
        let rest = self.withdraw(0);
        let freed = self.give(capacity, rest);
        self.record.range.end_filling();
        planted!("cache.reports-no-rest", return rest);
        freed
    }

    /// Permits taken ahead, not counting revocations that the owner has not seen.
    pub(super) fn left(&self) -> usize {
        self.end - self.used
    }

    /// Takes the rest of the range. The range is empty then, and filling if the rest is more than `needed`.
    fn withdraw(&mut self, needed: usize) -> usize {
        if self.left() == 0 {
            return 0;
        }
        self.record.range.begin_filling();
        let beyond = self.end + 1;
        let end = self.record.range.withdraw(beyond);
        let rest = end - self.used;
        self.used = beyond;
        self.end = beyond;
        if rest <= needed {
            self.record.range.end_filling();
        }
        rest
    }

    /// Adds to the `hand` permits taken so far until there are `want`.
    ///
    /// Looks into its own free count, then where it found permits last, and only then everywhere.
    fn refill(&mut self, capacity: &Capacity, mut hand: usize, want: usize, ahead: bool) -> Took {
        let range = ahead.then_some(&*self.record.range);
        for record in [&self.record, capacity.records.get(self.first)] {
            if hand < want {
                let seen = record.returned.snapshot();
                hand += capacity.take_from(&record.returned, seen, want - hand, range);
            }
        }
        if hand < want {
            hand += capacity.gather(want - hand, range, &mut self.first);
        }
        self.use_some(hand, want)
    }

    /// Uses up to `want` of the permits in hand, and keeps the rest for later.
    fn use_some(&mut self, hand: usize, want: usize) -> Took {
        let got = hand.min(want);
        let visible = hand - got;
        self.keep(visible);
        planted!("cache.reports-no-visible", return Took::all(got));
        Took { got, visible }
    }

    /// Puts permits into the range, which is empty, and ends its filling.
    fn keep(&mut self, permits: usize) {
        if permits > 0 {
            let start = self.end + 1;
            self.used = start;
            self.end = start + permits;
            self.record.range.open(start, start + permits);
        }
        self.record.range.end_filling();
    }
}
