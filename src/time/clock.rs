//! The clock trait, and the system clock.

use super::timer;
use crate::sync::{self, swallow_panic};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The longest time that the system clock keeps a timer.
const HORIZON: Duration = Duration::from_secs(60);

/// The source of time of a queue: for delays, leases and timestamps.
///
/// [`SystemClock`] is the default, [`ManualClock`](crate::ManualClock) is for tests, and so is `TokioClock` (feature
/// `tokio`), the clock of a runtime whose time can be paused. Custom clocks are useful for simulations.
///
/// # Contract
///
/// - Both methods may be called from any thread at any time, and must not block.
/// - [`Clock::now`] is monotonic. If it goes backwards, delays and leases are prolonged accordingly, and
///   nothing is lost.
/// - [`Clock::wake_at`] calls the waker at least once, from any thread: when [`Clock::now`] reaches the time, or soon
///   after; immediately, if the time has passed. It may call the waker earlier, and more than once.
/// - A task that is woken too early calls [`Clock::wake_at`] again. So for wakers that
///   [wake the same task](Waker::will_wake) a clock may keep only the earliest timer. It should do so: a task may
///   call `wake_at` whenever it is polled.
/// - Wakers must be called, cloned and dropped without holding a lock of the clock: they are user code, which may
///   use the same queue and the same clock. A waker that panics must not prevent others from being called.
///
/// ```
/// use requeue::{Clock, SystemClock};
/// use std::task::Waker;
/// use std::time::{Duration, Instant};
///
/// /// A clock that is ahead of the system clock.
/// struct Ahead(Duration);
///
/// impl Clock for Ahead {
///     fn now(&self) -> Instant {
///         SystemClock.now() + self.0
///     }
///
///     fn wake_at(&self, at: Instant, waker: &Waker) {
///         match at.checked_sub(self.0) {
///             Some(at) => SystemClock.wake_at(at, waker),
///             None => waker.wake_by_ref(), // long past
///         }
///     }
/// }
///
/// assert!(Ahead(Duration::from_secs(60)).now() > SystemClock.now());
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    ///
    /// ```
    /// use requeue::{Clock, SystemClock};
    ///
    /// let earlier = SystemClock.now();
    /// assert!(SystemClock.now() >= earlier);
    /// ```
    fn now(&self) -> Instant;

    /// Schedules a waker to be called at `at` or soon after; immediately, if that time has passed. See the
    /// [contract](Clock#contract).
    ///
    /// ```
    /// use requeue::{Clock, SystemClock};
    /// use std::sync::{mpsc, Arc};
    /// use std::task::{Wake, Waker};
    /// use std::time::Duration;
    ///
    /// struct Signal(mpsc::SyncSender<()>);
    ///
    /// impl Wake for Signal {
    ///     fn wake(self: Arc<Self>) {
    ///         let _ = self.0.try_send(());
    ///     }
    /// }
    ///
    /// let (sender, receiver) = mpsc::sync_channel(1);
    /// let soon = SystemClock.now() + Duration::from_millis(1);
    /// SystemClock.wake_at(soon, &Waker::from(Arc::new(Signal(sender))));
    /// receiver.recv()?;
    /// assert!(SystemClock.now() >= soon);
    /// # Ok::<(), mpsc::RecvError>(())
    /// ```
    fn wake_at(&self, at: Instant, waker: &Waker);
}

/// Forwards to the shared clock.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        (**self).wake_at(at, waker);
    }
}

/// The system clock: [`Instant::now`].
///
/// Wakers are called by one thread per process, `requeue-timer`. It is started by the first call of
/// [`Clock::wake_at`] with a time in the future, which is made when a task waits for a delayed item. It
/// sleeps until the first timer is due, and lives as long as the process. If the thread
/// cannot be spawned, wakers are called at once, so that tasks are polled spuriously instead of
/// being lost, and the next call tries again.
///
/// One timer is kept per waker: about 200 bytes, and the memory that the waker keeps alive. It fires
/// after a minute even if it was set for later. So a task that waits longer is polled once a minute,
/// and a task that was dropped leaves nothing behind for longer than that.
///
/// A slow waker delays the others; one that panics does not.
///
/// ```
/// use requeue::{Clock, SystemClock};
/// use std::time::Instant;
///
/// let before = Instant::now();
/// assert!(SystemClock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        sync::now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        let now = self.now();
        if at <= now {
            swallow_panic(|| waker.wake_by_ref());
            return;
        }
        timer::wake_at(within_horizon(at, now), waker);
    }
}

/// The time at which a timer fires: clamped so that none is kept for long.
pub(super) fn within_horizon(at: Instant, now: Instant) -> Instant {
    let horizon = now.checked_add(HORIZON);
    horizon.map_or(at, |horizon| at.min(horizon))
}
