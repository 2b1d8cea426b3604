//! The primitives of a simulated machine with many cores: for `--cfg machine`.
//!
//! Each access to shared memory, and each call of the system, is an [`Event`], which the simulation of the current thread
//! is told of before it happens. The simulation gives it a cost, and lets other simulated threads run first. It is the package
//! `requeue-machine`, which runs all its threads on one thread of the system, as coroutines; so the
//! accesses themselves need no ordering. Threads of the system without a simulation use everything as under no cfg.

mod atomics;
mod locals;
mod locks;
mod threads;

pub use atomics::{
    fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Simulated,
};
pub use locals::{end_thread, LocalKey};
pub(crate) use locks::{lock, try_lock, Condvar};
pub use locks::{Mutex, MutexGuard};
pub(crate) use threads::RandomState;
pub use threads::{current, now, park, park_timeout, spin_hint, yield_now, Backoff, Thread};

use std::cell::Cell;
use std::time::Duration;

/// What a simulated thread is about to do, or has just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Loads from an address.
    Read(usize),
    /// Stores to an address.
    Write(usize),
    /// Locked operation on an address.
    Locked(usize),
    /// Full fence.
    Fence,
    /// `membarrier`.
    Membarrier,
    /// Pins itself for the reclaimer, whose atomics are its own.
    Pin,
    /// Ends a pin.
    Unpin,
    /// Hands garbage over to the reclaimer, which tries to advance its epoch.
    Advance,
    /// Spins for this number of pauses of the processor.
    Spin(u32),
    /// Yields the processor.
    Yield,
    /// Sleeps until another thread unparks this one, or until this time has passed.
    Park(Option<Duration>),
    /// Unparks a thread.
    Unpark(usize),
    /// Sleeps until the lock at an address is released.
    Await(usize),
    /// Released the lock at an address.
    Release(usize),
}

/// The functions of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Called at each event, by the simulated thread. Other threads may run before it returns.
    pub event: fn(Event),
    /// The number of the simulated thread that runs now.
    pub thread: fn() -> usize,
    /// What the clock of its core shows.
    pub now: fn() -> Duration,
}

std::thread_local! {
    static HOOKS: Cell<Option<Hooks>> = const { Cell::new(None) };
}

/// Sets or clears the simulation of this thread of the system.
pub fn simulate(hooks: Option<Hooks>) {
    HOOKS.with(|cell| cell.set(hooks));
}

fn hooks() -> Option<Hooks> {
    HOOKS.try_with(Cell::get).ok().flatten()
}

/// Tells the simulation of an event.
#[inline]
pub fn event(event: Event) {
    if let Some(hooks) = hooks() {
        (hooks.event)(event);
    }
}

/// The simulated thread that runs now. Threads of the system without a simulation share a number.
fn thread() -> usize {
    hooks().map_or(usize::MAX, |hooks| (hooks.thread)())
}

/// The macro of std, with values for each simulated thread.
macro_rules! local {
    ($(static $name:ident: $type:ty = $value:expr;)+) => {$(
        static $name: $crate::sync::machine::LocalKey<$type> =
            $crate::sync::machine::LocalKey::new(|| $value);
    )+};
}
pub(crate) use local;

fn address<T: ?Sized>(place: &T) -> usize {
    (place as *const T).cast::<()>() as usize
}

/// The standard cell behind loom's closures. An access is one of the cell's first line.
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Creates a cell.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Accesses the value to read it.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        event(Event::Read(address(self)));
        read(self.0.get())
    }

    /// Accesses the value to write it.
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        event(Event::Write(address(self)));
        write(self.0.get())
    }

    /// Accesses the value to move it out, which writes nothing.
    pub fn with_moved<R>(&self, read: impl FnOnce(*mut T) -> R) -> R {
        event(Event::Read(address(self)));
        read(self.0.get())
    }
}
