//! Clocks.

use super::timer;
use crate::sync::swallow_panic;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The longest that the system's clock keeps an timer.
const HORIZON: Duration = Duration::from_secs(60);

/// Where a queue gets the time from: for delays, leases and time stamps.
///
/// [`SystemClock`] is the one a queue has by itself, [`ManualClock`](crate::ManualClock) one for
/// tests. Another one serves simulations, and runtimes that can pause or skip time.
///
/// # What a clock owes
///
/// - Both methods may be called from any thread at any time, and must not block.
/// - [`Clock::now`] never goes backwards. If it does, delays and leases last longer by as much, and
///   nothing is lost.
/// - [`Clock::wake_at`] calls the waker at least once: when [`Clock::now`] reaches the time, or soon
///   after, from whichever thread; if the time has come already, at once. It may call it earlier, and more
///   often.
/// - Who is called and has still to wait calls [`Clock::wake_at`] again. So for wakers that
///   [wake the same](Waker::will_wake) a clock may keep one timer, the earliest. It should: a task may
///   call each time that it is polled.
/// - It calls wakers, and clones and drops them, without a lock of its own: these are user code, which may
///   use the same queue and the same clock. A waker that panics must not keep it from calling others.
///
/// ```
/// use requeue::{Clock, SystemClock};
/// use std::task::Waker;
/// use std::time::{Duration, Instant};
///
/// /// A clock that is ahead of the system's.
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
///             None => waker.wake_by_ref(), // long ago
///         }
///     }
/// }
///
/// assert!(Ahead(Duration::from_secs(60)).now() > SystemClock.now());
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The time.
    ///
    /// ```
    /// use requeue::{Clock, SystemClock};
    ///
    /// let earlier = SystemClock.now();
    /// assert!(SystemClock.now() >= earlier);
    /// ```
    fn now(&self) -> Instant;

    /// Has a waker called at a time, or soon after; at once, if the time has come. See
    /// [what a clock owes](Clock#what-a-clock-owes).
    ///
    /// ```
    /// use requeue::{Clock, SystemClock};
    /// use std::sync::{mpsc, Arc};
    /// use std::task::{Wake, Waker};
    /// use std::time::Duration;
    ///
    /// struct Bell(mpsc::SyncSender<()>);
    ///
    /// impl Wake for Bell {
    ///     fn wake(self: Arc<Self>) {
    ///         let _ = self.0.try_send(());
    ///     }
    /// }
    ///
    /// let (bell, rings) = mpsc::sync_channel(1);
    /// let soon = SystemClock.now() + Duration::from_millis(1);
    /// SystemClock.wake_at(soon, &Waker::from(Arc::new(Bell(bell))));
    /// rings.recv()?;
    /// assert!(SystemClock.now() >= soon);
    /// # Ok::<(), mpsc::RecvError>(())
    /// ```
    fn wake_at(&self, at: Instant, waker: &Waker);
}

/// A clock that several queues share.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        (**self).wake_at(at, waker);
    }
}

/// The clock of the system: [`Instant::now`].
///
/// Its wakers are called by one thread for the whole process, `requeue-timer`, which is started by the
/// first call of [`Clock::wake_at`] with a time to come: when a task waits at a queue that has
/// something delayed. It sleeps until the first timer is due, and lives as long as the process. If the
/// system has no thread to give, wakers are called at once, so that tasks poll in vain instead of
/// being lost, and the next call tries again.
///
/// It keeps one timer for each waker, some 200 bytes and what the waker itself keeps alive, and rings it
/// after a minute even if it was set for later. So a task that waits longer is polled once a minute,
/// and one that is gone leaves nothing behind for longer than that.
///
/// A waker that takes long delays the others; one that panics does not.
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
        Instant::now()
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

/// When to ring an timer, so that none is kept for long.
pub(super) fn within_horizon(at: Instant, now: Instant) -> Instant {
    let horizon = now.checked_add(HORIZON);
    horizon.map_or(at, |horizon| at.min(horizon))
}
