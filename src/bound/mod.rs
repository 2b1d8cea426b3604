//! The permits of a bounded queue: never more are taken than its capacity.
//!
//! No shared cache line is written per permit. A handle takes permits ahead into its *range*, and gives
//! permits back to a *free count* of its own; both are in its *record*, where other threads find them. Callers
//! without a handle use the *pool*, a free count with many writers. A record that its owner has left keeps what is in it, and
//! the next owner goes on with its range.
//!
//! | word | written by | how |
//! |---|---|---|
//! | `FreeCount::put` | the owner of the record; of the pool: all threads | store; fetch-and-add |
//! | `FreeCount::taken` | all threads | CAS from a snapshot |
//! | `RevocableRange::used` | the owner | store, per permit |
//! | `RevocableRange::end` | the owner: opens, withdraws | swap |
//! | | a revoker: marks, truncates | fetch-and-and, CAS |
//! | `RevocableRange::filling` | the owner, around what it takes ahead or moves | store |
//! | `revocations` | a revoker, before each truncation | fetch-and-add |
//! | the set of records in use | the owner that acquires a record; a thread that acquires it and finds it empty | fetch-and-add |
//!
//! A permit is *free* while it is in a free count (`put - taken`) or in a range (`end - used`), *in hand*
//! within a call that has taken it from there, and *taken* when that call has returned it.
//!
//! # The range
//!
//! ```text
//!            open: behind all earlier ends              mark (revoker)
//! empty ───────────────────────────────▶ open (e) ───────────────────▶ marked (e)
//!   ▲                                     │   ▲                           │    │
//!   │ used up, or withdraw                │   └───────────────────────────┘    │
//!   └─────────────────────────────────────┘     truncate (revoker): open (u < e) │
//!   ▲                                                                          │
//!   └──────────────────────────────────────────────────────────────────────────┘
//!                                    withdraw (owner)
//! ```
//!
//! The owner takes position `u` by storing `used = u + 1`, a light barrier, and a check that the end
//! is neither marked nor below. A revoker marks the ends of several ranges, passes one heavy barrier,
//! reads each `used` and truncates by a CAS from the marked end to the value it has read; it then has the
//! difference in hand.
//!
//! - *Either the owner sees the mark or the revoker sees the position used*, by the barriers. This also
//!   holds for a revoker that finds a range already marked by another revoker, since it passes its own
//!   barrier after it has seen the mark. So no permit is taken twice.
//! - *An owner that sees a mark, or a lower end*, neither rolls back nor waits for the revoker:
//!   it stores `used` beyond the range and swaps the end. The result of the swap is decisive: a truncation
//!   either came before it, and the owner has the rest in hand, or will fail. A revoker that
//!   reads `used` from now on finds nothing. So a stalled revoker delays nobody.
//! - *An owner that sees a mark may try the same position again* before it withdraws: it stores the same `used`, and an
//!   unmarked end that it reads then was written by a revoker that has finished, or by itself. It must withdraw before the
//!   call ends: until then that position looks used.
//! - *An owner that stalls between its store and its check* has that one position in hand, whether it
//!   obtains it or not; the others can be revoked. `used` need not be accurate for that: a revoker that
//!   has seen it does not take the position, and the owner obtains it; a revoker that has not seen it takes the
//!   position, and the owner's swap shows that. So a stalled owner delays nobody.
//! - *A late revoker* fails. Each range begins behind all ends before it, and within a range the end only
//!   falls, to an unmarked value: so no value of `end`, marked or not, ever
//!   recurs, and a CAS that succeeds was computed from this range, marked all the time since.
//!   Concurrent revokers are arbitrated by the CAS alone. A revoker that finds nothing leaves the mark,
//!   which costs the owner one withdrawal.
//! - *A new range* is opened only after the old one was withdrawn, or used up with
//!   checks that saw it unmarked: nobody can truncate it then. A thread that sees the new end sees
//!   `used` at its start.
//!
//! # Linearizable Full
//!
//! A search is a double collect: it walks over the pool and all records twice. It reports Full if neither walk
//! found a free permit and no version changed between them: the sum of all `taken` and `used`, as seen in each
//! walk, and `revocations` and the version of the set of records in use, read before the first walk and after
//! the second. Then no permit was free between the last read of the first walk and the first read of the second.
//! Proof: suppose permit `p` was free at that time.
//!
//! - In a free count, the second walk sees it put in, so it must see it taken; the first walk has not
//!   seen that, so `taken` differs.
//! - In a range, the second walk sees the range opened. If it sees the position used, `used` differs.
//!   If it sees the end truncated, it sees the revoker's increment of `revocations` too. If the first walk
//!   has seen that increment before it began, it has seen the mark, hence the range with the free `p` in it:
//!   it has found it. If not, `revocations` differs.
//!
//! "Sees" means happens-before: every write that takes a permit is Release, and every read of a walk is
//! Acquire. All versions only grow, and both walks have visited the same records, so the sums are equal
//! only if each term is. A record that is not in use is empty: the thread that retired it had acquired it, so nobody
//! gave permits back there. A walk is repeated only if something was found or has changed, and then another thread
//! has taken permits, or acquired or released a record: the search is lock-free. `used` may change without a permit
//! being taken, but only once per range and per withdrawal.
//!
//! # Waking waiters
//!
//! A call takes what it needs and, where there is more, a share for its own range; a handle that gives many permits
//! back moves them to the pool, so that others need not search every free count. While a call has such permits
//! in hand its range is *filling*; a search that finds nothing except a filling range
//! yields and searches again, a limited number of times. It may then wait although permits are in hand elsewhere;
//! so all permits that were in hand and become available again are reported, and the caller wakes as many waiters:
//! those put into its own range, or put back from it, as *unsaid*; those moved to the pool with those given back.
//!
//! # All or nothing
//!
//! A batch takes all its permits from the pool by one CAS. If there are too few it moves the missing ones to the
//! pool, from free counts and ranges, and tries again; it gives up when a count shows that fewer are free
//! than it wants. So no batch has a part in hand that another one lacks, and two batches cannot make each other
//! fail: a CAS fails only because another call has taken permits, and permits leave the pool only for a
//! call that obtains all it wants. The exception is a batch that takes a part and gathers the rest;
//! there is at most one, the first in the wait queue.
//!
//! A batch that fails reports the permits that it has moved and left in the pool. One that succeeds need not: it
//! takes at least as many as it ever had in hand at one time, which is no more than it wants.

