//! The search for free permits in all records and the pool, and the linearizable answer that there is none.

use super::free_count::FreeCount;
use super::owner::{Found, POOL};
use super::Capacity;
use crate::raw::SetVersion;
use crate::sync::{planted, thread, weak, Ordering, SMALL};
use std::sync::Arc;

/// How many times a search yields to batches that are moving permits to the pool before it reports that there are too
/// few. Under loom a search that waited for such a permit would never end.
const PATIENCE: usize = match (cfg!(loom), SMALL) {
    (true, _) => 0,
    (false, true) => 1,
    (false, false) => 64,
};

/// The observations of one walk over all records and the pool.
struct Walk {
    /// Whether a batch was moving permits, before the walk.
    underway: bool,
    /// The version of the set of records in use, before the walk.
    records: SetVersion,
    /// The sum of all `taken`, which grows whenever a permit is taken.
    taken: usize,
    /// The sum of all free permits.
    free: usize,
}

impl Walk {
    fn begin(capacity: &Capacity) -> Self {
        Self {
            // ORDERING: Acquire; pairs with `search.end-moving`: a walk that sees it sees the permits in the pool.
            underway: capacity.moving.load(weak!("search.is-moving", Acquire)) > 0,
            records: capacity.records.used().version(),
            taken: 0,
            free: 0,
        }
    }

    fn look<'a>(&mut self, number: usize, count: &'a Arc<FreeCount>) -> Found<'a> {
        let seen = count.snapshot();
        self.taken = self.taken.wrapping_add(seen.taken);
        self.free = self.free.saturating_add(seen.free);
        Found {
            number,
            count,
            seen,
        }
    }
}

impl Capacity {
    /// Takes `want` permits, fewer only if none was free at some point during the call, except those that a stalled
    /// batch is moving. Begins at record `from`, and passes on what is left where it found some.
    pub(super) fn gather(
        &self,
        want: usize,
        from: usize,
        mut on_found: impl FnMut(Found<'_>),
    ) -> usize {
        let mut hand = 0;
        self.search(1, from, |_, mut found| {
            let got = found.count.take(&mut found.seen, want - hand);
            hand += got;
            if got > 0 {
                on_found(found);
            }
            hand == want
        });
        hand
    }

    /// Takes `want` permits at once. Otherwise returns as an error how many it has moved to the pool, where others can
    /// find them: then fewer than `want` were free at some point during the call, except those that a stalled batch is
    /// moving.
    ///
    /// All come from the pool, by one CAS; permits elsewhere are moved there first. So no batch has a part in hand
    /// that another one lacks, and a failed CAS means that another call has succeeded.
    pub(super) fn gather_all(&self, want: usize) -> Result<(), usize> {
        let mut moved = 0;
        loop {
            let mut seen = self.pool.snapshot();
            if seen.free >= want {
                if self.pool.take(&mut seen, want) == want {
                    return Ok(());
                }
                continue;
            }
            planted!("search.holds-a-part", {
                moved += self.give_shared(self.pool.take(&mut seen, want));
            });
            if !self.search(want, 0, |free, _| free >= want) {
                planted!("search.reports-no-moved", return Err(0));
                return Err(moved);
            }
            moved += self.move_to_pool(want - seen.free);
        }
    }

    /// Moves up to `most` permits from the records to the pool, and returns how many. They are in hand meanwhile.
    fn move_to_pool(&self, most: usize) -> usize {
        // ORDERING: Relaxed; ordered by `free.take`: a thread that sees the permits gone sees this.
        self.moving.fetch_add(1, Ordering::Relaxed);
        let take = |hand: usize, count: &Arc<FreeCount>| {
            hand + count.take(&mut count.snapshot(), most - hand)
        };
        let moved = self.give_shared(self.records.in_use().fold(0, take));
        // ORDERING: Release; pairs with `search.is-moving`.
        self.moving
            .fetch_sub(1, weak!("search.end-moving", Release));
        moved
    }

    /// Visits all free counts, from record `from` on and the pool at last, until `visit` returns true. Returns false if
    /// fewer than `enough` permits were free at some point during the call, except those that a stalled batch is moving.
    /// `visit` gets the sum of the free permits seen in this walk.
    fn search(
        &self,
        enough: usize,
        from: usize,
        mut visit: impl FnMut(usize, Found<'_>) -> bool,
    ) -> bool {
        let mut last: Option<Walk> = None;
        let mut patience = PATIENCE;
        loop {
            let mut walk = Walk::begin(self);
            let before = self.records.used().from(0);
            let before = before.take_while(|&number| number < from);
            for number in self.records.used().from(from).chain(before) {
                let found = walk.look(number, self.records.get(number));
                let is_empty = found.seen.free == 0;
                if visit(walk.free, found) {
                    return true;
                }
                if is_empty && self.records.is_free(number) {
                    self.retire(number);
                }
            }
            let found = walk.look(POOL, &self.pool);
            if visit(walk.free, found) {
                return true;
            }
            let first = planted!("search.walks-once").then_some(&walk);
            if walk.free < enough && self.none_gone(first.or(last.as_ref()), &walk) {
                if !walk.underway || patience == 0 {
                    return false;
                }
                patience -= 1;
                thread::yield_now();
            }
            last = Some(walk);
        }
    }

    /// Whether no permit was taken between two walks, the second of which has just ended: then it has seen all that were
    /// free between them.
    fn none_gone(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| {
            (last.taken == walk.taken || planted!("search.takes-unseen"))
                && last.records == self.records.used().version()
        })
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
        let is_empty = self.records.get(number).snapshot().free == 0;
        if is_empty && !self.records.stays(number) && self.records.is_in_use(number) {
            self.records.retire(number);
        }
        self.records.release(number);
    }
}
