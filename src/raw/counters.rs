//! The counters of one handle, written by it alone, so that no shared line is written per item.
//!
//! They also say whether the handle has an open transaction, for the end of a closed queue.

use crate::sync::{planted, weak, AtomicBool, AtomicU64, Ordering};

/// What one handle has done, in items, and whether it has a transaction with work.
#[derive(Default)]
pub(super) struct Counters {
    /// Popped without a transaction.
    popped: AtomicU64,
    /// Taken by transactions, counted before they are claimed, and how they ended.
    taken: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    /// Taken away from transactions by others.
    expired: AtomicU64,
    /// Whether a transaction has staged something, or is about to.
    staging: AtomicBool,
    /// Transactions that have dropped what they had staged.
    unstaged: AtomicU64,
}

/// The counters of all handles, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) expired: u64,
    pub(crate) held: u64,
}

impl Counters {
    #[inline]
    pub(super) fn count_popped(&self, items: usize) {
        step(&self.popped, items);
    }

    /// Counts items that are about to be claimed, so that whoever sees the claim sees the count.
    #[inline]
    pub(super) fn count_taken(&self, items: usize) {
        step(&self.taken, items);
    }

    /// Takes back a count of items that were not there, or were put back without a delivery.
    pub(super) fn uncount_taken(&self, items: usize) {
        // ORDERING: Relaxed; a single writer.
        let count = self.taken.load(Ordering::Relaxed) - items as u64;
        // ORDERING: Release; pairs with `counters.taken`: who sees it sees what was put back.
        self.taken
            .store(count, weak!("counters.uncount-taken", Release));
    }

    #[inline]
    pub(super) fn count_committed(&self, items: usize) {
        step(&self.committed, items);
    }

    #[inline]
    pub(super) fn count_aborted(&self, items: usize) {
        step(&self.aborted, items);
    }

    /// Counts items that were taken away from a transaction of this counters, and are elsewhere by now.
    pub(super) fn count_expired(&self, items: usize) {
        // ORDERING: Release; pairs with `counters.expired`.
        self.expired
            .fetch_add(items as u64, weak!("counters.count-expired", Release));
    }

    /// How many deliveries have ended here, and how many the open transaction holds.
    pub(super) fn deliveries(&self) -> (u64, u64) {
        let mut tally = Tally::default();
        self.add_to(&mut tally);
        (tally.committed + tally.aborted + tally.expired, tally.held)
    }

    /// Says that a transaction is about to stage something. A light barrier follows, and then a look
    /// at whether the queue is closed.
    #[inline]
    pub(super) fn begin_staging(&self) {
        // ORDERING: Relaxed; the barrier orders it, against the heavy one before `is_open`. Of a transaction
        // that holds, the Release in `step` does, which counts the end of what it held.
        self.staging.store(true, Ordering::Relaxed);
    }

    /// Says that nothing is staged any more.
    #[inline]
    pub(super) fn end_staging(&self) {
        // ORDERING: Release; pairs with `counters.stages`: who sees it sees what was published.
        self.staging
            .store(false, weak!("counters.end-staging", Release));
    }

    /// Says that nothing is staged any more, and that none of it is published.
    pub(super) fn abort_staging(&self) {
        // ORDERING: Relaxed, both; a single writer.
        if self.staging.load(Ordering::Relaxed) && !planted!("counters.drops-uncounted") {
            let count = self.unstaged.load(Ordering::Relaxed) + 1;
            // ORDERING: Release; pairs with `counters.unstaged`: who sees it sees that something was staged.
            self.unstaged
                .store(count, weak!("counters.count-unstaged", Release));
        }
        self.end_staging();
    }

    /// A number that differs from a later one if a transaction has dropped what it had staged in between;
    /// `None` if the counters is open.
    ///
    /// Counted twice: the first time before the question for the first of two calls, the second time after it
    /// for the second one.
    pub(super) fn unstaged_unless_open(&self) -> Option<u64> {
        // ORDERING: Acquire; pairs with `counters.count-unstaged`. The second is ordered by `counters.stages`: who sees
        // that nothing is staged any more sees that it was counted.
        let before = self.unstaged.load(weak!("counters.unstaged", Acquire));
        (!self.is_open()).then(|| before.wrapping_add(self.unstaged.load(Ordering::Relaxed)))
    }

    /// Whether a transaction holds or has staged something, so that items may still become ready.
    ///
    /// A transaction that holds may begin to stage although the queue is closed, and then give back what it
    /// holds. Who sees that sees that it stages, and so asks for that last.
    pub(super) fn is_open(&self) -> bool {
        let early = planted!("counters.stages-first").then(|| self.stages());
        (self.holds() && !planted!("counters.holds-unasked"))
            || early.unwrap_or_else(|| self.stages())
    }

    fn holds(&self) -> bool {
        // ORDERING: Acquire, both; pair with `counters.step`: who sees the end of a transaction sees what it
        // gave back. Before `taken`, which is never less than their sum.
        let ended = self.committed.load(weak!("counters.committed", Acquire))
            + self.aborted.load(weak!("counters.aborted", Acquire));
        // ORDERING: Acquire; pairs with `counters.count-expired`, likewise.
        let ended = ended + self.expired.load(weak!("counters.expired", Acquire));
        // ORDERING: Acquire; pairs with `counters.uncount-taken`. Who has seen a claim, by `front.head`, sees
        // its count.
        self.taken.load(weak!("counters.taken", Acquire)) != ended
    }

    fn stages(&self) -> bool {
        // ORDERING: Acquire; pairs with `counters.end-staging`.
        self.staging.load(weak!("counters.stages", Acquire))
    }

    /// Counts on a counters that several threads share.
    pub(super) fn share_popped(&self, items: usize) {
        // ORDERING: Relaxed; statistics.
        self.popped.fetch_add(items as u64, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, tally: &mut Tally) {
        // ORDERING: Relaxed, all; statistics.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (committed, aborted) = (load(&self.committed), load(&self.aborted));
        let expired = load(&self.expired);
        tally.committed += load(&self.popped) + committed;
        tally.aborted += aborted;
        tally.expired += expired;
        tally.held += load(&self.taken).saturating_sub(committed + aborted + expired);
    }
}

/// Steps a counter that only the caller writes.
#[inline]
fn step(counter: &AtomicU64, items: usize) {
    // ORDERING: Relaxed; a single writer.
    let count = counter.load(Ordering::Relaxed) + items as u64;
    // ORDERING: Release; pairs with `counters.committed` and `counters.aborted`. A count of taken items is ordered
    // by the claim that follows.
    counter.store(count, weak!("counters.step", Release));
}
