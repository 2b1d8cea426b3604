//! The counters of one handle, written by it alone, so that no shared line is written per item.

use crate::sync::{AtomicU64, Ordering};

/// What one handle has done, in items. All counts only grow.
#[derive(Default)]
pub(super) struct Desk {
    /// Popped without a transaction.
    popped: AtomicU64,
    /// Taken by transactions, and how they ended.
    taken: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
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
    pub(super) fn count_popped(&self, items: usize) {
        step(&self.popped, items);
    }

    #[inline]
    pub(super) fn count_taken(&self, items: usize) {
        step(&self.taken, items);
    }

    #[inline]
    pub(super) fn count_committed(&self, items: usize) {
        step(&self.committed, items);
    }

    #[inline]
    pub(super) fn count_aborted(&self, items: usize) {
        step(&self.aborted, items);
    }

    /// Counts on a desk that several threads share.
    pub(super) fn share_popped(&self, items: usize) {
        // ORDERING: Relaxed; statistics.
        self.popped.fetch_add(items as u64, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, tally: &mut Tally) {
        // ORDERING: Relaxed, all; statistics.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (committed, aborted) = (load(&self.committed), load(&self.aborted));
        tally.committed += load(&self.popped) + committed;
        tally.aborted += aborted;
        tally.held += load(&self.taken).saturating_sub(committed + aborted);
    }
}

/// Steps a counter that only the caller writes.
#[inline]
fn step(counter: &AtomicU64, items: usize) {
    // ORDERING: Relaxed, both; statistics with a single writer.
    let count = counter.load(Ordering::Relaxed) + items as u64;
    counter.store(count, Ordering::Relaxed);
}
