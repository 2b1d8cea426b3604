//! The counters of one handle, written by it alone, so that no shared cache line is written per item.
//!
//! They also show whether the handle has an open transaction, for the end of a closed queue.

use crate::sync::{planted, weak, AtomicBool, AtomicU64, Ordering};

/// The numbers of items that one handle has processed, and whether it has an open transaction.
#[derive(Default)]
pub(crate) struct Counters {
    /// Items popped without a transaction.
    popped: AtomicU64,
    /// Items taken by transactions, counted before they are claimed, and by how their delivery ended.
    taken: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    /// Items whose delivery has ended elsewhere, by how: any thread counts them.
    elsewhere: [AtomicU64; Ending::ALL],
    /// Whether a transaction has staged items, or is about to.
    staging: AtomicBool,
    /// Transactions that have dropped their staged items.
    unstaged: AtomicU64,
}

/// How a delivery has ended elsewhere than in a transaction of its handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The item was reclaimed.
    Expired,
    Committed,
    Aborted,
    /// The item was dropped, since its time to live was over.
    TimedOut,
    /// Another handle holds the item, or it is a dead letter.
    Moved,
}

impl Ending {
    const ALL: usize = Self::Moved as usize + 1;
}

/// The counters of all handles, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) expired: u64,
    pub(crate) timed_out: u64,
    moved: u64,
    pub(crate) held: u64,
}

impl Tally {
    /// The number of deliveries that have ended.
    fn ended(&self) -> u64 {
        self.committed + self.aborted + self.expired + self.timed_out + self.moved
    }
}

/// Counters, and the deliveries of their open transaction.
pub(crate) struct Holder {
    /// The number of the counters.
    pub(crate) counters: usize,
    /// The number of deliveries that ended there before. With the number of the counters, it identifies the oldest
    /// delivery that has not ended.
    pub(crate) ended: u64,
    /// The number of held items.
    pub(crate) held: u64,
}

impl Counters {
    #[inline]
    pub(crate) fn count_popped(&self, items: usize) {
        step(&self.popped, items);
    }

    /// Counts items that are about to be claimed, so that a thread that sees the claim sees the count.
    #[inline]
    pub(crate) fn count_taken(&self, items: usize) {
        step(&self.taken, items);
    }

    /// How many items were taken before the last one.
    #[inline]
    pub(crate) fn taken_before(&self) -> u64 {
        // ORDERING: Relaxed; asked by the writer.
        self.taken.load(Ordering::Relaxed) - 1
    }

    /// Undoes the count of items that were not available, or were put back without a delivery.
    pub(crate) fn uncount_taken(&self, items: usize) {
        // ORDERING: Relaxed; a single writer.
        let count = self.taken.load(Ordering::Relaxed) - items as u64;
        // ORDERING: Release; pairs with `counters.taken`: a thread that sees it sees the items put back.
        self.taken
            .store(count, weak!("counters.uncount-taken", Release));
    }

    #[inline]
    pub(crate) fn count_committed(&self, items: usize) {
        step(&self.committed, items);
    }

    #[inline]
    pub(crate) fn count_aborted(&self, items: usize) {
        step(&self.aborted, items);
    }

    /// Counts items of these counters whose delivery has ended elsewhere, after they were put somewhere else.
    #[inline]
    pub(crate) fn count_elsewhere(&self, ending: Ending, items: usize) {
        // ORDERING: Release; pairs with `counters.elsewhere`.
        self.elsewhere[ending as usize]
            .fetch_add(items as u64, weak!("counters.count-elsewhere", Release));
    }

    /// The identity of the open transaction, for other threads, if these counters have this number.
    pub(in crate::raw) fn holder(&self, counters: usize) -> Holder {
        let mut tally = Tally::default();
        self.add_to(&mut tally);
        Holder {
            counters,
            ended: tally.ended(),
            held: tally.held,
        }
    }

    /// Announces that a transaction is about to stage items. A light barrier follows, and then the check
    /// whether the queue is closed.
    #[inline]
    pub(in crate::raw) fn begin_staging(&self) {
        // ORDERING: Relaxed; the barrier orders it, against the heavy one before `is_open`. For a transaction
        // that holds items the Release in `step` does, which counts the end of their delivery.
        self.staging.store(true, Ordering::Relaxed);
    }

