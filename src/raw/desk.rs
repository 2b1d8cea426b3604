//! The counters of one handle, written by it alone, so that no shared line is written per item.

use crate::sync::{AtomicU64, Ordering};

/// What one handle has done, in items.
#[derive(Default)]
pub(super) struct Desk {
    committed: AtomicU64,
    aborted: AtomicU64,
    held: AtomicU64,
}

/// The counters of all handles, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) held: u64,
}

impl Desk {
    #[inline]
    pub(super) fn count_committed(&self, items: usize) {
        step(&self.committed, items);
    }

    pub(super) fn count_aborted(&self, items: usize) {
        step(&self.aborted, items);
    }

    #[inline]
    pub(super) fn set_held(&self, items: usize) {
        // ORDERING: Relaxed; statistics with a single writer.
        self.held.store(items as u64, Ordering::Relaxed);
    }

    /// Counts on a desk that several threads share.
    pub(super) fn share_committed(&self, items: usize) {
        // ORDERING: Relaxed; statistics.
        self.committed.fetch_add(items as u64, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, tally: &mut Tally) {
        // ORDERING: Relaxed, all; statistics.
        tally.committed += self.committed.load(Ordering::Relaxed);
        tally.aborted += self.aborted.load(Ordering::Relaxed);
        tally.held += self.held.load(Ordering::Relaxed);
    }
}

/// Steps a counter that only the caller writes.
#[inline]
fn step(counter: &AtomicU64, items: usize) {
    // ORDERING: Relaxed, both; statistics with a single writer.
    let count = counter.load(Ordering::Relaxed) + items as u64;
    counter.store(count, Ordering::Relaxed);
}
