//! Loom models of the permits.

mod batch;
mod free_count;
mod full;
mod lease;
mod range;
mod report;

use super::{Capacity, RecordOwner};
use crate::sync::model::{model, model_of};
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A capacity, and the number of permits taken, counted by an atomic that loom does not see.
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

    /// Takes a permit without a record, and returns how many.
    fn take_shared(&self) -> usize {
        self.took(usize::from(self.capacity.take_shared()))
    }

    /// Takes up to `want` permits as [`take_shared`](Self::take_shared) does.
    fn take_many(&self, want: usize) -> usize {
        (0..want).map(|_| self.take_shared()).sum()
    }

    /// Checks that all permits except `permits` are free.
    fn balance(&self, permits: usize) {
        assert_eq!(self.out.load(Ordering::SeqCst), permits);
        let limit = self.capacity.limit();
        assert_eq!(self.capacity.free(), limit - permits);
        assert_eq!(self.take_many(limit), limit - permits);
    }
}

/// The owner of a record whose permits are counted.
struct Owner {
    bank: Arc<Bank>,
    owner: RecordOwner,
}

impl Owner {
    fn new(bank: &Arc<Bank>) -> Self {
        Self {
            bank: Arc::clone(bank),
            owner: RecordOwner::new(&bank.capacity),
        }
    }

    /// An owner with one permit taken and `ahead` in the range, when there is no other record.
    fn with(bank: &Arc<Bank>, ahead: usize) -> Self {
        let mut owner = Self::new(bank);
        assert_eq!(owner.take(1), 1);
        assert_eq!(owner.owner.left(), ahead);
        owner
    }

    /// Takes up to `want` permits.
    fn take(&mut self, want: usize) -> usize {
        let capacity = &self.bank.capacity;
        self.bank.took(self.owner.take(capacity, want, true))
    }

    /// Takes `want` permits or none.
    fn take_all(&mut self, want: usize) -> usize {
        let takes = self.owner.take_all(&self.bank.capacity, want);
        self.bank.took(want * usize::from(takes))
    }

    /// Gives permits back.
    fn give(&mut self, permits: usize) {
        self.bank.out.fetch_sub(permits, Ordering::SeqCst);
        self.owner.put_back(permits);
    }

    /// Gives permits back, moves them to the pool if that is due, and returns how many are reported.
    fn give_tidily(&mut self, permits: usize) -> usize {
        self.give(permits);
        self.owner.tidy(&self.bank.capacity, permits)
    }

    /// The number of permits reported.
    fn unsaid(&mut self) -> usize {
        self.owner.unsaid()
    }

    fn leave(self) {
        self.owner.leave(&self.bank.capacity);
    }
}

fn spawn<R: 'static>(run: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(run)
}
