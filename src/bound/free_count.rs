//! A free count: free permits that anybody may take.

use crate::sync::{planted, weak, AtomicUsize, Ordering};

/// Permits put in and taken out, both counted from the beginning; the difference is free.
///
/// Both counts only grow, so a take that was computed from a look is right if its CAS finds the
/// count of takes unchanged: what was put in by then is still there.
#[derive(Default)]
pub(super) struct FreeCount {
    put: AtomicUsize,
    taken: AtomicUsize,
}

/// What was seen of a free count.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    pub(super) free: usize,
    /// Taken so far; it grows whenever a permit goes.
    pub(super) taken: usize,
}

impl FreeCount {
    pub(super) fn with(permits: usize) -> Self {
        Self {
            put: AtomicUsize::new(permits),
            taken: AtomicUsize::new(0),
        }
    }

    /// How many were ever put in; for the one writer of a record's free count.
    pub(super) fn put_so_far(&self) -> usize {
        // ORDERING: Relaxed; the lease of the record has passed on what the last writer did.
        self.put.load(Ordering::Relaxed)
    }

    /// Puts permits in; for a free count with many writers.
    pub(super) fn put(&self, permits: usize) {
        // ORDERING: Release; pairs with `free.look-put`: who sees the permits sees where they come from
        // gone.
        self.put.fetch_add(permits, weak!("free.put", Release));
    }

    /// Puts permits in; for the one writer of a record's free count, who knows the sum.
    #[inline]
    pub(super) fn put_up_to(&self, sum: usize) {
        // ORDERING: Release; pairs with `free.look-put`.
        self.put.store(sum, weak!("free.put-up-to", Release));
    }

    #[inline]
    pub(super) fn look(&self) -> Sight {
        // ORDERING: Acquire; pairs with `free.take`: who sees permits gone sees what their taker had put
        // elsewhere before. Ahead of `put`, so that the difference is never negative.
        let taken = self.taken.load(weak!("free.look-taken", Acquire));
        // ORDERING: Acquire; pairs with `free.put` and `free.put-up-to`.
        let put = self.put.load(weak!("free.look-put", Acquire));
        Sight {
            free: put.wrapping_sub(taken),
            taken,
        }
    }

    /// Takes up to `most` of the permits seen. None if somebody else took some since.
    pub(super) fn take(&self, seen: Sight, most: usize) -> usize {
        let got = seen.free.min(most);
        let (from, to) = (seen.taken, seen.taken.wrapping_add(got));
        // ORDERING: Release; pairs with `free.look-taken`. Relaxed on failure: nothing is read.
        let release = weak!("free.take", Release);
        match self
            .taken
            .compare_exchange(from, to, release, Ordering::Relaxed)
        {
            Ok(_) => got,
            Err(_) if planted!("free.takes-anyway") => got,
            Err(_) => 0,
        }
    }
}
