//! The primitives of the lock-free room: the standard ones, or loom's under `--cfg loom`.
//!
//! Both have the shape of loom's, so that the code above is written once.

#[cfg(not(loom))]
pub(crate) use self::std_cell::UnsafeCell;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicU8, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicU8, AtomicUsize, Ordering},
};

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
