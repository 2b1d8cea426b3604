//! Loom models of the permits, with a table as in `raw::models`.
//!
//! Not in the table: the orderings of what is put into a till, which no model reaches; the Release of
//! the truncation, for which the heavy barrier makes up; the step of `revocations`, which takes an
//! owner, a thief and a searcher in the midst of three steps to matter; that each window begins behind
//! the last end, not at it; the Release of a window's opening, where so little is taken ahead that no
//! model sees a thief come too late for it. They are argued where they stand.
//!
//! | model | file | ordering | weakened to |
//! |---|---|---|---|
//! | window::an_owner_and_a_thief | bound/account.rs | `barrier::light();` | `` |
//! | window::an_owner_and_a_thief | bound/search.rs | `barrier::heavy();` | `` |
//! | window::an_owner_and_a_thief | bound/account.rs | `self.end.load(Ordering::Relaxed) >= unmarked(next)` | `self.end.load(Ordering::Relaxed) & !OPEN >= next` |
//! | window::an_owner_and_a_thief | bound/account.rs | `self.end.swap(unmarked(beyond), Ordering::Release) & !OPEN` | `{ let end = self.end.load(Ordering::Relaxed); self.end.store(unmarked(beyond), Ordering::Release); end & !OPEN }` |
//! | window::two_thieves_do | bound/account.rs | `.compare_exchange( end, unmarked(end - taken), Ordering::Release, Ordering::Relaxed, )` | `.swap(unmarked(end - taken), Ordering::Release).checked_add(0).ok_or(0usize)` |
//! | window::a_late_thief | bound/account.rs | `self.end.swap(unmarked(beyond), Ordering::Release)` | `self.end.swap(unmarked(beyond), Ordering::Relaxed)` |
//! | till::two_collectors | bound/till.rs | `.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed)` | `.swap(to, Ordering::Release).checked_add(0).ok_or(0usize)` |
//! | full::full_is_not_said_while_a_permit_moves_from | bound/account.rs | `self.used.store(next, Ordering::Release)` | `self.used.store(next, Ordering::Relaxed)` |
//! | full::full_is_not_said_while_a_permit_moves_from | bound/account.rs | `let used = self.used.load(Ordering::Acquire)` | `let used = self.used.load(Ordering::Relaxed)` |
//! | full::full_is_not_said_while_a_permit_moves_between | bound/till.rs | `compare_exchange(from, to, Ordering::Release` | `compare_exchange(from, to, Ordering::Relaxed` |
//! | full::full_is_not_said_while_a_permit_moves_between | bound/till.rs | `self.taken.load(Ordering::Acquire)` | `self.taken.load(Ordering::Relaxed)` |
//! | full::full_is_not_said_while_a_permit_moves_between | bound/search.rs | `last.is_some_and(` | `Some(walk).is_some_and(` |
//! | full::full_is_not_said_while_a_thief | bound/account.rs | `self.end.load(Ordering::Acquire) & !OPEN` | `self.end.load(Ordering::Relaxed) & !OPEN` |
//! | full::full_is_not_said_while_a_permit_goes | bound/search.rs | `last.marks == walk.marks` | `true` |
//! | batch::a_batch_that_fails | bound/search.rs | `if seen.free < want {` | `if seen.free < want { moved += self.give_shared(self.pool.take(seen, want));` |
//! | report::who_leaves | bound/purse.rs | `let freed = self.give(capacity, rest);` | `let _ = self.give(capacity, rest); let freed = rest;` |
//! | report::who_gives_back | bound/purse.rs | `permits.max(self.move_to_pool(capacity))` | `{ let _ = self.move_to_pool(capacity); permits }` |
//! | report::who_takes_one | bound/purse.rs | `Took { got, spread }` | `Took { got, spread: 0 }` |
//! | report::a_batch_that_fails_reports_its | bound/purse.rs | `spread: shown + moved` | `spread: moved` |
//! | report::a_batch_that_fails_reports_what | bound/purse.rs | `spread: shown + moved` | `spread: shown` |

mod batch;
mod full;
mod lease;
mod report;
mod till;
mod window;

use super::{Capacity, Purse, Took};
use crate::sync::model::{model, model_of};
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A capacity, and how many permits are out, counted where loom does not see it.
struct Bank {
    capacity: Capacity,
    out: AtomicUsize,
}

impl Bank {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity: Capacity::new(limit),
            out: AtomicUsize::new(0),
        })
    }

    fn took(&self, permits: usize) -> usize {
        // ORDERING: SeqCst, all of `out`; std's, which loom does not see: it counts and orders nothing.
        let before = self.out.fetch_add(permits, Ordering::SeqCst);
        assert!(before + permits <= self.capacity.limit());
        permits
    }

    fn take_shared(&self, want: usize) -> usize {
        self.took(self.capacity.take_shared(want))
    }

    /// All is free again when `permits` come back.
    fn balance(&self, permits: usize) {
        assert_eq!(self.out.load(Ordering::SeqCst), permits);
        let limit = self.capacity.limit();
        assert_eq!(self.capacity.free(), limit - permits);
        assert_eq!(self.take_shared(limit), limit - permits);
    }
}

/// A purse whose permits are counted.
struct Owner {
    bank: Arc<Bank>,
    purse: Purse,
}

impl Owner {
    fn new(bank: &Arc<Bank>) -> Self {
        Self {
            bank: Arc::clone(bank),
            purse: Purse::new(&bank.capacity),
        }
    }

    /// An owner with one permit out and `ahead` in the purse, when nobody else has an account.
    fn with(bank: &Arc<Bank>, ahead: usize) -> Self {
        let mut owner = Self::new(bank);
        assert_eq!(owner.take(1), 1);
        assert_eq!(owner.purse.left(), ahead);
        owner
    }

    fn take(&mut self, want: usize) -> usize {
        self.take_some(want).got
    }

    /// Takes up to `want`, and one as a push does.
    fn take_some(&mut self, want: usize) -> Took {
        let capacity = &self.bank.capacity;
        let took = match want {
            1 => {
                let spread = self.purse.take_one(capacity);
                Took {
                    got: usize::from(spread.is_some()),
                    spread: spread.unwrap_or(0),
                }
            }
            _ => self.purse.take(capacity, want),
        };
        self.bank.took(took.got);
        took
    }

    /// Takes `want` or nothing.
    fn take_all(&mut self, want: usize) -> Took {
        let took = self.purse.take_all(&self.bank.capacity, want);
        assert!(took.got == 0 || took.got == want);
        self.bank.took(took.got);
        took
    }

    /// Gives permits back, and answers how many are reported.
    fn give(&mut self, permits: usize) -> usize {
        self.bank.out.fetch_sub(permits, Ordering::SeqCst);
        self.purse.give(&self.bank.capacity, permits)
    }

    /// Ends the lease, and answers how many permits are reported.
    fn leave(self) -> usize {
        self.purse.leave(&self.bank.capacity)
    }
}

fn spawn<R: 'static>(run: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(run)
}
