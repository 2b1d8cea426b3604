//! Clocks and back-offs: where a queue reads the time, and how long a failed item waits.

// A queue counts time in nanoseconds from when it was made, so that a time fits into a word. It reads
// the clock only where it needs the time: for delays, leases and time stamps.
//
// A thread that waits for a time sleeps no longer than that. A task cannot, so it sets an *timer*: a
// waker, and when to call it.

mod backoff;
mod clock;
mod manual;
#[cfg(not(any(loom, shuttle)))]
mod timer;
mod timer_queue;

pub use backoff::Backoff;
pub use clock::{Clock, SystemClock};
pub use manual::ManualClock;

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The time of one queue.
#[derive(Clone)]
pub(crate) struct Time {
    /// None: the system's.
    clock: Option<Arc<dyn Clock>>,
    /// Time 0.
    origin: Instant,
}

impl Time {
    pub(crate) fn system() -> Self {
        Self {
            clock: None,
            origin: SystemClock.now(),
        }
    }

    pub(crate) fn of(clock: Arc<dyn Clock>) -> Self {
        let origin = clock.now();
        Self {
            clock: Some(clock),
            origin,
        }
    }

    /// Whether it is the system's, which threads can wait for by themselves.
    pub(crate) fn is_system(&self) -> bool {
        self.clock.is_none()
    }

    /// The time. The models know none: there, the system's is always 0.
    pub(crate) fn now(&self) -> u64 {
        match &self.clock {
            Some(clock) => self.nanos(clock.now()),
            None if cfg!(any(loom, shuttle)) => 0,
            None => self.nanos(SystemClock.now()),
        }
    }

    /// The time as a stamp: one more, so that 0 can say that it is not known.
    pub(crate) fn stamp(&self) -> u64 {
        self.now() + 1
    }

    /// How long ago a stamp was made.
    pub(crate) fn age(&self, stamp: u64) -> Duration {
        Duration::from_nanos(self.stamp().saturating_sub(stamp))
    }

    /// What the clock said when a stamp was made; `None`, if that is not known.
    pub(crate) fn stamped(&self, stamp: u64) -> Option<Instant> {
        self.instant(stamp.checked_sub(1)?)
    }

    /// What the clock says.
    pub(crate) fn clock_now(&self) -> Instant {
        self.clock
            .as_ref()
            .map_or_else(|| SystemClock.now(), Clock::now)
    }

    /// The time in so long: at the end of time, if that is later, but not [`NEVER`].
    pub(crate) fn after(&self, delay: Duration) -> u64 {
        later(self.now(), delay)
    }

    /// What the clock says at a time; `None`, if it can never say so.
    pub(crate) fn instant(&self, nanos: u64) -> Option<Instant> {
        let elapsed = Some(nanos).filter(|&nanos| nanos != NEVER)?;
        self.origin.checked_add(Duration::from_nanos(elapsed))
    }

    /// The time at which the clock says so: 0 for all that is before.
    pub(crate) fn nanos(&self, at: Instant) -> u64 {
        whole(at.saturating_duration_since(self.origin))
    }

    /// Has a waker called at a time, or at once if that has come; see [`Clock::wake_at`].
    pub(crate) fn wake_at(&self, nanos: u64, waker: &Waker) {
        let Some(at) = self.instant(nanos) else {
            return;
        };
        match &self.clock {
            Some(clock) => clock.wake_at(at, waker),
            None => SystemClock.wake_at(at, waker),
        }
    }
}

/// The models know no time: they wait for ever instead.
#[cfg(any(loom, shuttle))]
mod timer {
    use super::{Instant, Waker};

    pub(super) fn wake_at(_: Instant, _: &Waker) {}
}

/// The time so long after another one: at the end of time, if that is later, but not [`NEVER`].
pub(crate) fn later(now: u64, delay: Duration) -> u64 {
    now.saturating_add(whole(delay)).min(NEVER - 1)
}

/// In nanoseconds, before [`NEVER`].
fn whole(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(NEVER - 1, |nanos| nanos.min(NEVER - 1))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
