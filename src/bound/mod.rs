//! The permits of a bounded queue: as many may be out as the queue has room, and never more.
//!
//! No shared line is written per permit. A handle takes permits ahead into its *cache*, and gives
//! permits back in a *free count* of its own; both are in its *record*, where others find them. Callers
//! without a handle use the *pool*, a free count with many writers.
//!
//! | word | written by | how |
//! |---|---|---|
//! | `FreeCount::put` | the owner of the record; of the pool: everybody | store; fetch-and-add |
//! | `FreeCount::taken` | everybody | CAS, by what a look before has seen |
//! | `RevocableRange::used` | the owner | store, per permit |
//! | `RevocableRange::end` | the owner: opens, withdraws | swap |
//! | | a thief: marks, truncates | fetch-and-and, CAS |
//! | `RevocableRange::filling` | the owner, around what it takes ahead or moves | store |
//! | `revocations` | a thief, before each truncation | fetch-and-add |
//! | which records are in use | the owner, when it comes; who leases it and finds it empty | fetch-and-add |
//!
//! A permit is *free* while it is in a free count (`put - taken`) or in a range (`end - used`); it is *in
//! hand* within a call that has taken it from there, and *out* when that call has returned it.
//!
//! # The range
//!
//! ```text
//!            open: behind all earlier ends              mark (thief)
//! empty ───────────────────────────────▶ open (e) ───────────────────▶ marked (e)
//!   ▲                                     │   ▲                           │    │
//!   │ used up, or withdraw                │   └───────────────────────────┘    │
//!   └─────────────────────────────────────┘     truncate (thief): open (u < e) │
//!   ▲                                                                          │
//!   └──────────────────────────────────────────────────────────────────────────┘
//!                                    withdraw (owner)
//! ```
//!
//! The owner takes position `u` by storing `used = u + 1`, a light barrier, and a look that the end
//! is not marked and not below. A thief marks the ends of several ranges, passes one heavy barrier,
//! reads each `used` and truncates by a CAS from the marked end to what it has read; the difference
//! is in its hand.
//!
//! - *Either the owner sees the mark or the thief sees the position used*: by the barriers. It
//!   holds for a thief that finds a range marked by another one too, since it passes its own
//!   barrier after it has seen the mark. So no permit is taken twice.
//! - *An owner that sees a mark, or a lower end*, rolls nothing back and leaves the thief to itself:
//!   it stores `used` beyond the range and swaps the end. What the swap answers is the truth: a
//!   truncation came before it, and the rest is in the owner's hand, or will fail. A thief that
//!   reads `used` from now on finds nothing. So a thief that stalls delays nobody.
//! - *An owner that stalls between its store and its look* has that one position in hand, whether it
//!   gets it or not; the others can be revoked. `used` need not be right for that: a thief that
//!   has seen it leaves the position, and the owner gets it; a thief that has not takes it, and the
//!   owner's swap says so. So an owner that stalls delays nobody.
//! - *A thief that comes late* fails. Each range begins behind all ends before it, and ends only
//!   fall within a range, to an unmarked one: so no value of `end`, marked or not, ever comes
//!   twice, and a CAS that succeeds was computed from this range, marked all the time since.
//!   Two thieves at once differ by their CAS alone. A thief that finds nothing leaves the mark,
//!   which costs the owner one withdrawal.
//! - *A new range* is opened only after the old one was used up to the end, all positions with a
//!   look that saw it unmarked, or withdrawn: nobody can truncate it then. Who sees the new end sees
//!   `used` at its start.
//!
//! # Strict Full
//!
//! A search walks over the pool and all records twice. In both walks nothing was free anywhere,
//! and between them no mark has changed: the sum of all `taken` and `used`, as seen in each walk,
//! and `revocations` and the version of which records are in use, read before the first walk and after
//! the second. Then nothing was free after all that the first walk has seen, and before what the second
//! one has. For let permit `p` have been free then:
//!
//! - In a free count the second walk sees it put in, so that it must see it taken; the first walk has not
//!   seen that, so `taken` differs.
//! - In a range the second walk sees it opened. If it sees the position used, `used` differs.
//!   If it sees the end truncated, it sees the thief's step of `revocations` too. If the first walk
//!   has seen that step before it began, it has seen the mark, hence the range with `p` in it,
//!   which was free: it has found it. If not, `revocations` differs.
//!
//! "Sees" is happens-before: whatever makes a permit go is a Release write, and each look is an
//! Acquire read. All marks only grow, and both walks have seen the same records, so the sums are equal
//! only if each mark is. A record that is not in use has nothing: who retired it had its lease, so nobody gave back there. A
//! walk is repeated only if something was found or has changed, and then somebody else has taken permits,
//! or come or gone: lock-free. `used` may change without a permit being taken, but only once per range
//! and per withdrawal.
//!
//! # Who is to be woken
//!
//! A call takes what it needs and, where there is more, a share for its own range; and who gives much
//! back moves it to the pool, so that others need not look at every free count. While a call has such permits
//! in hand its range says that it is *filling*; a search that finds nothing, but a range that is filling,
//! lets others run and searches again, a number of times. Who has found nothing all the same may wait;
//! so whatever was in hand and can be found again is reported, and the caller wakes so many: what is put
//! into the own range, as *spread*; what is given back, or moved to the pool, as the answer of the call.
//!
//! # All or nothing
//!
//! A batch takes all its permits from the pool by one CAS. If there are too few it moves to the pool what
//! it lacks, from free counts and ranges, and tries again; it gives up when a count says that fewer are free
//! than it wants. So no batch has a part in hand that another one lacks, and two cannot keep each other
//! from all: a CAS fails only because somebody has taken permits, and what is in the pool leaves it only
//! with somebody who has got all that it wants. A batch that takes a part and gathers is an exception,
//! of which there is one, the first in the wait queue.
//!
//! What a batch has moved and leaves in the pool it reports if it fails. If it succeeds it need not: of
//! what was in its hand at one time, no more than it wants, it takes as much.

