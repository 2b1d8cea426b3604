//! The timers of the system clock, and the thread that fires them.

use super::timer_queue::{TimerEntry, TimerQueue};
use crate::sync::{lock, Condvar, Mutex};
use std::sync::OnceLock;
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{io, mem, thread};

/// The timers of the system clock, and the thread that waits for the first of them.
#[derive(Default)]
pub(super) struct Timer {
    state: Mutex<TimerState>,
    /// Signalled when the first timer changes.
    changed: Condvar,
}

#[derive(Default)]
struct TimerState {
    timers: TimerQueue,
    /// Whether the thread has been started.
    runs: bool,
}

/// Schedules a waker with the timer of the process.
pub(super) fn wake_at(at: Instant, waker: &Waker) {
    static TIMER: OnceLock<Timer> = OnceLock::new();
    TIMER.get_or_init(Timer::default).wake_at(at, waker);
}

impl Timer {
    /// Schedules a waker to be called at a time, or calls it now if the thread cannot be spawned.
    pub(super) fn wake_at(&'static self, at: Instant, waker: &Waker) {
        self.set(at, waker, || self.spawn());
    }

    /// Sets a timer, and starts the thread if it is not running.
    pub(super) fn set(&self, at: Instant, waker: &Waker, spawn: impl FnOnce() -> io::Result<()>) {
        let timer = TimerEntry::new(waker);
        let mut state = lock(&self.state);
        let first = state.timers.first();
        state.timers.set(at, &timer);
        let changed = state.timers.first() != first;
        let runs = mem::replace(&mut state.runs, true);
        drop(state);
        if changed {
            self.changed.notify_one();
        }
        timer.discard();
        if !runs && spawn().is_err() {
            self.give_up();
        }
    }

    fn spawn(&'static self) -> io::Result<()> {
        let thread = thread::Builder::new().name("requeue-timer".to_string());
        thread.spawn(|| self.run()).map(drop)
    }

    /// Fires all timers now: there is no thread to wait for them.
    fn give_up(&self) {
        let state = mem::take(&mut *lock(&self.state));
        state.timers.into_all().for_each(TimerEntry::fire);
    }

    /// Fires due timers; if there are none, sleeps until the first one is due or changes.
    fn run(&self) {
        loop {
            let mut state = lock(&self.state);
            let now = Instant::now();
            let due = state.timers.take_due(now);
            if due.is_empty() {
                let first = state.timers.first();
                let left = first.map_or(Duration::MAX, |at| at.saturating_duration_since(now));
                self.changed.wait_for(&mut state, left);
            }
            drop(state);
            due.into_iter().for_each(TimerEntry::fire);
        }
    }
}
