//! The search for free permits in the pool and all records, and the linearizable answer that there is none.

use super::free_count::{FreeCount, Sight};
use super::record::{PermitRecord, RevocableRange};
use super::Capacity;
use crate::raw::SetVersion;
use crate::sync::{barrier, planted, thread, weak, Ordering, SMALL};
use std::sync::Arc;

/// The most caches revoked with one heavy barrier.
const AT_ONCE: usize = if SMALL { 2 } else { 16 };

/// How many times a search yields to threads that are moving permits to their caches or to the pool before it
/// reports that it found none. Under loom a search that waited for such a permit would never end.
const PATIENCE: usize = match (cfg!(loom), SMALL) {
    (true, _) => 0,
    (false, true) => 1,
    (false, false) => 64,
};

/// The observations of one walk over the pool and all records.
struct Walk {
    /// `revocations` before the walk.
    before: usize,
    /// The version of the set of records in use, before the walk.
    records: SetVersion,
    /// The sum of all `taken` and `used`, which grows whenever a permit is taken, except by
    /// revocations.
    version: usize,
    /// Whether a free permit was seen.
    found: bool,
    /// Whether one was seen in a cache.
    revocable: bool,
    /// Whether a range was filling.
    underway: bool,
}

impl Walk {
    fn begin(capacity: &Capacity) -> Self {
        Self {
            // ORDERING: Acquire; pairs with `range.step-revocations`.
            before: capacity.revocations.load(weak!("search.begin", Acquire)),
            records: capacity.records.used().version(),
            version: 0,
            found: false,
            revocable: false,
            underway: false,
        }
    }

    fn count(&mut self, taken: usize) {
        self.version = self.version.wrapping_add(taken);
    }

    /// Looks at a record; returns its unused permits, and the returned ones.
    fn inspect(&mut self, record: &PermitRecord) -> (usize, Sight) {
        self.underway |= record.range.is_filling();
        let (unused, used) = record.range.snapshot();
        let seen = record.returned.snapshot();
        self.count(seen.taken);
        self.count(used);
        (unused, seen)
    }
}

impl Capacity {
    /// Takes `want` permits, and more for the range `ahead` from where many are free. Returns fewer only if none
    /// was free at some point during the call, except those that a stalled call has in hand.
    pub(super) fn gather(
        &self,
        want: usize,
        ahead: Option<&RevocableRange>,
        first: &mut usize,
    ) -> usize {
        let mut hand = 0;
        let mut last: Option<Walk> = None;
        let mut patience = PATIENCE;
        loop {
            let mut walk = Walk::begin(self);
            hand += self.collect(want - hand, ahead, first, &mut walk);
            if hand < want && walk.revocable {
                hand += self.revoke(want - hand, ahead);
            }
            if hand >= want {
                return hand;
            }
            let before = planted!("search.walks-once").then_some(&walk);
            if self.none_between(before.or(last.as_ref()), &walk) && gives_up(&walk, &mut patience)
            {
                return hand;
            }
            last = Some(walk);
        }
    }

    /// Takes `want` permits at once, and more for the range `ahead` if many are free. Otherwise returns as an error
    /// how many it has moved to the pool, where others can find them: then fewer than `want` were free at some
    /// point during the call, except those that a stalled call has in hand.
    ///
    /// All come from the pool, by one CAS; permits elsewhere are moved there first. So no batch has a part in hand
    /// that another one lacks, and a failed CAS means that another call has succeeded.
    pub(super) fn gather_all(&self, want: usize, ahead: &RevocableRange) -> Result<usize, usize> {
        let mut moved = 0;
        loop {
            let seen = self.pool.snapshot();
            if seen.free < want {
                planted!(
                    "search.holds-a-part",
                    moved += self.give_shared(self.pool.take(seen, want))
                );
                if !self.has(want) {
                    planted!("search.reports-no-moved", return Err(0));
                    return Err(moved);
                }
                moved += self.move_to_pool(want - seen.free, ahead);
                continue;
            }
            let hand = self.take_from(&self.pool, seen, want, Some(ahead));
            if hand >= want {
                return Ok(hand);
            }
        }
    }

    /// Moves up to `most` permits from the records to the pool, and returns how many. They are in hand
    /// meanwhile, so the caller's range is filling.
    fn move_to_pool(&self, most: usize, own: &RevocableRange) -> usize {
        own.begin_filling();
        let collect = |hand: usize, record: &Arc<PermitRecord>| {
            let free = &record.returned;
            hand + free.take(free.snapshot(), most - hand)
        };
        let mut hand = self.records.in_use().fold(0, collect);
        if hand < most {
            hand += self.revoke(most - hand, None);
        }
        let moved = self.give_shared(hand);
        own.end_filling();
        moved
    }