mod cache;
mod free_count;
mod record;
mod search;

#[cfg(all(loom, test))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::raw::{record_pool, RecordPool};
use crate::sync::barrier;
use crate::sync::{AtomicUsize, SMALL};
pub(crate) use cache::PermitCache;
use crossbeam_utils::CachePadded;
use free_count::FreeCount;
use record::PermitRecord;
use std::sync::Arc;

/// More permits than anybody can use up; larger limits are no limits.
const MOST: usize = 1 << 62;
/// The most permits that a cache takes ahead.
const CHUNK: usize = 256;
/// A share of fewer is not worth it: others would soon come to revoke them.
const LEAST: usize = if SMALL { 1 } else { 32 };

/// The permits of a bounded queue, shared by all its handles.
pub(crate) struct Capacity {
    limit: usize,
    pool: CachePadded<FreeCount>,
    /// Attempts to revoke permits of a cache.
    revocations: CachePadded<AtomicUsize>,
    records: RecordPool<Arc<PermitRecord>>,
}

/// Permits taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the permits are out, and those spread may be waited for"]
pub(crate) struct Took {
    pub(crate) got: usize,
    /// Permits that others may have missed while this call had them in hand, and can find now: so
    /// many waiting pushers are to be woken.
    pub(crate) spread: usize,
}

impl Took {
    /// All that was wanted, and nothing else was in hand.
    fn all(want: usize) -> Self {
        Self {
            got: want,
            spread: 0,
        }
    }
}

impl Capacity {
    pub(crate) fn new(limit: usize) -> Self {
        barrier::prepare();
        Self {
            limit,
            pool: CachePadded::new(FreeCount::with(limit.min(MOST))),
            revocations: CachePadded::new(AtomicUsize::new(0)),
            records: RecordPool::new(record_pool::FIRST),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes up to `want` permits without a cache. Fewer only as [`gather`](Self::gather) says.
    #[must_use = "the permits are out"]
    pub(crate) fn take_shared(&self, want: usize) -> usize {
        self.gather(want, None, &mut 0)
    }

    /// Gives permits back without a cache. Answers as [`PermitCache::give`].
    #[must_use = "those who wait for the permits are to be woken"]
    pub(crate) fn give_shared(&self, permits: usize) -> usize {
        self.pool.put(permits);
        permits
    }

    /// The free permits: approximate while others work, exact at rest.
    pub(crate) fn free(&self) -> usize {
        let in_record = |record: &Arc<PermitRecord>| {
            let (unused, _) = record.range.look();
            unused + record.returned.look().free
        };
        let free = self.pool.look().free + self.records.in_use().map(in_record).sum::<usize>();
        let out = self.limit.min(MOST).saturating_sub(free);
        self.limit - out
    }

    /// How many of so many free permits a cache may take ahead.
    fn share(&self, free: usize) -> usize {
        match free / (2 * self.records.count_in_use().max(1)) {
            few if few < LEAST => 0,
            share => share.min(CHUNK),
        }
    }
}
