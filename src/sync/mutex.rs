//! Locks without poisoning: a panic leaves no inconsistent state behind a lock of this crate.

pub(crate) use kind::{lock, try_lock, Mutex, MutexGuard};

#[cfg(machine)]
use crate::sync::machine as kind;

#[cfg(not(any(loom, shuttle, machine)))]
mod kind {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    pub(crate) use parking_lot::MutexGuard;

    /// A lock of one byte.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    /// Unwind safe as std's locks are, and `parking_lot`'s are not.
    impl<T> UnwindSafe for Mutex<T> {}
    impl<T> RefUnwindSafe for Mutex<T> {}

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }
    }

    /// Acquires the lock.
    #[inline]
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.0.lock()
    }

    /// Acquires the lock, unless another thread holds it.
    pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.0.try_lock()
    }
}

#[cfg(any(loom, shuttle))]
mod kind {
    use std::sync::{PoisonError, TryLockError};

    #[cfg(loom)]
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    #[cfg(shuttle)]
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};

    /// Acquires the lock.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the lock, unless another thread holds it.
    pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        match mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
