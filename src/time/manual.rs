//! A clock that is set manually.

use super::timer_queue::{TimerEntry, TimerQueue};
use super::Clock;
use crate::sync::{lock, Mutex, MutexGuard};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A clock for tests that advances only when it is set.
///
/// Clones share the same clock.
///
/// The thread that sets the clock calls the wakers that are due, before the call returns, in the order
/// of their times; [`ManualClock::now`] already returns the new time. If a waker panics the panic is caught,
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
    /// Creates a clock that is set to the current time.
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

    /// Returns the current time.
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

    /// Advances the clock.
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
    /// If the new time cannot be represented by an [`Instant`]. The clock is not changed then.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let mut state = lock(&self.state);
        let now = state.now.checked_add(by);
        state.now = now.expect("clock advanced beyond the last `Instant`");
        fire_due(state);
    }

    /// Sets the clock. If it is set backwards, everything scheduled is delayed accordingly.
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
        let mut state = lock(&self.state);
        state.now = now;
        fire_due(state);
    }

    fn timers(&self) -> usize {
        lock(&self.state).timers.len()
    }
}

fn fire_due(mut state: MutexGuard<'_, ManualState>) {
    let now = state.now;
    let due = state.timers.take_due(now);
    drop(state);
    due.into_iter().for_each(TimerEntry::fire);
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        let timer = TimerEntry::new(waker);
        let mut state = lock(&self.state);
        state.timers.set(at, &timer);
        fire_due(state);
        timer.discard();
    }
}

/// [`ManualClock::new`].
impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

debug_struct!([] ManualClock, |clock| now: clock.now(), timers: clock.timers());
