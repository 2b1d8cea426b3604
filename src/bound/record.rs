//! A record: what one handle has left of the permits granted to it, and what it has given back.

use super::free_count::FreeCount;
use crate::sync::{barrier, planted, weak, AtomicBool, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

/// Set in an end while the range is open, clear when a thief has marked it.
const OPEN: usize = 1 << (usize::BITS - 1);

/// One handle's record.
#[derive(Default)]
pub(super) struct PermitRecord {
    pub(super) range: CachePadded<RevocableRange>,
    pub(super) returned: CachePadded<FreeCount>,
}

/// The positions that the owner may use: those from `used` up to the end.
///
/// Positions only grow, and every range begins behind all earlier ones. Within a range the end
/// only falls. So each value of `end`, open or marked, stands there once at most: a CAS of it has no
/// ABA problem.
#[derive(Default)]
pub(super) struct RevocableRange {
    /// Only the owner writes it, and it only grows.
    used: AtomicUsize,
    /// The position behind the last one, with [`OPEN`] unless it is marked.
    end: AtomicUsize,
    /// Whether the owner has more in hand than it needs, on the way to this range.
    filling: AtomicBool,
}

/// The owner's side.
impl RevocableRange {
    /// Where the owner before has left off.
    pub(super) fn used(&self) -> usize {
        // ORDERING: Relaxed; the lease of the record has passed on what the last owner did.
        self.used.load(Ordering::Relaxed)
    }

    /// Uses all positions below `next`. False if a thief was there; then [`withdraw`] says what is
    /// left, and nothing else may come before it.
    ///
    /// [`withdraw`]: Self::withdraw
    #[inline]
    pub(super) fn advance(&self, next: usize) -> bool {
        // ORDERING: Release; pairs with `range.look-used`: who sees the permit gone sees what we gave
        // back before.
        self.used.store(next, weak!("range.use", Release));
        // Pairs with `search.heavy` between a thief's `mark` and its `truncate`: we see the mark below, or
        // it sees the position used.
        barrier::light("range.light");
        // ORDERING: Relaxed; the barrier orders it, and nothing else is read by it.
        let end = self.end.load(Ordering::Relaxed);
        end >= unmarked(next) || (planted!("range.marked-unseen") && end & !OPEN >= next)
    }

    /// Closes the range for good: behind its last end, at `beyond`, there is an empty one. Answers
    /// where the old one ended.
    pub(super) fn withdraw(&self, beyond: usize) -> usize {
        // ORDERING: Release; pairs with `range.look-used`, as in `advance`.
        self.used
            .store(beyond, weak!("range.withdraw-used", Release));
        let stale = planted!("range.withdraws-stale").then(|| self.end.load(Ordering::Relaxed));
        // ORDERING: Release; pairs with `range.look-end` and `range.mark`: who sees the new end sees all
        // of it used.
        let release = weak!("range.withdraw", Release);
        let end = self.end.swap(unmarked(beyond), release);
        stale.unwrap_or(end) & !OPEN
    }

    /// Opens the range from `start`, behind all earlier ones, which are used up or withdrawn, to
    /// `end`.
    pub(super) fn open(&self, start: usize, end: usize) {
        // ORDERING: Release; pairs with `range.look-used`, as in `advance`, for who reads it early.
        self.used.store(start, weak!("range.open-used", Release));
        // ORDERING: Release; pairs with `range.look-end` and `range.mark`: who sees the new end sees
        // `used` at the start, or later. A store would do, since a range without a free
        // position is never truncated, but loom lets a mark that came before it overtake it.
        self.end.swap(unmarked(end), weak!("range.open", Release));
    }
}

/// The owner's side while it has more in hand than it needs.
impl RevocableRange {
    /// Says that more than is needed is about to be taken from a free count, or from the range itself.
    pub(super) fn begin_filling(&self) {
        // ORDERING: Relaxed; ordered by `free.take`: who sees the permits gone sees this.
        self.filling.store(true, Ordering::Relaxed);
    }

    /// Says that what was taken is in the range, or elsewhere to be found.
    pub(super) fn end_filling(&self) {
        // ORDERING: Release; pairs with `range.is-filling`: who sees this sees the range.
        self.filling
            .store(false, weak!("range.end-filling", Release));
    }
}

/// Everybody's side.
impl RevocableRange {
    /// Whether permits may be on their way to the range; to be asked before a look at it.
    pub(super) fn is_filling(&self) -> bool {
        // ORDERING: Acquire; pairs with `range.end-filling`.
        self.filling.load(weak!("range.is-filling", Acquire))
    }

    /// The free positions, and those used.
    pub(super) fn look(&self) -> (usize, usize) {
        // ORDERING: Acquire; pairs with `range.open`, `range.withdraw` and `range.truncate`. Ahead of
        // `used`, so that an end is not compared with a position before its range.
        let end = self.end.load(weak!("range.look-end", Acquire)) & !OPEN;
        // ORDERING: Acquire; pairs with `range.use`.
        let used = self.used.load(weak!("range.look-used", Acquire));
        (end.saturating_sub(used), used)
    }

    /// Marks the range, so that the owner takes nothing more from it unseen. Answers where it ends,
    /// for [`truncate`](Self::truncate) after a heavy barrier.
    pub(super) fn mark(&self) -> usize {
        // ORDERING: Acquire; pairs with `range.open`: `used` is of this range.
        self.end.fetch_and(!OPEN, weak!("range.mark", Acquire)) & !OPEN
    }

    /// Takes up to `most` of what is free in the range that was found to end at `end`, marked, before
    /// a heavy barrier. Steps `revocations` before that.
    pub(super) fn truncate(&self, end: usize, most: usize, revocations: &AtomicUsize) -> usize {
        // ORDERING: Relaxed; the barrier pairs with `range.light`.
        let used = self.used.load(Ordering::Relaxed);
        let taken = end.saturating_sub(used).min(most);
        if taken == 0 {
            return 0;
        }
        // ORDERING: Release; pairs with `search.begin`: who counts this sees the mark.
        revocations.fetch_add(1, weak!("range.step-revocations", Release));
        // ORDERING: Release; pairs with `range.look-end`: who sees the permits gone sees the step above.
        // Relaxed on failure: nothing is read.
        match self.end.compare_exchange(
            end,
            unmarked(end - taken),
            weak!("range.truncate", Release),
            Ordering::Relaxed,
        ) {
            Ok(_) => taken,
            Err(_) if planted!("range.truncates-anyway") => taken,
            Err(_) => 0,
        }
    }
}

/// The word for a range that ends at `end` and is not marked.
#[inline]
fn unmarked(end: usize) -> usize {
    end | OPEN
}