#[cfg_attr(not(feature = "broker"), allow(unused, unreachable_pub))]
mod budget;
mod free_count;
mod owner;
mod permits;
mod record;
mod room;
mod search;

#[cfg(all(loom, test))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::raw::{record_pool, RecordPool};
use crate::sync::{barrier, AtomicUsize, SMALL};
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub use budget::Budget;
use crossbeam_utils::CachePadded;
use free_count::{FreeCount, START};
use owner::RecordOwner;
pub(crate) use permits::Permits;
use record::PermitRecord;
pub(crate) use room::Room;
use std::sync::Arc;

/// More permits than can ever be used; larger limits are treated as unlimited.
const MAX_CAPACITY: usize = 1 << 62;

/// The most permits that a handle takes ahead.
const CHUNK: usize = 256;

/// All handles together take ahead one of this number of permits at most.
const PART: usize = if SMALL { 2 } else { 4 };

/// The least share: a smaller one is not more than a push needs.
const MIN_SHARE: usize = 2;

/// The permits of a bounded queue, shared by all its handles.
pub(crate) struct Capacity {
    limit: usize,
    /// A record without an owner, whose range is always empty.
    pool: PermitRecord,
    /// Attempts to revoke permits of a range.
    revocations: AtomicUsize,
    records: RecordPool<Arc<PermitRecord>>,
}

impl Capacity {
    pub(crate) fn new(limit: usize) -> Self {
        barrier::prepare();
        Self {
            limit,
            pool: PermitRecord {
                returned: CachePadded::new(FreeCount::with(limit.min(MAX_CAPACITY))),
                ..PermitRecord::default()
            },
            revocations: AtomicUsize::new(START),
            records: RecordPool::new(record_pool::FIRST),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a permit without a record; `false` only as documented at [`gather`](Self::gather).
    #[must_use = "the permit is taken"]
    pub(crate) fn take_shared(&self) -> bool {
        let pool = &self.pool.returned;
        pool.take(pool.snapshot(), 1) == 1 || self.gather(1, None, &mut 0) == 1
    }

    /// Gives permits back without a record. Returns their number.
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn give_shared(&self, permits: usize) -> usize {
        self.pool.returned.put(permits);
        permits
    }

    /// The number of free permits: approximate while other threads use them, exact at rest.
    pub(crate) fn free(&self) -> usize {
        let records = self.records.in_use().map(|record| &**record);
        let in_record = |record: &PermitRecord| {
            let (unused, _) = record.range.snapshot();
            unused + record.returned.snapshot().free
        };
        let free = records.chain([&self.pool]).map(in_record).sum::<usize>();
        let out = self.limit.min(MAX_CAPACITY).saturating_sub(free);
        self.limit - out
    }

    /// The number of records that a search visits.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn records_in_use(&self) -> usize {
        self.records.used().from(0).count()
    }

    /// How many of `free` permits a call may take, if that is more than it needs: half of them, and not more
    /// than if all handles together had a part of the capacity, so that a search finds the rest without revoking. Where permits
    /// are scarce the halves are small, and with fewer than four left each push takes its own.
    fn share(&self, free: usize) -> usize {
        if free < 2 * MIN_SHARE {
            return 0;
        }
        let handles = self.records.used().from(0).count().max(1);
        let most = self.limit / (PART * handles);
        (free / 2).min(most).min(CHUNK)
    }

    /// Whether no permit is free outside of ranges. A hint: only a search that finds none has proved that.
    pub(crate) fn looks_full(&self) -> bool {
        let none = |record: &PermitRecord| record.returned.snapshot().free == 0;
        none(&self.pool) && self.records.in_use().all(|record| none(record))
    }
}
