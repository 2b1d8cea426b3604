//! The search for free permits, wherever they are, and the strict answer that there is none.

use super::account::Account;
use super::till::{Sight, Till};
use super::Capacity;
use crate::raw::barrier;
use crate::sync::{AtomicUsize, Ordering, SMALL};
use std::sync::Arc;

/// So many purses are revoked behind one heavy barrier.
const AT_ONCE: usize = if SMALL { 2 } else { 16 };

/// What one walk over all places has seen.
struct Walk {
    /// Revocations before the walk.
    before: usize,
    /// The sum of what was taken from all places, which grows whenever a permit goes, but for
    /// revocations.
    marks: usize,
    /// A free permit was seen.
    found: bool,
    /// One was seen in a purse.
    revocable: bool,
}

impl Walk {
    fn begin(revocations: &AtomicUsize) -> Self {
        Self {
            // ORDERING: Acquire; pairs with the Release in `truncate`.
            before: revocations.load(Ordering::Acquire),
            marks: 0,
            found: false,
            revocable: false,
        }
    }

    fn count(&mut self, taken: usize) {
        self.marks = self.marks.wrapping_add(taken);
    }
}

impl Capacity {
    /// Takes `want` permits; if `ahead`, a share of what is free more. Fewer only if at some instant
    /// none was free.
    pub(super) fn gather(&self, want: usize, ahead: bool, first: &mut usize) -> usize {
        let mut hand = 0;
        let mut last: Option<Walk> = None;
        loop {
            let mut walk = Walk::begin(&self.revocations);
            hand += self.collect(want - hand, ahead, first, &mut walk);
            if hand < want && walk.revocable {
                hand += self.revoke(want - hand);
            }
            if hand >= want || self.none_between(last.as_ref(), &walk) {
                return hand;
            }
            last = Some(walk);
        }
    }

    /// Whether no permit was free at the instant between two walks; the latter has just ended.
    fn none_between(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| !last.found) && !walk.found && self.none_gone(last, walk)
    }

    /// Whether no permit went away between two walks; the latter has just ended.
    fn none_gone(&self, last: Option<&Walk>, walk: &Walk) -> bool {
        last.is_some_and(|last| {
            // ORDERING: Relaxed; who has seen permits revoked has seen the step, see `truncate`.
            let revocations = self.revocations.load(Ordering::Relaxed);
            last.marks == walk.marks && last.before == revocations
        })
    }

    /// Whether so many permits are free at once: no only if at some instant they were not.
    ///
    /// Two walks find fewer, and none went away between them: those that were free then are among
    /// those that the second has found.
    pub(crate) fn has(&self, want: usize) -> bool {
        let mut last: Option<Walk> = None;
        loop {
            let mut walk = Walk::begin(&self.revocations);
            if self.count(&mut walk) >= want {
                return true;
            }
            if self.none_gone(last.as_ref(), &walk) {
                return false;
            }
            last = Some(walk);
        }
    }

    /// Counts the free permits on a walk.
    fn count(&self, walk: &mut Walk) -> usize {
        let seen = self.pool.look();
        walk.count(seen.taken);
        let in_account = |free: usize, account: &Arc<Account>| {
            let (unused, used) = account.window.look();
            let seen = account.returned.look();
            walk.count(seen.taken);
            walk.count(used);
            free.saturating_add(unused).saturating_add(seen.free)
        };
        self.accounts.iter().fold(seen.free, in_account)
    }

    /// Walks over the pool and what the accounts have returned, from account `first` on, until there
    /// is enough.
    fn collect(&self, want: usize, ahead: bool, first: &mut usize, walk: &mut Walk) -> usize {
        let seen = self.pool.look();
        walk.count(seen.taken);
        walk.found |= seen.free > 0;
        let mut hand = self.take_from(&self.pool, seen, want, ahead);
        let accounts = self.accounts.len();
        let from = *first;
        for number in (from..accounts).chain(0..from.min(accounts)) {
            if hand >= want {
                break;
            }
            let account = self.accounts.get(number);
            let (unused, used) = account.window.look();
            let seen = account.returned.look();
            walk.count(seen.taken);
            walk.count(used);
            walk.found |= seen.free > 0 || unused > 0;
            walk.revocable |= unused > 0;
            if seen.free > 0 {
                hand += self.take_from(&account.returned, seen, want - hand, ahead);
                *first = number;
            }
        }
        hand
    }

    /// Takes `want` of the permits seen; if `ahead`, a share of them more.
    pub(super) fn take_from(&self, till: &Till, seen: Sight, want: usize, ahead: bool) -> usize {
        let most = if ahead {
            want.max(self.share(seen.free))
        } else {
            want
        };
        match seen.free {
            0 => 0,
            _ => till.take(seen, most),
        }
    }

    /// Takes up to `want` permits that are in purses.
    pub(super) fn revoke(&self, want: usize) -> usize {
        let mut marked = [(0, 0); AT_ONCE];
        let (mut len, mut expected) = (0, 0);
        for number in 0..self.accounts.len() {
            let window = &self.accounts.get(number).window;
            let (unused, _) = window.look();
            if unused > 0 {
                marked[len] = (number, window.mark());
                len += 1;
                expected += unused;
            }
            if expected >= want || len == AT_ONCE {
                break;
            }
        }
        if len == 0 {
            return 0;
        }
        barrier::heavy();
        let truncate = |hand: usize, (number, end): &(usize, usize)| {
            let window = &self.accounts.get(*number).window;
            hand + window.truncate(*end, want - hand, &self.revocations)
        };
        marked[..len].iter().fold(0, truncate)
    }
}
