//! Locks with the costs of `parking_lot`'s, and the names of ours.

use super::{address, event, Event};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Rounds in which a thread spins for a lock, twice as long each time, and those in which it spins or yields, before it sleeps:
/// those of `parking_lot_core::SpinWait`.
const SPINS: u32 = 3;
const ROUNDS: u32 = 10;

/// A lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> std::panic::UnwindSafe for Mutex<T> {}
impl<T> std::panic::RefUnwindSafe for Mutex<T> {}

/// The use of what a lock protects.
#[derive(Debug)]
pub struct MutexGuard<'m, T> {
    guard: Option<parking_lot::MutexGuard<'m, T>>,
    address: usize,
}

impl<T> Mutex<T> {
    /// Creates a lock.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Acquires the lock, unless another thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        event(Event::Locked(address(self)));
        let guard = self.0.try_lock()?;
        Some(MutexGuard {
            guard: Some(guard),
            address: address(self),
        })
    }

    /// Acquires the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let mut round = 0;
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            while self.is_locked() {
                round += 1;
                match round {
                    1..=SPINS => event(Event::Spin(1 << round)),
                    _ if round <= ROUNDS => event(Event::Yield),
                    _ => self.sleep(),
                }
            }
        }
    }

    fn is_locked(&self) -> bool {
        event(Event::Read(address(self)));
        self.0.is_locked()
    }

    /// Threads without a simulation yield.
    fn sleep(&self) {
        match super::hooks() {
            Some(hooks) if self.0.is_locked() => (hooks.event)(Event::Await(address(self))),
            Some(_) => {}
            None => std::thread::yield_now(),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("it is held until the drop")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("it is held until the drop")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        event(Event::Locked(self.address));
        self.guard = None;
        event(Event::Release(self.address));
    }
}

/// Acquires the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Acquires the lock, unless another thread holds it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock()
}

/// A condition variable, for the thread of the timers, which is none of the simulation.
#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, span: Duration) {
        if let Some(guard) = &mut guard.guard {
            self.0.wait_for(guard, span);
        }
    }
}
