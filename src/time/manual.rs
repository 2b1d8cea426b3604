//! A clock that is set by hand.

use super::timer_queue::{TimerEntry, TimerQueue};
use super::Clock;
use crate::sync::{lock, Mutex};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A clock that stands still until it is set, for tests.
///
/// Clones are the same clock.
///
/// Wakers whose time has come are called by whoever sets the clock, before the call returns, in the order
/// of their times; [`ManualClock::now`] says the new time already. If one panics the panic is caught,
/// and the next one is called.
///
/// ```
/// use requeue::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.clone().advance(Duration::from_secs(5));
/// assert_eq!(clock.now() - start, Duration::from_secs(5));
/// ```
#[derive(Clone)]
pub struct ManualClock {
    state: Arc<Mutex<ManualState>>,
}

struct ManualState {
    now: Instant,
    timers: TimerQueue,
}

impl ManualClock {
    /// A clock that says when it was made.
    ///
    /// ```
    /// use requeue::ManualClock;
    ///
    /// let clock = ManualClock::new();
    /// assert_eq!(clock.now(), clock.now());
    /// ```
    pub fn new() -> Self {
        let state = ManualState {
            now: Instant::now(),
            timers: TimerQueue::default(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The time.
    ///
    /// ```
    /// use requeue::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// assert_eq!(clock.now(), Clock::now(&clock));
    /// ```
    pub fn now(&self) -> Instant {
        lock(&self.state).now
    }

    /// Sets the clock forward.
    ///
    /// ```
    /// use requeue::ManualClock;
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let due = clock.now() + Duration::from_millis(30);
    /// clock.advance(Duration::from_millis(10));
    /// clock.advance(Duration::from_millis(20));
    /// assert_eq!(clock.now(), due);
    /// ```
    ///
    /// # Panics
    ///
    /// If the new time is beyond what an [`Instant`] can say. The clock is not changed then.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let turned = self.turn(|now| now.checked_add(by));
        assert!(turned, "clock advanced beyond the last `Instant`");
    }

    /// Sets the clock, also backwards: then what was to come comes later by as much.
    ///
    /// ```
    /// use requeue::ManualClock;
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let start = clock.now();
    /// clock.advance(Duration::from_secs(1));
    /// clock.set(start);
    /// assert_eq!(clock.now(), start);
    /// ```
    pub fn set(&self, now: Instant) {
        self.turn(|_| Some(now));
    }

    /// Sets the clock to what `to` says: false if that is no time.
    fn turn(&self, to: impl FnOnce(Instant) -> Option<Instant>) -> bool {
        let mut state = lock(&self.state);
        let Some(now) = to(state.now) else {
            return false;
        };
        state.now = now;
        let due = state.timers.take_due(now);
        drop(state);
        due.into_iter().for_each(TimerEntry::ring);
        true
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        let timer = TimerEntry::new(waker);
        let mut state = lock(&self.state);
        if at <= state.now {
            drop(state);
            return timer.ring();
        }
        let spare = state.timers.set(at, timer);
        drop(state);
        if let Some(spare) = spare {
            spare.discard();
        }
    }
}

/// [`ManualClock::new`].
impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        let (now, timers) = (state.now, state.timers.len());
        drop(state); // what is written to is user code
        f.debug_struct("ManualClock")
            .field("now", &now)
            .field("timers", &timers)
            .finish()
    }
}
