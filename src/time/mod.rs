//! Clocks, the source of a queue's time, and backoffs, the delays of failed items.

// A queue counts time in nanoseconds, so that a time fits into a word; its creation is at `START`. It reads
// the clock only if it needs the time: for delays, leases and timestamps.
//
// A thread waits for a time by a timeout. A task cannot, so it sets a *timer*: a waker, and when to call it.

mod backoff;
mod clock;
mod manual;
#[cfg(not(any(loom, shuttle)))]
mod timer;
mod timer_queue;
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
mod tokio_clock;
mod wait;

pub use backoff::Backoff;
pub use clock::{Clock, SystemClock};
pub use manual::ManualClock;
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
pub use tokio_clock::TokioClock;
pub use wait::Wait;

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The time at which a queue is made: 146 years, so that an item may be stamped with an earlier time.
pub(crate) const START: u64 = 1 << 62;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The time of one queue.
#[derive(Clone)]
pub(crate) struct Time {
    /// `None`: the system clock.
    clock: Option<Arc<dyn Clock>>,
    /// The instant of [`START`].
    origin: Instant,
}

impl Time {
    /// The time of a clock, or of the system.
    pub(crate) fn new(clock: Option<Arc<dyn Clock>>) -> Self {
        let origin = now(clock.as_ref());
        Self { clock, origin }
    }

    /// Whether it is the time of the system clock, for which threads can wait by a timeout.
    pub(crate) fn is_system(&self) -> bool {
        self.clock.is_none()
    }

    /// The current time.
    #[inline(never)] // out of the waits, whose fast parts need no registers for it
    pub(crate) fn now(&self) -> u64 {
        self.nanos(self.clock_now())
    }

    /// The current time as a timestamp: one more, so that 0 can represent an unknown time.
    pub(crate) fn stamp(&self) -> u64 {
        self.now() + 1
    }

    /// The time elapsed since a timestamp.
    pub(crate) fn age(&self, stamp: u64) -> Duration {
        Duration::from_nanos(self.stamp().saturating_sub(stamp))
    }

    /// The instant of a timestamp; `None` if it is unknown.
    pub(crate) fn stamped(&self, stamp: u64) -> Option<Instant> {
        self.instant(stamp.checked_sub(1)?)
    }

    /// The instant of a timestamp of an event that has happened.
    #[cfg(feature = "workers")]
    pub(crate) fn happened(&self, stamp: u64) -> Instant {
        self.stamped(stamp).unwrap_or(self.origin)
    }

    #[cfg(feature = "workers")]
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock))
    }

    /// The current time of the clock. In the models the system clock stands still.
    pub(crate) fn clock_now(&self) -> Instant {
        match &self.clock {
            None if cfg!(any(loom, shuttle)) => self.origin,
            clock => now(clock.as_ref()),
        }
    }

    /// The time after `delay`, clamped to the last time before [`NEVER`].
    pub(crate) fn after(&self, delay: Duration) -> u64 {
        later(self.now(), delay)
    }

    /// The instant of a time; `None` if no [`Instant`] represents it.
    pub(crate) fn instant(&self, nanos: u64) -> Option<Instant> {
        let nanos = Some(nanos).filter(|&nanos| nanos != NEVER)?;
        let before = || self.origin.checked_sub(Duration::from_nanos(START - nanos));
        match nanos.checked_sub(START) {
            Some(elapsed) => self.origin.checked_add(Duration::from_nanos(elapsed)),
            None => before().or(Some(self.origin)),
        }
    }

    /// The time of an instant: [`START`] for all instants before the origin.
    pub(crate) fn nanos(&self, at: Instant) -> u64 {
        whole(at.saturating_duration_since(self.origin)).min(NEVER - 1 - START) + START
    }

    /// As [`Time::nanos`], also for an instant before the origin.
    pub(crate) fn past_nanos(&self, at: Instant) -> u64 {
        let before = whole(self.origin.saturating_duration_since(at));
        self.nanos(at) - before.min(START)
    }

    /// The time of an instant that has not come; `None` if it has.
    #[inline]
    pub(crate) fn if_ahead(&self, at: Instant) -> Option<u64> {
        Some(self.nanos(at)).filter(|&nanos| nanos > START && nanos > self.now())
    }

    /// Schedules a waker to be called at a time, or immediately if that has passed; see [`Clock::wake_at`].
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

/// The models have no time: they wait forever instead.
#[cfg(any(loom, shuttle))]
mod timer {
    use super::{Instant, Waker};

    pub(super) fn wake_at(_: Instant, _: &Waker) {}
}

fn now(clock: Option<&Arc<dyn Clock>>) -> Instant {
    clock.map_or_else(|| SystemClock.now(), Clock::now)
}

/// The time `delay` after `now`, clamped to the last time before [`NEVER`].
pub(crate) fn later(now: u64, delay: Duration) -> u64 {
    now.saturating_add(whole(delay)).min(NEVER - 1)
}

/// A duration in nanoseconds, clamped to the last time before [`NEVER`].
pub(crate) fn whole(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(NEVER - 1, |nanos| nanos.min(NEVER - 1))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
