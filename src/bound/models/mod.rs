//! Loom models of the permits.

mod batch;
mod free_count;
mod full;
mod lease;
mod range;
mod report;

use super::{Capacity, PermitCache, Took};
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

    fn take_shared(&self, want: usize) -> usize {
        self.took(self.capacity.take_shared(want))
    }

    /// Checks that all permits except `permits` are free.
    fn balance(&self, permits: usize) {
        assert_eq!(self.out.load(Ordering::SeqCst), permits);
        let limit = self.capacity.limit();
        assert_eq!(self.capacity.free(), limit - permits);
        assert_eq!(self.take_shared(limit), limit - permits);
    }
}

/// A cache whose permits are counted.
struct PermitOwner {
    bank: Arc<Bank>,
    cache: PermitCache,
}

impl PermitOwner {
    fn new(bank: &Arc<Bank>) -> Self {
        Self {
            bank: Arc::clone(bank),
            cache: PermitCache::new(&bank.capacity),
        }
    }

    /// An owner with one permit taken and `ahead` in the cache, when there is no other record.
    fn with(bank: &Arc<Bank>, ahead: usize) -> Self {
        let mut owner = Self::new(bank);
        assert_eq!(owner.take(1), 1);
        assert_eq!(owner.cache.left(), ahead);
        owner
    }

    fn take(&mut self, want: usize) -> usize {
        self.take_some(want).got
    }

    /// Takes up to `want` permits; a single one as a push does.
    fn take_some(&mut self, want: usize) -> Took {
        let capacity = &self.bank.capacity;
        let took = match want {
            1 if self.cache.take_ahead(1) => Took::all(1),
            1 => {
                let visible = self.cache.take_one(capacity, true);
                Took {
                    got: usize::from(visible.is_some()),
                    visible: visible.unwrap_or(0),
                }
            }
            _ => self.cache.take(capacity, want),
        };
        self.bank.took(took.got);
        took
    }

    /// Takes `want` permits or none.
    fn take_all(&mut self, want: usize) -> Took {
        let took = self.cache.take_all(&self.bank.capacity, want);
        assert!(took.got == 0 || took.got == want);
        self.bank.took(took.got);
        took
    }

    /// Gives permits back, and returns how many are reported.
    fn give(&mut self, permits: usize) -> usize {
        self.bank.out.fetch_sub(permits, Ordering::SeqCst);
        self.cache.give(&self.bank.capacity, permits)
    }

    /// Releases the record, and returns how many permits are reported.
    fn leave(mut self) -> usize {
        self.cache.leave(&self.bank.capacity)
    }
}

fn spawn<R: 'static>(run: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(run)
}
