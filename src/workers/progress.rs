//! What a worker does now and how often it has succeeded, written by the worker alone, for each item.
//!
//! The state and the number of successful runs are one word, which is stored after what belongs to it. A reader of
//! the word finds a time stamp that is at least as new.

use crate::sync::{weak, AtomicU64, Ordering};

/// The state of a worker, without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Busy,
    Paused,
    Stopped,
}

/// Bits of the word: the phase, below the number of successful runs.
const PHASE: u64 = 0b11;
/// One successful run.
const ONE: u64 = PHASE + 1;

pub(super) struct WorkerProgress {
    /// The number of successful runs, and the phase.
    word: AtomicU64,
    /// The time stamp of when the worker took its last item.
    since: AtomicU64,
}

/// The progress of a worker as of some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) phase: Phase,
    pub(super) done: u64,
    /// The time stamp of when the worker took its item, if it is busy: of that run or, if it has ended meanwhile, of a
    /// later one.
    pub(super) since: u64,
}

impl WorkerProgress {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(Phase::Idle as u64),
            since: AtomicU64::new(0),
        }
    }

    /// A run begins.
    #[inline]
    pub(super) fn begin(&self, since: u64) {
        // ORDERING: Relaxed; published by `show`.
        self.since.store(since, Ordering::Relaxed);
        self.show(Phase::Busy);
    }

    /// The present run has succeeded.
    #[inline]
    pub(super) fn succeed(&self) {
        self.store((self.own() | PHASE) + 1);
    }

    /// A run has succeeded, perhaps an earlier one than the present one.
    pub(super) fn count(&self) {
        self.store(self.own() + ONE);
    }

    #[inline]
    pub(super) fn show(&self, phase: Phase) {
        self.store(self.own() & !PHASE | phase as u64);
    }

    pub(super) fn read(&self) -> Seen {
        // ORDERING: Acquire; pairs with `worker.show`.
        let word = self.word.load(weak!("worker.look", Acquire));
        let phase = match word & PHASE {
            0 => Phase::Idle,
            1 => Phase::Busy,
            2 => Phase::Paused,
            _ => Phase::Stopped,
        };
        Seen {
            phase,
            done: word / ONE,
            // ORDERING: Relaxed; after the word.
            since: self.since.load(Ordering::Relaxed),
        }
    }

    #[inline]
    fn own(&self) -> u64 {
        // ORDERING: Relaxed; only this thread writes it.
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, word: u64) {
        // ORDERING: Release; pairs with `worker.look`.
        self.word.store(word, weak!("worker.show", Release));
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::{Phase, Seen, WorkerProgress};
    use crate::sync::model::model;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn a_worker_is_busy_since_its_present_run_or_a_later_one() {
        model(|| {
            let progress = Arc::new(WorkerProgress::new());
            let reader = thread::spawn({
                let progress = Arc::clone(&progress);
                move || progress.read()
            });
            progress.begin(1);
            progress.succeed();
            progress.begin(2);
            let Seen { phase, done, since } = reader.join().unwrap();
            assert!(phase != Phase::Busy || since > done);
        });
    }
}
