//! Deferred reclamation of memory that is reached without a claim: pages, blocks, nodes, joints and times.
//!
//! The collector is the crate's own. Pinning or flushing a collector runs what any of its users has
//! deferred, and all crates share `crossbeam-epoch`'s default one: it would run user code in the
//! middle of a step that uses the state of an endpoint or a lock. This one only frees memory, which runs
//! no code except the allocator's.
//!
//! Pins are short: none lasts longer than one operation, so no idle handle holds anything back.
//! A thread's garbage stays in its own bag until the bag is flushed; this module does so every
//! [`FLUSH_BYTES`], so that a queue at rest leaves no more than that behind per thread. A thread that ends
//! leaves its bag to the collector, and later pins of other threads free it. What the handles of a thread leave when it ends it
//! frees itself, unless other threads are pinned then.
//!
//! A thread whose thread-locals are destroyed registers again for each pin.
//!
//! Under shuttle the reclaimer keeps its real atomics. That is fine: shuttle runs all threads of an
//! execution in turns on one OS thread, and switches only at its own primitives, so that each step of
//! the reclaimer is one step of the schedule. To the reclaimer they are one thread, whose pins nest:
//! it stays pinned from the first of them to the last, and frees later than necessary. The deferred
//! functions use no primitive of shuttle's, so they may run in a later execution.

use crate::sync::SMALL;
use crossbeam_epoch::{Collector, Guard, LocalHandle};
use std::cell::Cell;
use std::mem::ManuallyDrop;

#[cfg(machine)]
use crate::sync::machine::{event, local as thread_local, Event};
#[cfg(loom)]
use loom::thread_local;
#[cfg(not(any(loom, machine)))]
use std::thread_local;

/// Bytes of garbage after which a thread hands its bag over to the collector.
const FLUSH_BYTES: usize = if SMALL { 1 } else { 8192 };

/// Epochs until garbage handed over now may be freed.
const EPOCHS: usize = 2;

thread_local! {
    static LOCAL: ThreadGarbage = ThreadGarbage::new();
}

/// The registration and garbage of one thread.
struct ThreadGarbage {
    handle: ManuallyDrop<LocalHandle>,
    /// Bytes of garbage not handed over yet.
    pending: Cell<usize>,
}

impl ThreadGarbage {
    fn new() -> Self {
        let register = || {
            let handle = collector().register();
            #[cfg(loom)]
            drop(handle.pin()); // the first pin of a thread collects
            handle
        };
        Self {
            handle: ManuallyDrop::new(unexplored(register)),
            pending: Cell::new(0),
        }
    }

    /// Counts garbage: true if it should be handed over now.
    fn count(&self, bytes: usize) -> bool {
        let sum = self.pending.get() + bytes;
        let full = sum >= FLUSH_BYTES;
        self.pending.set(if full { 0 } else { sum });
        full
    }
}

impl Drop for ThreadGarbage {
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        unexplored(|| unsafe { ManuallyDrop::drop(&mut self.handle) });
    }
}

/// Runs steps of the reclaimer that have models in its own crate. Loom does not explore them: no thread is preempted in them, and
/// a load reads the oldest value that it may. What it explores of the reclaimer are the pins.
#[inline]
fn unexplored<R>(run: impl FnOnce() -> R) -> R {
    #[cfg(loom)]
    {
        // A thread that has yielded is left at its next access: at this one, which leads to nothing else to explore.
        // ORDERING: Relaxed; no other thread knows it.
        crate::sync::AtomicBool::new(false).load(crate::sync::Ordering::Relaxed);
        loom::stop_exploring();
    }
    let result = run();
    #[cfg(loom)]
    loom::explore();
    result
}

/// The collector of this crate.
#[cfg(not(loom))]
fn collector() -> &'static Collector {
    static COLLECTOR: std::sync::OnceLock<Collector> = std::sync::OnceLock::new();
    COLLECTOR.get_or_init(Collector::new)
}

/// The collector of one execution.
#[cfg(loom)]
fn collector() -> &'static Collector {
    loom::lazy_static! {
        static ref COLLECTOR: Collector = Collector::new();
    }
    &COLLECTOR
}

#[inline]
fn guard() -> Guard {
    LOCAL
        .try_with(|local| local.handle.pin())
        .unwrap_or_else(|_| collector().register().pin())
}

/// A pin. While it lives, nothing that was reachable at its start is freed.
pub(in crate::raw) struct Pin {
    guard: ManuallyDrop<Guard>,
    /// Whether this thread's garbage should be handed over.
    full: Cell<bool>,
}

/// Pins the current thread.
#[inline]
pub(in crate::raw) fn pin() -> Pin {
    #[cfg(machine)]
    event(Event::Pin);
    Pin {
        guard: ManuallyDrop::new(guard()),
        full: Cell::new(false),
    }
}

/// Registers the current thread, unless its thread-locals are destroyed.
pub(in crate::raw) fn register() {
    let _ = LOCAL.try_with(|_| ());
}

/// Frees the garbage of this thread, unless other threads are pinned.
#[cold]
pub(in crate::raw) fn collect() {
    register();
    unexplored(|| {
        for _ in 0..EPOCHS {
            #[cfg(machine)]
            event(Event::Advance);
            guard().flush();
        }
    });
}

impl Pin {
    /// Runs `free` once all present pins are dropped.
    ///
    /// # Safety
    ///
    /// The memory freed is not reachable by later pins, may be freed on any thread, and `free`
    /// runs no user code and borrows nothing.
    pub(in crate::raw) unsafe fn retire(&self, bytes: usize, free: impl FnOnce()) {
        // SAFETY: by contract.
        unsafe { self.guard.defer_unchecked(free) };
        if LOCAL.try_with(|local| local.count(bytes)).unwrap_or(true) {
            self.full.set(true);
        }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        #[cfg(machine)]
        event(Event::Unpin);
        if self.full.get() {
            collect();
        }
    }
}
