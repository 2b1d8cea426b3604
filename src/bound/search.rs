//! The search for free permits, wherever they are, and the strict answer that there is none.

use super::free_count::{FreeCount, Sight};
use super::record::{PermitRecord, RevocableRange};
use super::{Capacity, CHUNK, LEAST};
use crate::sync::{barrier, planted, thread, weak, Ordering, SMALL};
use std::sync::Arc;

/// So many caches are revoked behind one heavy barrier.
const AT_ONCE: usize = if SMALL { 2 } else { 16 };

/// So often a search lets others run that have permits on their way to their caches or to the pool,
/// before it says that it found none. Loom would never let it end beside such a permit otherwise.
const PATIENCE: usize = match (cfg!(loom), SMALL) {
    (true, _) => 0,
    (false, true) => 1,
    (false, false) => 64,
};

/// What one walk over all places has seen.
struct Walk {
    /// Revocations before the walk.
    before: usize,
    /// The version of which records are in use, before the walk.
    records: u64,
    /// The sum of what was taken from all places, which grows whenever a permit goes, but for
    /// revocations.
    marks: usize,
    /// A free permit was seen.
    found: bool,
    /// One was seen in a cache.
    revocable: bool,
    /// Permits were seen on their way to a cache.
    underway: bool,
}

impl Walk {
    fn begin(capacity: &Capacity) -> Self {
        Self {
            // ORDERING: Acquire; pairs with `range.step-revocations`.
            before: capacity.revocations.load(weak!("search.begin", Acquire)),
            records: capacity.records.version(),
            marks: 0,
            found: false,
            revocable: false,
            underway: false,
        }
    }

    fn count(&mut self, taken: usize) {
        self.marks = self.marks.wrapping_add(taken);
    }
}

impl Capacity {
    /// Takes `want` permits, and for a range some more where many are. Fewer only if at some instant
    /// none was free, but for those that a call which is held up has in hand.
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
                hand += self.revoke(want - hand);
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

    /// Takes `want` permits at once, and for a range some more where many are. Else answers how many
    /// it has moved to the pool, where others can find them: then at some instant fewer were free, but
    /// for those that a call which is held up has in hand.
    ///
    /// All come from the pool, by one CAS; what is elsewhere moves there first. So of several who want
    /// many none has a part in hand that another one lacks, and who fails to take them has lost to one
    /// who has taken some for good.
    pub(super) fn gather_all(&self, want: usize, ahead: &RevocableRange) -> Result<usize, usize> {
        let mut moved = 0;
        loop {
            let seen = self.pool.look();
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
            let share = self.share(seen.free);
            let hand = take_from(&self.pool, seen, want, Some(ahead), share);
            if hand >= want {
                return Ok(hand);
            }
        }
    }

    /// Moves up to `most` permits from the records to the pool, and answers how many. They are in hand
    /// meanwhile, so the range of who does it is filling.
    fn move_to_pool(&self, most: usize, own: &RevocableRange) -> usize {
        own.begin_filling();
        let collect = |hand: usize, record: &Arc<PermitRecord>| {
            let free = &record.returned;
            hand + free.take(free.look(), most - hand)
        };
        let mut hand = self.records.in_use().fold(0, collect);
        if hand < most {
            hand += self.revoke(most - hand);
        }
        let moved = self.give_shared(hand);
        own.end_filling();
        moved
    }

