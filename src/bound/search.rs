//! The search for free permits in all records and the pool, and the linearizable answer that there is none.

use super::free_count::{FreeCount, Sight};
use super::record::{PermitRecord, RevocableRange};
use super::Capacity;
use crate::raw::SetVersion;
use crate::sync::{barrier, planted, thread, weak, Ordering, SMALL};

/// The most ranges revoked with one heavy barrier.
const AT_ONCE: usize = if SMALL { 2 } else { 16 };

/// How many times a search yields to threads that are moving permits before it reports that there are too few. Under loom a
/// search that waited for such a permit would never end.
const PATIENCE: usize = match (cfg!(loom), SMALL) {
    (true, _) => 0,
    (false, true) => 1,
    (false, false) => 64,
};

/// The observations of one walk over all records and the pool.
struct Walk {
    /// `revocations` before the walk.
    revocations: usize,
    /// The version of the set of records in use, before the walk.
    records: SetVersion,
    /// The sum of all `taken` and `used`, which grows whenever a permit is taken, except by revocations.
    taken: usize,
    /// The sum of all free permits.
    free: usize,
    /// The part of them that is in ranges.
    unused: usize,
    /// Whether a range was filling.
    underway: bool,
}

impl Walk {
    fn begin(capacity: &Capacity) -> Self {
        Self {
            // ORDERING: Acquire; pairs with `range.step-revocations`.
            revocations: capacity.revocations.load(weak!("search.begin", Acquire)),
            records: capacity.records.used().version(),
            taken: 0,
            free: 0,
            unused: 0,
            underway: false,
        }
    }

    /// Looks at a record; returns its permits that were put back.
    fn look(&mut self, record: &PermitRecord) -> Sight {
        self.underway |= record.range.is_filling();
        let (unused, used) = record.range.snapshot();
        let seen = record.returned.snapshot();
        self.taken = self.taken.wrapping_add(used).wrapping_add(seen.taken);
        self.unused += unused;
        self.free = self.free.saturating_add(unused).saturating_add(seen.free);
        seen
    }
}

/// What a search comes to: a record, the number to begin with when permits are found there, and those that were put back;
/// or the end of a walk.
type At<'a> = Option<(usize, &'a PermitRecord, Sight)>;

impl Capacity {
    /// Takes `want` permits, and more for the range `ahead` from where many are free. Returns fewer only if none was free
    /// at some point during the call, except those that a stalled call has in hand. `first`: the record where it begins,
    /// and then the one where it found permits last.
    pub(super) fn gather(
        &self,
        want: usize,
        ahead: Option<&RevocableRange>,
        first: &mut usize,
    ) -> usize {
        let mut hand = 0;
        self.search(1, *first, |walk, at| {
            let need = want - hand;
            if let Some((number, record, seen)) = at {
                let got = self.take_from(&record.returned, seen, need, ahead);
                if got > 0 {
                    *first = number;
                }
                hand += got;
            } else if walk.unused > 0 {
                hand += self.revoke(need, ahead);
            }
            hand >= want
        });
        hand
    }

    /// Takes `want` permits at once. Otherwise returns as an error how many it has moved to the pool, where others can
    /// find them: then fewer than `want` were free at some point during the call, except those that a stalled call has in
    /// hand.
    ///
    /// All come from the pool, by one CAS; permits elsewhere are moved there first. So no batch has a part in hand
    /// that another one lacks, and a failed CAS means that another call has succeeded.
    pub(super) fn gather_all(&self, want: usize, own: &RevocableRange) -> Result<(), usize> {
        let pool = &self.pool.returned;
        let mut moved = 0;
        loop {
            let seen = pool.snapshot();
            if seen.free >= want {
                if pool.take(seen, want) == want {
                    return Ok(());
                }
                continue;
            }
            planted!(
                "search.holds-a-part",
                moved += self.give_shared(pool.take(seen, want))
            );
            if !self.search(want, 0, |walk, _| walk.free >= want) {
                planted!("search.reports-no-moved", return Err(0));
                return Err(moved);
            }
            moved += self.move_to_pool(want - seen.free, own);
        }
    }