    /// Whether no permit was free between two walks, the second of which has just ended.
    fn none_between(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| !last.found) && !walk.found && self.none_gone(last, walk)
    }

    /// Whether no permit was taken between two walks, the second of which has just ended.
    fn none_gone(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| {
            // ORDERING: Relaxed; a walk that has seen permits revoked has seen the increment, see `truncate`.
            let revocations = self.revocations.load(Ordering::Relaxed);
            (last.version == walk.version || planted!("search.marks-unseen"))
                && last.before == revocations
                && last.records == self.records.used().version()
        })
    }

    /// Whether `want` permits are free at once; `false` only if fewer were free at some point during the call,
    /// except those that a stalled call has in hand.
    ///
    /// It is `false` if two walks find fewer and no permit was taken between them: the second walk has found all
    /// permits that were free then.
    fn has(&self, want: usize) -> bool {
        let mut last: Option<Walk> = None;
        let mut patience = PATIENCE;
        loop {
            let mut walk = Walk::begin(self);
            if self.count(&mut walk) >= want {
                return true;
            }
            if self.none_gone(last.as_ref(), &walk) && gives_up(&walk, &mut patience) {
                return false;
            }
            last = Some(walk);
        }
    }

    /// Counts the free permits in one walk.
    fn count(&self, walk: &mut Walk) -> usize {
        let seen = self.pool.snapshot();
        walk.count(seen.taken);
        let in_record = |free: usize, record: &Arc<PermitRecord>| {
            let (unused, seen) = walk.inspect(record);
            free.saturating_add(unused).saturating_add(seen.free)
        };
        self.records.in_use().fold(seen.free, in_record)
    }

    /// Takes permits from the pool and the free counts of the records, from record `first` on, until there
    /// are enough.
    fn collect(
        &self,
        want: usize,
        ahead: Option<&RevocableRange>,
        first: &mut usize,
        walk: &mut Walk,
    ) -> usize {
        let seen = self.pool.snapshot();
        walk.count(seen.taken);
        walk.found |= seen.free > 0;
        let mut hand = self.take_from(&self.pool, seen, want, ahead);
        let from = *first;
        let before = self.records.used().from(0);
        let before = before.take_while(|&number| number < from);
        for number in self.records.used().from(from).chain(before) {
            if hand >= want {
                break;
            }
            let record = self.records.get(number);
            let (unused, seen) = walk.inspect(record);
            walk.found |= seen.free > 0 || unused > 0;
            walk.revocable |= unused > 0;
            if seen.free > 0 {
                hand += self.take_from(&record.returned, seen, want - hand, ahead);
                *first = number;
            } else if unused == 0 && self.records.is_free(number) {
                self.retire(number);
            }
        }
        hand
    }

    /// Takes up to `want` of the permits in a snapshot, or up to a share if that is more and there is a range for the
    /// rest; the range is filling then.
    pub(super) fn take_from(
        &self,
        free: &FreeCount,
        seen: Sight,
        want: usize,
        ahead: Option<&RevocableRange>,
    ) -> usize {
        if seen.free == 0 {
            return 0;
        }
        let share = ahead.map_or(0, |_| self.share(seen.free));
        let Some(range) = ahead.filter(|_| share > want) else {
            return free.take(seen, want);
        };
        range.begin_filling();
        let taken = free.take(seen, share);
        if taken <= want {
            range.end_filling();
        }
        taken
    }

    /// Retires a record that no handle has acquired, if nothing is left in it.
    #[cold]
    fn retire(&self, number: usize) {
        if !self.records.stays(number) && self.records.acquire_if_free(number) {
            self.release_record(number);
        }
    }

    /// Releases a record, and retires it if nothing is left in it.
    pub(super) fn release_record(&self, number: usize) {
        let record = self.records.get(number);
        let is_empty = record.range.snapshot().0 + record.returned.snapshot().free == 0;
        if is_empty && !self.records.stays(number) && self.records.is_in_use(number) {
            self.records.retire(number);
        }
        self.records.release(number);
    }

    /// Revokes up to `want` permits from caches, or half of those found for the range `ahead`, which is filling then:
    /// one heavy barrier serves several pushes.
    pub(super) fn revoke(&self, want: usize, ahead: Option<&RevocableRange>) -> usize {
        let mut marked = [(0, 0); AT_ONCE];
        let (mut len, mut expected) = (0, 0);
        for number in self.records.used().from(0) {
            let range = &self.records.get(number).range;
            let (unused, _) = range.snapshot();
            if unused > 0 {
                marked[len] = (number, range.mark());
                len += 1;
                expected += unused;
            }
            if expected >= want || len == AT_ONCE {
                break;
            }
        }
        if len == 0 {
            return 0;
        }
        // Pairs with `range.light`.
        barrier::heavy("search.heavy");
        let most = match ahead {
            Some(_) => want.max(self.share(expected)),
            None => want,
        };
        let truncate = |hand: usize, (number, end): &(usize, usize)| {
            let range = &self.records.get(*number).range;
            hand + range.truncate(*end, most - hand, &self.revocations)
        };
        let filling = ahead.filter(|_| most > want);
        if let Some(range) = filling {
            range.begin_filling();
        }
        let taken = marked[..len].iter().fold(0, truncate);
        if let Some(range) = filling.filter(|_| taken <= want) {
            range.end_filling();
        }
        taken
    }
}

/// Whether a search ends after a walk that has found too few permits. If not, it has yielded to threads that may
/// be moving some.
fn gives_up(walk: &Walk, patience: &mut usize) -> bool {
    if !walk.underway || *patience == 0 {
        return true;
    }
    *patience -= 1;
    thread::yield_now();
    false
}
