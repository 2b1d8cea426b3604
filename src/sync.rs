//! The primitives of the lock-free room: the standard ones, or loom's under `--cfg loom`.
//!
//! Both have the shape of loom's, so that the code above is written once.

use std::sync::PoisonError;

#[cfg(not(loom))]
pub(crate) use self::std_cell::UnsafeCell;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    fence, AtomicBool, AtomicPtr, AtomicU64, AtomicU8, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU64, AtomicU8, AtomicUsize, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(not(loom))]
pub(crate) use std::{sync::Mutex, thread};

#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(not(loom))]
pub(crate) use std::sync::MutexGuard;

/// A number with one user at a time, who may be another thread each time.
///
/// Atomic only because the compiler cannot know that; not a loom one, since nobody races for it.
#[derive(Debug, Default)]
pub(crate) struct Count(std::sync::atomic::AtomicUsize);

impl Count {
    pub(crate) fn new(count: usize) -> Self {
        Self(std::sync::atomic::AtomicUsize::new(count))
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        // ORDERING: Relaxed; the user has it alone.
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, count: usize) {
        // ORDERING: Relaxed; the user has it alone.
        self.0.store(count, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> usize {
        let count = self.get();
        self.set(0);
        count
    }
}

/// Locks; what a panic left behind a lock of this crate is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loom's threads, which know no time: they wait for ever instead.
#[cfg(loom)]
pub(crate) mod thread {
    pub(crate) use loom::thread::{current, park, yield_now, Thread};

    pub(crate) fn park_timeout(_: std::time::Duration) {
        park();
    }
}

/// Tells the processor, and loom's scheduler, that this thread waits for another one's next step.
#[inline]
pub(crate) fn spin_hint() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The value of an atomic pointer that nobody else can reach.
pub(crate) fn exclusive<T>(pointer: &mut AtomicPtr<T>) -> *mut T {
    #[cfg(not(loom))]
    return *pointer.get_mut();
    #[cfg(loom)]
    pointer.with_mut(|pointer| *pointer)
}

#[cfg(not(loom))]
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
