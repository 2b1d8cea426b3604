//! Synchronization primitives: the standard ones and `parking_lot`'s locks, loom's under `--cfg loom`, or
//! shuttle's under `--cfg shuttle`. These need the features of the same names, which change nothing by themselves.
//! Under `--cfg yields` the atomics of std give way to other threads at random; under `--cfg machine` all are those of a
//! simulated machine.
//!
//! All have the API of loom's, so that the code above is written once.

#[cfg(all(loom, not(feature = "loom")))]
compile_error!("`--cfg loom` needs the feature `loom`");
#[cfg(all(shuttle, not(feature = "shuttle")))]
compile_error!("`--cfg shuttle` needs the feature `shuttle`");
#[cfg(all(yields, any(loom, shuttle)))]
compile_error!("`--cfg yields` is for the atomics of std");
#[cfg(all(machine, any(loom, shuttle, yields)))]
compile_error!("`--cfg machine` has atomics of its own");

#[allow(unsafe_code)] // one system call
pub(crate) mod barrier;
mod defer;
#[cfg(machine)]
pub mod machine;
#[cfg(all(loom, test))]
pub(crate) mod model;
mod mutex;
mod panic;
mod start;
mod visits;
mod weaken;
#[cfg(yields)]
mod yields;

pub(crate) use defer::{defer, defer_with};
#[cfg(machine)]
pub(crate) use machine::{Condvar, UnsafeCell};
pub(crate) use mutex::{lock, try_lock, Mutex, MutexGuard};
pub(crate) use panic::swallow_panic;
#[cfg(not(any(loom, shuttle, machine)))]
pub(crate) use parking_lot::Condvar;
pub(crate) use start::{start, start_before};
pub(crate) use visits::count_visit;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use visits::visits_of;
#[cfg(any(loom, yields))]
pub(crate) use weaken::ordering;
pub(crate) use weaken::{is_weakened, planted, step, weak};

#[cfg(loom)]
use loom::sync as kind;
#[cfg(shuttle)]
use shuttle::sync as kind;
#[cfg(not(any(loom, shuttle)))]
use std::sync as kind;

#[cfg(not(machine))]
pub(crate) use crossbeam_utils::Backoff;
#[cfg(machine)]
pub(crate) use machine::{Backoff, RandomState};
#[cfg(not(machine))]
pub(crate) use std::collections::hash_map::RandomState;

pub(crate) use kind::atomic::Ordering;
#[cfg(not(any(yields, machine)))]
pub(crate) use kind::atomic::{
    fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, AtomicUsize,
};
#[cfg(machine)]
pub(crate) use machine::{
    fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, AtomicUsize,
};
#[cfg(yields)]
pub(crate) use yields::{
    fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, AtomicUsize,
};

#[cfg(not(any(loom, machine)))]
pub(crate) use self::std_cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// Thread-locals with constant initial values.
macro_rules! thread_locals {
    ($(static $name:ident: $type:ty = $value:expr;)+) => {
        #[cfg(loom)]
        loom::thread_local! { $(static $name: $type = $value;)+ }
        #[cfg(shuttle)]
        shuttle::thread_local! { $(static $name: $type = $value;)+ }
        #[cfg(machine)]
        $crate::sync::machine::local! { $(static $name: $type = $value;)+ }
        #[cfg(not(any(loom, shuttle, machine)))]
        std::thread_local! { $(static $name: $type = const { $value };)+ }
    };
}
pub(crate) use thread_locals;

#[cfg(machine)]
pub(crate) use machine as thread;
#[cfg(not(any(loom, shuttle, machine)))]
pub(crate) use std::thread;

/// Whether tables and segments are small, so that models, and tests under Miri, fill them in a few steps.
pub(crate) const SMALL: bool = cfg!(any(loom, shuttle, miri));

/// The threads of loom and shuttle, which know no time: a timeout never elapses.
#[cfg(any(loom, shuttle))]
pub(crate) mod thread {
    #[cfg(loom)]
    pub(crate) use loom::thread::{current, park, yield_now, Thread};
    #[cfg(shuttle)]
    pub(crate) use shuttle::thread::{current, park, yield_now, Thread};

    pub(crate) fn park_timeout(_: std::time::Duration) {
        park();
    }
}

/// Whether only one thread can run at a time, so that to spin for another is in vain.
pub(crate) fn is_single_cpu() -> bool {
    static COUNT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(1, usize::from);
    !cfg!(machine) && *COUNT.get_or_init(count) == 1
}

/// Signals the processor, or the scheduler of a model, that this thread is spinning.
#[inline]
pub(crate) fn spin_hint() {
    #[cfg(not(any(loom, shuttle, machine)))]
    std::hint::spin_loop();
    #[cfg(machine)]
    machine::spin_hint();
    #[cfg(any(loom, shuttle))]
    thread::yield_now();
}

/// Accesses a cell to move its value out. That is exclusive, but writes nothing.
#[inline]
pub(crate) fn with_moved<T, R>(cell: &UnsafeCell<T>, read: impl FnOnce(*mut T) -> R) -> R {
    #[cfg(machine)]
    return cell.with_moved(read);
    #[cfg(not(machine))]
    cell.with_mut(read)
}

/// The time of the system, or of the simulated machine.
#[inline]
pub(crate) fn now() -> std::time::Instant {
    #[cfg(machine)]
    return machine::now();
    #[cfg(not(machine))]
    std::time::Instant::now()
}

/// The value of an atomic pointer, by exclusive access.
pub(crate) fn exclusive<T>(pointer: &mut AtomicPtr<T>) -> *mut T {
    #[cfg(not(loom))]
    return *pointer.get_mut();
    #[cfg(loom)]
    pointer.with_mut(|pointer| *pointer)
}

/// `fetch_min`. `ThreadSanitizer` sees neither `fetch_max` nor `fetch_min`, since the compiler makes loops of them after
/// it has instrumented the code; under `--cfg tsan` it is a loop from the beginning.
#[inline]
pub(crate) fn fetch_min(atomic: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
    #[cfg(not(tsan))]
    return atomic.fetch_min(value, ordering);
    // ORDERING: that of the caller; the load before it is Relaxed, as a loop of the compiler has it.
    #[cfg(tsan)]
    atomic
        .fetch_update(ordering, Ordering::Relaxed, |now| Some(now.min(value)))
        .unwrap_or_else(|now| now)
}

#[cfg(not(any(loom, machine)))]
mod std_cell {
    /// The standard cell behind loom's closures.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[inline]
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}
