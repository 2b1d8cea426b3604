//! Deferred reclamation of what is reached without a claim: pages, blocks, nodes, joints and labels.
//!
//! Pins are short: none lasts longer than one operation, so no idle handle holds anything back.
//! A thread's garbage waits in its own bag until the bag is flushed; that is done here every
//! [`FLUSH_BYTES`], so that a queue at rest leaves no more than that behind per thread.
//!
//! Under shuttle the reclaimer keeps its real atomics. That is fine: shuttle runs all threads of an
//! execution in turns on one thread of the system, and switches only at its own primitives, so that
//! each step of the reclaimer is one step of the schedule. To the reclaimer they are one thread, whose
//! pins nest: it stays pinned from the first of them to the last, and frees later than it might. What
//! it runs to free memory touches no primitive of shuttle's, so that it may run in a later execution.

use crate::sync::SMALL;
use crossbeam_epoch as epoch;
use std::cell::Cell;
use std::mem::ManuallyDrop;

/// Bytes of garbage after which a thread hands its bag over to the collector.
const FLUSH_BYTES: usize = if SMALL { 1 } else { 8192 };

/// Steps of the epoch until garbage handed over now may be freed.
const EPOCHS: usize = 2;

#[cfg(not(loom))]
std::thread_local! {
    static PENDING: Cell<usize> = const { Cell::new(0) };
}
#[cfg(loom)]
loom::thread_local! {
    static PENDING: Cell<usize> = Cell::new(0);
}

/// While a pin lives, nothing that was reachable at its start is freed.
pub(super) struct Pin {
    guard: ManuallyDrop<epoch::Guard>,
    /// Whether this thread has enough garbage to hand it over.
    full: Cell<bool>,
}

/// Pins the current thread.
#[inline]
pub(super) fn pin() -> Pin {
    Pin {
        guard: ManuallyDrop::new(epoch::pin()),
        full: Cell::new(false),
    }
}

/// Frees the garbage of this thread, as far as nobody is pinned.
pub(super) fn collect() {
    for _ in 0..EPOCHS {
        epoch::pin().flush();
    }
}

impl Pin {
    /// Runs `free` once nobody who is pinned now can still reach what it frees.
    ///
    /// # Safety
    ///
    /// What `free` frees is out of reach for pins to come, may be freed on any thread, and `free`
    /// runs no user code and borrows nothing.
    pub(super) unsafe fn retire(&self, bytes: usize, free: impl FnOnce()) {
        // SAFETY: by contract.
        unsafe { self.guard.defer_unchecked(free) };
        PENDING.with(|pending| {
            let sum = pending.get() + bytes;
            self.full.set(sum >= FLUSH_BYTES);
            pending.set(if self.full.get() { 0 } else { sum });
        });
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        if self.full.get() {
            collect();
        }
    }
}
