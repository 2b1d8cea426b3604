//! The permits of a bounded queue: never more are taken than its capacity.
//!
//! No shared cache line is written per permit. A handle puts permits back into the *free count* of its own *record*, and
//! takes permits from the free count of any record: from its *source*, where it found some last, for as long as there are
//! any. What belongs to no handle is in the *pool*, a free count with many writers, which has all permits at first.
//!
//! | word | written by | how |
//! |---|---|---|
//! | `FreeCount::put` | the owner of the record; of the pool: all threads | store; fetch-and-add |
//! | `FreeCount::taken` | all threads | CAS from a snapshot |
//! | `Capacity::moving` | a batch, around what it moves to the pool | fetch-and-add |
//! | the set of records in use | the owner that acquires a record; a thread that acquires it and finds it empty | fetch-and-add |
//!
//! A permit is *free* while it is in a free count (`put - taken`), *in hand* while a batch moves it to the pool, and *taken*
//! otherwise.
//!
//! # Linearizable Full
//!
//! A search is a double collect: it walks over all records and the pool twice. It reports Full if the second walk
//! found no free permit and no version changed between the two: the sum of all `taken`, as seen in each
//! walk, and the version of the set of records in use, read before the first walk and after
//! the second. Then no permit was free between the last read of the first walk and the first read of the second.
//! Proof: suppose permit `p` was free at that time. The second walk sees it put in, so it must see it taken; the first walk
//! has not seen that, so the sum of all `taken` differs.
//!
//! "Sees" means happens-before: every write that takes a permit is Release, and every read of a walk is
//! Acquire. All totals only grow, and both walks have visited the same records, so the sums are equal
//! only if each term is. A record that is not in use is empty: the thread that retired it had acquired it, so nobody
//! gave permits back there. A walk is repeated only if something was found or has changed, and then another thread
//! has taken permits, or acquired or released a record: the search is lock-free.
//!
//! By the same argument fewer than `n` permits were free if the second walk found fewer.
//!
//! # All or nothing
//!
//! A batch takes all its permits from its source or from the pool, by one CAS. If there are too few it moves the missing
//! ones to the pool, from the records, and tries again; it gives up when a count shows that fewer are free
//! than it wants. So no batch has a part in hand that another one lacks, and two batches cannot make each other
//! fail: a CAS fails only because another call has taken permits, and permits leave the pool only for a
//! call that obtains all it wants. The exception is a batch that takes a part and gathers the rest;
//! there is at most one, the first in the wait queue.
//!
//! A search that finds nothing while a batch is *moving* permits yields and searches again, a limited number of times. It
//! may then wait although they are in hand. So a batch that fails reports the permits that it has moved, and
//! the caller wakes as many waiters. One that succeeds need not: it
//! takes at least as many as it ever had in hand at one time, which is no more than it wants.

mod free_count;
mod owner;
mod permits;
mod room;
mod search;

#[cfg(all(loom, test))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::raw::{record_pool, RecordPool};
use crate::sync::AtomicUsize;
use crossbeam_utils::CachePadded;
use free_count::FreeCount;
use owner::RecordOwner;
pub(crate) use permits::Permits;
pub(crate) use room::Room;
use std::sync::Arc;

/// More permits than can ever be used; larger limits are treated as unlimited.
const MAX_CAPACITY: usize = 1 << 62;

/// The permits of a bounded queue, shared by all its handles.
pub(crate) struct Capacity {
    limit: usize,
    pool: Arc<FreeCount>,
    /// The number of batches that are moving permits to the pool.
    moving: CachePadded<AtomicUsize>,
    records: RecordPool<Arc<FreeCount>>,
}

impl Capacity {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            pool: Arc::new(FreeCount::with(limit.min(MAX_CAPACITY))),
            moving: CachePadded::default(),
            records: RecordPool::new(record_pool::FIRST),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a permit without a record; `false` only as documented at [`gather`](Self::gather).
    #[must_use = "the permit is taken"]
    pub(crate) fn take_shared(&self) -> bool {
        self.pool.take(&mut self.pool.snapshot(), 1) == 1 || self.gather(1, 0, |_| ()) == 1
    }

    /// Gives permits back without a record. Returns their number.
    #[must_use = "waiters for the permits must be woken"]
    pub(crate) fn give_shared(&self, permits: usize) -> usize {
        self.pool.put(permits);
        permits
    }

    /// The number of free permits: approximate while other threads use them, exact at rest.
    pub(crate) fn free(&self) -> usize {
        let counts = self.records.in_use().chain([&self.pool]);
        let free = counts.map(|count| count.snapshot().free).sum::<usize>();
        let out = self.limit.min(MAX_CAPACITY).saturating_sub(free);
        self.limit - out
    }

    /// The number of records that a search visits.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn records_in_use(&self) -> usize {
        self.records.used().from(0).count()
    }
}
