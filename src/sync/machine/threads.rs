//! What threads do besides accesses: they sleep, spin, and read the clock.

use super::{event, hooks, Event};
use std::cell::Cell;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Hashes alike in each run.
pub(crate) type RandomState = BuildHasherDefault<DefaultHasher>;

/// A thread of the simulation, or one of the system.
#[derive(Clone, Debug)]
pub struct Thread(Result<usize, std::thread::Thread>);

impl Thread {
    /// Wakes the thread, or makes its next sleep end at once.
    pub fn unpark(&self) {
        match &self.0 {
            Ok(number) => event(Event::Unpark(*number)),
            Err(thread) => thread.unpark(),
        }
    }
}

/// The current thread.
pub fn current() -> Thread {
    Thread(match hooks() {
        Some(hooks) => Ok((hooks.thread)()),
        None => Err(std::thread::current()),
    })
}

/// Sleeps until the thread is unparked.
pub fn park() {
    match hooks() {
        Some(hooks) => (hooks.event)(Event::Park(None)),
        None => std::thread::park(),
    }
}

/// Sleeps until the thread is unparked, or for a time.
pub fn park_timeout(span: Duration) {
    match hooks() {
        Some(hooks) => (hooks.event)(Event::Park(Some(span))),
        None => std::thread::park_timeout(span),
    }
}

/// Yields the processor.
pub fn yield_now() {
    match hooks() {
        Some(hooks) => (hooks.event)(Event::Yield),
        None => std::thread::yield_now(),
    }
}

/// Pauses the processor once.
pub fn spin_hint() {
    event(Event::Spin(1));
}

/// The time of the simulation, as an instant.
pub fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    match hooks() {
        Some(hooks) => *START.get_or_init(Instant::now) + (hooks.now)(),
        None => Instant::now(),
    }
}

/// The back-off of `crossbeam_utils`, whose pauses are events.
#[derive(Debug, Default)]
pub struct Backoff(Cell<u32>);

impl Backoff {
    /// As many doublings as there.
    const SPINS: u32 = 6;

    /// Starts with one pause.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pauses, twice as long each time.
    pub fn spin(&self) {
        let step = self.0.get().min(Self::SPINS);
        event(Event::Spin(1 << step));
        self.0.set(step + 1);
    }
}