    /// Announces that no items are staged any more.
    #[inline]
    pub(in crate::raw) fn end_staging(&self) {
        // ORDERING: Release; pairs with `counters.stages`: a thread that sees it sees the published items.
        self.staging
            .store(false, weak!("counters.end-staging", Release));
    }

    /// Announces that the staged items were dropped instead of published.
    pub(crate) fn abort_staging(&self) {
        // ORDERING: Relaxed, both; a single writer.
        if self.staging.load(Ordering::Relaxed) && !planted!("counters.drops-uncounted") {
            let count = self.unstaged.load(Ordering::Relaxed) + 1;
            // ORDERING: Release; pairs with `counters.unstaged`: a thread that sees it sees that items were staged.
            self.unstaged
                .store(count, weak!("counters.count-unstaged", Release));
        }
        self.end_staging();
    }

    /// A number that differs between two calls if a transaction has dropped its staged items in between; `None` if a
    /// transaction is open.
    ///
    /// The sum of two loads: one before the check `is_open`, which matters to the first of two calls, and one after
    /// it, which matters to the second call.
    pub(in crate::raw) fn unstaged_unless_open(&self) -> Option<u64> {
        // ORDERING: Acquire; pairs with `counters.count-unstaged`. The second load is ordered by `counters.stages`: a
        // thread that sees that staging has ended sees the count.
        let before = self.unstaged.load(weak!("counters.unstaged", Acquire));
        (!self.is_open()).then(|| before.wrapping_add(self.unstaged.load(Ordering::Relaxed)))
    }

    /// Whether a transaction holds or has staged items, so that items may still become ready.
    ///
    /// A transaction that holds items may begin to stage although the queue is closed, and then give back its held
    /// items. A thread that sees these given back sees the staging, which is therefore checked last. In the other order a thread
    /// that is delayed between the two would see neither.
    pub(in crate::raw) fn is_open(&self) -> bool {
        let early = planted!("counters.stages-first").then(|| self.stages());
        (self.holds() && !planted!("counters.holds-unasked"))
            || early.unwrap_or_else(|| self.stages())
    }

    fn holds(&self) -> bool {
        // ORDERING: Acquire, both; pair with `counters.step`: a thread that sees the end of a transaction sees the
        // items given back. Before `taken`, which is never less than their sum.
        let ended = self.committed.load(weak!("counters.committed", Acquire))
            + self.aborted.load(weak!("counters.aborted", Acquire));
        // ORDERING: Acquire, each; pairs with `counters.count-elsewhere`, likewise.
        let load = |ended: &AtomicU64| ended.load(weak!("counters.elsewhere", Acquire));
        let ended = ended + self.elsewhere.iter().map(load).sum::<u64>();
        // ORDERING: Acquire; pairs with `counters.uncount-taken`. A thread that has seen a claim, by `front.head`,
        // sees its count.
        self.taken.load(weak!("counters.taken", Acquire)) != ended
    }

    fn stages(&self) -> bool {
        // ORDERING: Acquire; pairs with `counters.end-staging`.
        self.staging.load(weak!("counters.stages", Acquire))
    }

    pub(in crate::raw) fn add_to(&self, tally: &mut Tally) {
        // ORDERING: Relaxed, all; statistics.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let elsewhere = |ending: Ending| load(&self.elsewhere[ending as usize]);
        let (expired, moved) = (elsewhere(Ending::Expired), elsewhere(Ending::Moved));
        let timed_out = elsewhere(Ending::TimedOut);
        let committed = load(&self.committed) + elsewhere(Ending::Committed);
        let aborted = load(&self.aborted) + elsewhere(Ending::Aborted);
        tally.committed += load(&self.popped) + committed;
        tally.aborted += aborted;
        tally.expired += expired;
        tally.timed_out += timed_out;
        tally.moved += moved;
        let ended = committed + aborted + expired + timed_out + moved;
        tally.held += load(&self.taken).saturating_sub(ended);
    }
}

/// Increments a counter that only the caller writes.
#[inline]
fn step(counter: &AtomicU64, items: usize) {
    // ORDERING: Relaxed; a single writer.
    let count = counter.load(Ordering::Relaxed) + items as u64;
    // ORDERING: Release; pairs with `counters.committed` and `counters.aborted`. The count of taken items is ordered
    // by the claim that follows.
    counter.store(count, weak!("counters.step", Release));
}