    /// Moves up to `most` permits from the records to the pool, and returns how many. They are in hand
    /// meanwhile, so the caller's range is filling.
    fn move_to_pool(&self, most: usize, own: &RevocableRange) -> usize {
        own.begin_filling();
        let collect = |hand: usize, record: &PermitRecord| {
            let free = &record.returned;
            hand + free.take(free.snapshot(), most - hand)
        };
        let records = self.records.in_use().map(|record| &**record);
        let mut hand = records.fold(0, collect);
        if hand < most {
            hand += self.revoke(most - hand, None);
        }
        let moved = self.give_shared(hand);
        own.end_filling();
        moved
    }

    /// Visits the pool, all records, from number `from` on, and the end of the walk, again and again until
    /// `visit` returns true. Returns false if fewer than `enough` permits were free at some point during the call, except
    /// those that a stalled call has in hand.
    fn search(
        &self,
        enough: usize,
        from: usize,
        mut visit: impl FnMut(&Walk, At<'_>) -> bool,
    ) -> bool {
        let mut last: Option<Walk> = None;
        let mut patience = PATIENCE;
        loop {
            let mut walk = Walk::begin(self);
            let seen = walk.look(&self.pool);
            if visit(&walk, Some((from, &self.pool, seen))) {
                return true;
            }
            let before = self.records.used().from(0);
            let before = before.take_while(|&number| number < from);
            for number in self.records.used().from(from).chain(before) {
                let record = self.records.get(number);
                let free = walk.free;
                let seen = walk.look(record);
                if visit(&walk, Some((number, record, seen))) {
                    return true;
                }
                if walk.free == free && self.records.is_free(number) {
                    self.retire(number);
                }
            }
            if visit(&walk, None) {
                return true;
            }
            let before = planted!("search.walks-once").then_some(&walk);
            if self.are_fewer_between(before.or(last.as_ref()), &walk, enough) {
                if !walk.underway || patience == 0 {
                    return false;
                }
                patience -= 1;
                thread::yield_now();
            }
            last = Some(walk);
        }
    }

    /// Whether fewer than `enough` permits were free between two walks, the second of which has just ended: both have found
    /// fewer, and none was taken between them.
    fn are_fewer_between(&self, last: Option<&Walk>, walk: &Walk, enough: usize) -> bool {
        last.is_some_and(|last| {
            // ORDERING: Relaxed; a walk that has seen permits revoked has seen the increment, see `truncate`.
            let revocations = self.revocations.load(Ordering::Relaxed);
            last.free.max(walk.free) < enough
                && (last.taken == walk.taken || planted!("search.takes-unseen"))
                && last.revocations == revocations
                && last.records == self.records.used().version()
        })
    }

    /// Takes up to `want` of the permits in a snapshot, or up to a share if that is more and there is a range for the
    /// rest; the range is filling then.
    fn take_from(
        &self,
        free: &FreeCount,
        seen: Sight,
        want: usize,
        ahead: Option<&RevocableRange>,
    ) -> usize {
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

    /// Revokes up to `want` permits from ranges, or half of those found for the range `ahead`, which is filling then:
    /// one heavy barrier serves several pushes.
    pub(super) fn revoke(&self, want: usize, ahead: Option<&RevocableRange>) -> usize {
        let mut marked = [None; AT_ONCE];
        let (mut len, mut expected) = (0, 0);
        for record in self.records.in_use() {
            let range: &RevocableRange = &record.range;
            let (unused, _) = range.snapshot();
            if unused > 0 {
                marked[len] = Some((range, range.mark()));
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
        barrier::heavy_against_compiler("search.heavy");
        let most = want.max(ahead.map_or(0, |_| self.share(expected)));
        let filling = ahead.filter(|_| most > want);
        if let Some(range) = filling {
            range.begin_filling();
        }
        let truncate = |hand, (range, end): (&RevocableRange, usize)| {
            hand + range.truncate(end, most - hand, &self.revocations)
        };
        let taken = marked.into_iter().flatten().fold(0, truncate);
        if let Some(range) = filling.filter(|_| taken <= want) {
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
}