    /// Whether no permit was free at the instant between two walks; the latter has just ended.
    fn none_between(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| !last.found) && !walk.found && self.none_gone(last, walk)
    }

    /// Whether no permit went away between two walks; the latter has just ended.
    fn none_gone(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| {
            // ORDERING: Relaxed; who has seen permits revoked has seen the step, see `truncate`.
            let revocations = self.revocations.load(Ordering::Relaxed);
            (last.marks == walk.marks || planted!("search.marks-unseen"))
                && last.before == revocations
                && last.records == self.records.version()
        })
    }

    /// Whether so many permits are free at once: no only if at some instant they were not, but for
    /// those that a call which is held up has in hand.
    ///
    /// Two walks find fewer, and none went away between them: those that were free then are among
    /// those that the second has found.
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

    /// Counts the free permits on a walk.
    fn count(&self, walk: &mut Walk) -> usize {
        let seen = self.pool.look();
        walk.count(seen.taken);
        let in_record = |free: usize, record: &Arc<PermitRecord>| {
            walk.underway |= record.range.is_filling();
            let (unused, used) = record.range.look();
            let seen = record.returned.look();
            walk.count(seen.taken);
            walk.count(used);
            free.saturating_add(unused).saturating_add(seen.free)
        };
        self.records.in_use().fold(seen.free, in_record)
    }

    /// Walks over the pool and what the records have returned, from record `first` on, until there
    /// is enough.
    fn collect(
        &self,
        want: usize,
        ahead: Option<&RevocableRange>,
        first: &mut usize,
        walk: &mut Walk,
    ) -> usize {
        let seen = self.pool.look();
        walk.count(seen.taken);
        walk.found |= seen.free > 0;
        let share = self.share(seen.free);
        let mut hand = take_from(&self.pool, seen, want, ahead, share);
        let from = *first;
        let before = self.records.in_use_from(0);
        let before = before.take_while(|&number| number < from);
        for number in self.records.in_use_from(from).chain(before) {
            if hand >= want {
                break;
            }
            let record = self.records.get(number);
            walk.underway |= record.range.is_filling();
            let (unused, used) = record.range.look();
            let seen = record.returned.look();
            walk.count(seen.taken);
            walk.count(used);
            walk.found |= seen.free > 0 || unused > 0;
            walk.revocable |= unused > 0;
            if seen.free > 0 {
                hand += take_from(&record.returned, seen, want - hand, ahead, half(seen.free));
                *first = number;
            } else if unused == 0 && self.records.is_free(number) {
                self.retire(number);
            }
        }
        hand
    }

    /// Retires a record that nobody leases, if nothing is left in it.
    #[cold]
    fn retire(&self, number: usize) {
        if !self.records.stays(number) && self.records.lease_if_free(number) {
            self.end_lease(number);
        }
    }

    /// Ends the lease of a record, which is retired if nothing is left in it.
    pub(super) fn end_lease(&self, number: usize) {
        let record = self.records.get(number);
        let is_empty = record.range.look().0 + record.returned.look().free == 0;
        if is_empty && !self.records.stays(number) && self.records.is_in_use(number) {
            self.records.retire(number);
        }
        self.records.release(number);
    }

    /// Takes up to `want` permits that are in caches.
    pub(super) fn revoke(&self, want: usize) -> usize {
        let mut marked = [(0, 0); AT_ONCE];
        let (mut len, mut expected) = (0, 0);
        for number in self.records.in_use_from(0) {
            let range = &self.records.get(number).range;
            let (unused, _) = range.look();
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
        let truncate = |hand: usize, (number, end): &(usize, usize)| {
            let range = &self.records.get(*number).range;
            hand + range.truncate(*end, want - hand, &self.revocations)
        };
        marked[..len].iter().fold(0, truncate)
    }
}

/// Whether a search ends with a walk that has found too little. If not, it has let others run that may
/// have permits on their way.
fn gives_up(walk: &Walk, patience: &mut usize) -> bool {
    if !walk.underway || *patience == 0 {
        return true;
    }
    *patience -= 1;
    thread::yield_now();
    false
}

/// What a cache may take ahead of so many permits that one handle has given back.
pub(super) fn half(free: usize) -> usize {
    match free / 2 {
        few if few < LEAST => 0,
        half => half.min(CHUNK),
    }
}

/// Takes `want` of the permits seen; for a range up to `share` instead, if that is more, and then the
/// range is filling.
pub(super) fn take_from(
    free: &FreeCount,
    seen: Sight,
    want: usize,
    ahead: Option<&RevocableRange>,
    share: usize,
) -> usize {
    if seen.free == 0 {
        return 0;
    }
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
