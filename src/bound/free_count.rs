//! A free count: free permits that any thread may take.

use crate::sync::{planted, start, weak, AtomicUsize, Ordering};

/// Where totals begin that wrap.
#[allow(clippy::cast_possible_truncation)] // of so many bits
pub(super) const START: usize = start(usize::BITS) as usize;

/// The total numbers of permits put in and taken out; the difference is free.
///
/// Both totals only grow, and wrap, so a take computed from a snapshot is correct if its CAS finds the total of takes
/// unchanged: the permits put in before the snapshot are still there.
pub(super) struct FreeCount {
    put: AtomicUsize,
    taken: AtomicUsize,
}

/// A snapshot of a free count.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    pub(super) free: usize,
    /// The total taken; it grows whenever a permit is taken.
    pub(super) taken: usize,
}

impl Default for FreeCount {
    fn default() -> Self {
        Self::with(0)
    }
}

impl FreeCount {
    pub(super) fn with(permits: usize) -> Self {
        Self {
            put: AtomicUsize::new(START.wrapping_add(permits)),
            taken: AtomicUsize::new(START),
        }
    }

    /// The total put in; for the single writer of a record's free count.
    pub(super) fn put_so_far(&self) -> usize {
        // ORDERING: Relaxed; acquiring the record has synchronized with its last writer.
        self.put.load(Ordering::Relaxed)
    }

    /// Puts permits in; for a free count with many writers.
    pub(super) fn put(&self, permits: usize) {
        // ORDERING: Release; pairs with `free.look-put`: a thread that sees the permits here sees them gone from
        // where they were before.
        self.put.fetch_add(permits, weak!("free.put", Release));
    }

    /// Puts permits in; for the single writer of a record's free count, which knows the total.
    #[inline]
    pub(super) fn put_up_to(&self, sum: usize) {
        // ORDERING: Release; pairs with `free.look-put`.
        self.put.store(sum, weak!("free.put-up-to", Release));
    }

    #[inline]
    pub(super) fn snapshot(&self) -> Sight {
        // ORDERING: Acquire; pairs with `free.take`: a thread that sees permits gone sees what their taker had
        // put elsewhere before. Loaded before `put`, so that the difference is never negative.
        let taken = self.taken.load(weak!("free.look-taken", Acquire));
        // ORDERING: Acquire; pairs with `free.put` and `free.put-up-to`.
        let put = self.put.load(weak!("free.look-put", Acquire));
        Sight {
            free: put.wrapping_sub(taken),
            taken,
        }
    }

    /// Takes up to `most` of the permits in the snapshot; 0 if another thread has taken some since.
    pub(super) fn take(&self, seen: Sight, most: usize) -> usize {
        let got = seen.free.min(most);
        if got == 0 {
            return 0;
        }
        let to = seen.taken.wrapping_add(got);
        // ORDERING: Release; pairs with `free.look-taken`. Relaxed on failure: nothing is read.
        let release = weak!("free.take", Release);
        let took = self
            .taken
            .compare_exchange(seen.taken, to, release, Ordering::Relaxed);
        if took.is_err() && !planted!("free.takes-anyway") {
            return 0;
        }
        got
    }
}
