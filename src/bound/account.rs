//! An account: what one handle has left of the permits granted to it, and what it has given back.

use super::till::Till;
use crate::sync::{barrier, planted, weak, AtomicBool, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

/// Set in an end while the window is open, clear when a thief has marked it.
const OPEN: usize = 1 << (usize::BITS - 1);

/// One handle's account.
#[derive(Default)]
pub(super) struct Account {
    pub(super) window: CachePadded<Window>,
    pub(super) returned: CachePadded<Till>,
}

/// The positions that the owner may use: those from `used` up to the end.
///
/// Positions only grow, and every window begins behind all earlier ones. Within a window the end
/// only falls. So each value of `end`, open or marked, stands there once at most: a CAS of it has no
/// ABA problem.
#[derive(Default)]
pub(super) struct Window {
    /// Only the owner writes it, and it only grows.
    used: AtomicUsize,
    /// The position behind the last one, with [`OPEN`] unless it is marked.
    end: AtomicUsize,
    /// Whether the owner has more in hand than it needs, on the way to this window.
    filling: AtomicBool,
}

/// The owner's side.
impl Window {
    /// Where the owner before has left off.
    pub(super) fn used(&self) -> usize {
        // ORDERING: Relaxed; the lease of the account has passed on what the last owner did.
        self.used.load(Ordering::Relaxed)
    }

    /// Uses all positions below `next`. False if a thief was there; then [`withdraw`] says what is
    /// left, and nothing else may come before it.
    ///
    /// [`withdraw`]: Self::withdraw
    #[inline]
    pub(super) fn advance(&self, next: usize) -> bool {
        // ORDERING: Release; pairs with `window.look-used`: who sees the permit gone sees what we gave
        // back before.
        self.used.store(next, weak!("window.use", Release));
        // Pairs with `search.heavy` between a thief's `mark` and its `truncate`: we see the mark below, or
        // it sees the position used.
        barrier::light("window.light");
        // ORDERING: Relaxed; the barrier orders it, and nothing else is read by it.
        let end = self.end.load(Ordering::Relaxed);
        end >= unmarked(next) || (planted!("window.marked-unseen") && end & !OPEN >= next)
    }

    /// Closes the window for good: behind its last end, at `beyond`, there is an empty one. Answers
    /// where the old one ended.
    pub(super) fn withdraw(&self, beyond: usize) -> usize {
        // ORDERING: Release; pairs with `window.look-used`, as in `advance`.
        self.used
            .store(beyond, weak!("window.withdraw-used", Release));
        let stale = planted!("window.withdraws-stale").then(|| self.end.load(Ordering::Relaxed));
        // ORDERING: Release; pairs with `window.look-end` and `window.mark`: who sees the new end sees all
        // of it used.
        let release = weak!("window.withdraw", Release);
        let end = self.end.swap(unmarked(beyond), release);
        stale.unwrap_or(end) & !OPEN
    }

    /// Opens the window from `start`, behind all earlier ones, which are used up or withdrawn, to
    /// `end`.
    pub(super) fn open(&self, start: usize, end: usize) {
        // ORDERING: Release; pairs with `window.look-used`, as in `advance`, for who reads it early.
        self.used.store(start, weak!("window.open-used", Release));
        // ORDERING: Release; pairs with `window.look-end` and `window.mark`: who sees the new end sees
        // `used` at the start, or later. A store would do, since a window without a free
        // position is never truncated, but loom lets a mark that came before it overtake it.
        self.end.swap(unmarked(end), weak!("window.open", Release));
    }
}

/// The owner's side while it has more in hand than it needs.
impl Window {
    /// Says that more than is needed is about to be taken from a till, or from the window itself.
    pub(super) fn begin_filling(&self) {
        // ORDERING: Relaxed; ordered by `till.take`: who sees the permits gone sees this.
        self.filling.store(true, Ordering::Relaxed);
    }

    /// Says that what was taken is in the window, or elsewhere to be found.
    pub(super) fn end_filling(&self) {
        // ORDERING: Release; pairs with `window.is-filling`: who sees this sees the window.
        self.filling
            .store(false, weak!("window.end-filling", Release));
    }
}

/// Everybody's side.
impl Window {
    /// Whether permits may be on their way to the window; to be asked before a look at it.
    pub(super) fn is_filling(&self) -> bool {
        // ORDERING: Acquire; pairs with `window.end-filling`.
        self.filling.load(weak!("window.is-filling", Acquire))
    }

    /// The free positions, and those used.
    pub(super) fn look(&self) -> (usize, usize) {
        // ORDERING: Acquire; pairs with `window.open`, `window.withdraw` and `window.truncate`. Ahead of
        // `used`, so that an end is not compared with a position before its window.
        let end = self.end.load(weak!("window.look-end", Acquire)) & !OPEN;
        // ORDERING: Acquire; pairs with `window.use`.
        let used = self.used.load(weak!("window.look-used", Acquire));
        (end.saturating_sub(used), used)
    }

    /// Marks the window, so that the owner takes nothing more from it unseen. Answers where it ends,
    /// for [`truncate`](Self::truncate) after a heavy barrier.
    pub(super) fn mark(&self) -> usize {
        // ORDERING: Acquire; pairs with `window.open`: `used` is of this window.
        self.end.fetch_and(!OPEN, weak!("window.mark", Acquire)) & !OPEN
    }

    /// Takes up to `most` of what is free in the window that was found to end at `end`, marked, before
    /// a heavy barrier. Steps `revocations` before that.
    pub(super) fn truncate(&self, end: usize, most: usize, revocations: &AtomicUsize) -> usize {
        // ORDERING: Relaxed; the barrier pairs with `window.light`.
        let used = self.used.load(Ordering::Relaxed);
        let taken = end.saturating_sub(used).min(most);
        if taken == 0 {
            return 0;
        }
        // ORDERING: Release; pairs with `search.begin`: who counts this sees the mark.
        revocations.fetch_add(1, weak!("window.step-revocations", Release));
        // ORDERING: Release; pairs with `window.look-end`: who sees the permits gone sees the step above.
        // Relaxed on failure: nothing is read.
        match self.end.compare_exchange(
            end,
            unmarked(end - taken),
            weak!("window.truncate", Release),
            Ordering::Relaxed,
        ) {
            Ok(_) => taken,
            Err(_) if planted!("window.truncates-anyway") => taken,
            Err(_) => 0,
        }
    }
}

/// The word for a window that ends at `end` and is not marked.
#[inline]
fn unmarked(end: usize) -> usize {
    end | OPEN
}
