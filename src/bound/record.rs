//! A record: the permits that one handle has taken ahead, and those that it has given back.

use super::free_count::FreeCount;
use crate::sync::{barrier, planted, start_before, weak, AtomicBool, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

/// A bit that is set in all positions; a revoker marks an end by clearing it, so that the end is less than any position.
const OPEN: usize = 1 << (usize::BITS - 1);
/// The first position.
#[allow(clippy::cast_possible_truncation)] // of so many bits
const FIRST: usize = OPEN + start_before(OPEN as u64) as usize;

/// The record of one handle.
#[derive(Default)]
pub(super) struct PermitRecord {
    pub(super) range: CachePadded<RevocableRange>,
    pub(super) returned: CachePadded<FreeCount>,
}

/// The positions that the owner may use: from `used` up to the end.
///
/// Positions only grow, and every range begins behind all earlier ones. Within a range the end
/// only falls. So each value of `end`, open or marked, is stored at most once: a CAS of it has no
/// ABA problem.
pub(super) struct RevocableRange {
    /// Written only by the owner; it only grows.
    used: AtomicUsize,
    /// The position behind the last one, without the bit [`OPEN`] if it is marked.
    end: AtomicUsize,
    /// Whether the owner has more permits in hand than it needs, which it will put into this range.
    filling: AtomicBool,
}

impl Default for RevocableRange {
    fn default() -> Self {
        Self {
            used: AtomicUsize::new(FIRST),
            end: AtomicUsize::new(FIRST),
            filling: AtomicBool::new(false),
        }
    }
}

/// Operations of the owner.
impl RevocableRange {
    /// The position that the previous owner has reached, and the end, as it was last seen.
    pub(super) fn bounds(&self) -> (usize, usize) {
        // ORDERING: Relaxed, both; acquiring the record has synchronized with its last owner, and `advance` checks the end.
        let used = self.used.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed) | OPEN;
        (used, end.max(used))
    }

    /// Uses all positions below `next`. Returns `false` if a revoker has marked or truncated the range; then the
    /// next call must be [`withdraw`], which returns what is left.
    ///
    /// [`withdraw`]: Self::withdraw
    #[inline]
    pub(super) fn advance(&self, next: usize) -> bool {
        // ORDERING: Release; pairs with `range.look-used`: a thread that sees the permit gone sees what we gave
        // back before.
        self.used.store(next, weak!("range.use", Release));
        // Pairs with `search.heavy` between a revoker's `mark` and its `truncate`: we see the mark below, or
        // it sees the position used.
        barrier::light("range.light");
        // ORDERING: Relaxed; the barrier orders it, and nothing else is read by it.
        let end = self.end.load(Ordering::Relaxed);
        end >= next || (planted!("range.marked-unseen") && end | OPEN >= next)
    }

    /// Closes the range: replaces it by an empty one at `beyond`, behind its last end. Returns where the old
    /// one ended.
    pub(super) fn withdraw(&self, beyond: usize) -> usize {
        // ORDERING: Release; pairs with `range.look-used`, as in `advance`.
        self.used
            .store(beyond, weak!("range.withdraw-used", Release));
        let stale = planted!("range.withdraws-stale").then(|| self.end.load(Ordering::Relaxed));
        // ORDERING: Release; pairs with `range.look-end` and `range.mark`: a thread that sees the new end sees
        // all of the range used.
        let release = weak!("range.withdraw", Release);
        let end = self.end.swap(beyond, release);
        stale.unwrap_or(end) | OPEN
    }

    /// Opens the range from `start` to `end`, behind all earlier ranges, which are used up or withdrawn.
    pub(super) fn open(&self, start: usize, end: usize) {
        // ORDERING: Release; pairs with `range.look-used`, as in `advance`, for a thread that reads it early.
        self.used.store(start, weak!("range.open-used", Release));
        // ORDERING: Release; pairs with `range.look-end` and `range.mark`: a thread that sees the new end sees
        // `used` at the start, or later. A store would be enough, since a range without a free
        // position is never truncated, but loom lets a mark that came before it overtake it.
        self.end.swap(end, weak!("range.open", Release));
    }
}

/// Operations of the owner while it has more permits in hand than it needs.
impl RevocableRange {
    /// Announces that more than is needed is about to be taken from a free count, or from the range itself.
    pub(super) fn begin_filling(&self) {
        // ORDERING: Relaxed; ordered by `free.take`: a thread that sees the permits gone sees this.
        self.filling.store(true, Ordering::Relaxed);
    }

    /// Announces that the permits taken are in the range, or in another place that searches cover.
    pub(super) fn end_filling(&self) {
        // ORDERING: Release; pairs with `range.is-filling`: a thread that sees this sees the range.
        self.filling
            .store(false, weak!("range.end-filling", Release));
    }
}

/// Operations of all threads.
impl RevocableRange {
    /// Whether permits may be about to be put into the range; must be checked before a snapshot of it.
    pub(super) fn is_filling(&self) -> bool {
        // ORDERING: Acquire; pairs with `range.end-filling`.
        self.filling.load(weak!("range.is-filling", Acquire))
    }

    /// The number of free positions, and the position `used`.
    pub(super) fn snapshot(&self) -> (usize, usize) {
        // ORDERING: Acquire; pairs with `range.open`, `range.withdraw` and `range.truncate`. Loaded before
        // `used`, so that an end is not compared with a position before its range.
        let end = self.end.load(weak!("range.look-end", Acquire)) | OPEN;
        // ORDERING: Acquire; pairs with `range.use`.
        let used = self.used.load(weak!("range.look-used", Acquire));
        (end.saturating_sub(used), used)
    }

    /// Marks the range, so that the owner takes nothing more from it without seeing the mark. Returns its marked end,
    /// for [`truncate`](Self::truncate) after a heavy barrier.
    pub(super) fn mark(&self) -> usize {
        // ORDERING: Acquire; pairs with `range.open`: `used` is of this range.
        self.end.fetch_and(!OPEN, weak!("range.mark", Acquire)) & !OPEN
    }

    /// Takes up to `most` of the free positions of the range that was marked before a heavy barrier, with the marked
    /// end `marked`. Increments `revocations` first.
    pub(super) fn truncate(&self, marked: usize, most: usize, revocations: &AtomicUsize) -> usize {
        // ORDERING: Relaxed; the barrier pairs with `range.light`.
        let used = self.used.load(Ordering::Relaxed);
        let end = marked | OPEN;
        let taken = end.saturating_sub(used).min(most);
        if taken == 0 {
            return 0;
        }
        // ORDERING: Release; pairs with `search.begin`: a thread that counts this sees the mark.
        revocations.fetch_add(1, weak!("range.step-revocations", Release));
        // ORDERING: Release; pairs with `range.look-end`: a thread that sees the permits gone sees the increment above.
        // Relaxed on failure: nothing is read.
        match self.end.compare_exchange(
            marked,
            end - taken,
            weak!("range.truncate", Release),
            Ordering::Relaxed,
        ) {
            Ok(_) => taken,
            Err(_) if planted!("range.truncates-anyway") => taken,
            Err(_) => 0,
        }
    }
}
