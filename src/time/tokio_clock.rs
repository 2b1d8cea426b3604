//! The clock of a tokio runtime.

use super::clock::within_horizon;
use super::timer_queue::{TimerEntry, TimerQueue};
use super::Clock;
use crate::sync::{lock, Mutex};
use std::future::{poll_fn, Future};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time;

/// The clock of a tokio runtime: that of `tokio::time`, which a test can pause and advance. Feature `tokio`.
///
/// On a queue with this clock, `tokio::time::pause` and `advance` drive delays, leases, backoffs and timeouts. While the time
/// is paused and all tasks wait, tokio advances it to the next timer by itself, those of this clock included: so a test of
/// an hour ends at once. A pool's own waits, such as the limit of [`Workers::finish`](crate::Workers::finish), are by the
/// system's clock.
///
/// Clones share their timers. Wakers are called by a task of the runtime, which is spawned when there is a timer, and ends
/// when there is none. When the runtime has shut down they are called at once, so that other tasks are polled
/// spuriously instead of being lost. In code of the runtime use the forms of the verbs for tasks: on a runtime of one
/// thread a blocking one waits for a time that cannot come.
///
/// ```
/// # let mut runtime = tokio::runtime::Builder::new_current_thread();
/// # let runtime = runtime.enable_time().start_paused(true).build()?;
/// # runtime.block_on(async { // as `#[tokio::test(start_paused = true)]`
/// use requeue::{Queue, TokioClock};
/// use std::time::Duration;
///
/// let queue = Queue::builder().clock(TokioClock::new()).build();
/// let hour = Duration::from_secs(3600);
/// let start = queue.now();
/// queue.after(hour).push("late")?;
/// assert!(queue.pop().is_err());
/// assert_eq!(queue.pop_async().await?, "late"); // an hour later, at once
/// assert!(queue.now() - start >= hour);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TokioClock {
    handle: Handle,
    state: Arc<Mutex<TokioState>>,
}

#[derive(Default)]
struct TokioState {
    timers: TimerQueue,
    /// Whether the task has been spawned and has not ended.
    runs: bool,
    /// Wakes the task when the first timer changes.
    task: Option<Waker>,
}

impl TokioClock {
    /// The clock of the current runtime.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Clock, TokioClock};
    ///
    /// let clock = TokioClock::new();
    /// assert!(clock.now() <= tokio::time::Instant::now().into_std());
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or if its time is not enabled.
    #[track_caller]
    #[allow(clippy::new_without_default)] // it depends on where it is called
    pub fn new() -> Self {
        let handle = Handle::current();
        drop(time::sleep(Duration::ZERO)); // the check that time is enabled
        let state = Arc::default();
        Self { handle, state }
    }
}

/// From any thread.
impl Clock for TokioClock {
    fn now(&self) -> Instant {
        let _entered = self.handle.enter();
        time::Instant::now().into_std()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        let at = within_horizon(at, self.now());
        let timer = TimerEntry::new(waker);
        let mut state = lock(&self.state);
        let first = state.timers.first();
        state.timers.set(at, &timer);
        let changed = state.timers.first() != first;
        let runs = mem::replace(&mut state.runs, true);
        let task = changed.then(|| state.task.take()).flatten();
        drop(state);
        timer.discard();
        task.into_iter().for_each(Waker::wake);
        if !runs {
            let (state, ended) = (Arc::clone(&self.state), false);
            self.handle.spawn(Firing { state, ended }.fire());
        }
    }
}

/// The task that calls the wakers.
struct Firing {
    state: Arc<Mutex<TokioState>>,
    /// Whether no timer was left.
    ended: bool,
}

impl Firing {
    /// Fires due timers; if there are none, sleeps until the first one is due or changes. Ends when none is left.
    async fn fire(mut self) {
        let mut sleep = pin!(time::sleep(Duration::ZERO));
        poll_fn(|context| loop {
            let (now, waker) = (time::Instant::now().into_std(), context.waker().clone());
            let mut state = lock(&self.state);
            let due = state.timers.take_due(now);
            let first = state.timers.first();
            state.runs = first.is_some() || !due.is_empty();
            let last = mem::replace(&mut state.task, first.map(|_| waker));
            let runs = state.runs;
            drop(state);
            drop(last);
            if !runs {
                return Poll::Ready(());
            }
            if let Some(first) = first.filter(|_| due.is_empty()) {
                sleep.as_mut().reset(first.into());
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
            due.into_iter().for_each(TimerEntry::fire);
        })
        .await;
        self.ended = true;
    }
}

/// Fires all timers if the runtime has shut down: there is no task to wait for them.
impl Drop for Firing {
    fn drop(&mut self) {
        if !self.ended {
            let state = mem::take(&mut *lock(&self.state));
            state.timers.into_all().for_each(TimerEntry::fire);
        }
    }
}

debug_struct!([] TokioClock, |clock| now: clock.now(), timers: lock(&clock.state).timers.len());
