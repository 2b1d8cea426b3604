//! How fast items may be started: intervals, rates and bursts.
//!
//! A [`Pace`] grants *slots*. A slot permits the start of one item. The caller cancels a slot if no item was ready,
//! and gives it back if the item is aborted.
//!
//! # The limiter
//!
//! The limiter is the generic cell rate algorithm (GCRA) in the form called virtual scheduling: ITU-T
//! Recommendation I.371, and ATM Forum, Traffic Management Specification 4.0, 1996. Its state is the theoretical
//! arrival time, here the *mark*: the time at which the cost of all starts so far will be repaid, at one slot per
//! interval *I*. A slot is available at *now* if the mark is at most the *tolerance* ahead: *b* - 1 intervals, for
//! a burst of *b*. Taking it moves the mark to max(mark, now) + *I*.
//!
//! # Refunds
//!
//! *A slot that was taken at t and is returned at g moves the mark back by the rest of its interval:
//! t + I - g, at least 0.* That is no more than the slot has cost, so the slots that are kept obey
//! the pace in all windows of time, as if the others had never been taken: a window of length *x* contains at
//! most *b* + *x* / *I* of them.
//!
//! Proof: let the *backlog* be how far the mark is ahead of the time. Compare two executions, with and without
//! the slot. At *t* their backlogs differ by *I*. Later starts add the same amount to both, and time reduces both
//! by the same amount, except while the smaller one is 0; so the difference shrinks by at most the time that
//! passes, and at *g* it is at least *t* + *I* - *g*. Reducing the greater backlog by this amount leaves it no less
//! than the smaller one, and a greater backlog allows no earlier start.
//!
//! A larger refund might be correct if the slot has delayed other starts all the time, but the mark does not show
//! that.
//!
//! An aborted item was started nevertheless. So without a burst, a slot whose item is aborted keeps its interval:
//! no two starts are ever closer together. Only cancelled slots are refunded then.
//!
//! # Changing the interval
//!
//! The limiter keeps the time *l* of the last start. When the interval becomes *J*, each slot outstanding at *l* costs
//! *J* instead of *I*: the mark moves to *l* + (mark - *l*) *J* / *I*, at least *l* + *J* and at most *l* + *b* *J*. From
//! *l* on this is the limiter of the new interval, so all windows that begin at *l* or later obey it. Slots taken
//! before *l* are not refunded afterwards, since their share of the mark is not known.
//!
//! Replacing the pace of a queue does the same. The queue keeps the time of its own last start, and the new pace
//! counts as many slots at that time as were outstanding at the old one, unless it has already counted more.
//!
//! # Time
//!
//! The mark counts nanoseconds from 146 years before the limiter was created, and times are clamped to 146 years
//! after. Intervals and tolerances are at most 146 years too, so all sums fit into a word. If a clock goes back,
//! the mark is ahead, and starts wait.
//!
//! The intervals are between clock readings. A thread that is delayed after it has read the clock starts its item
//! later than the time of its slot.

mod gate;
mod gcra;
mod last;
mod limiter;
mod shared_limiter;
#[cfg(feature = "rate")]
mod weak;

#[cfg(all(loom, test))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use gate::{Gate, Start};
pub use limiter::{Limiter, RateSlot};
#[cfg(feature = "rate")]
pub use weak::WeakPace;

use crate::sync::step;
use crate::wait::DueTimer;
use gcra::Gcra;
use shared_limiter::{LimiterKind, LimiterRef, SharedLimiter, WaitQueues};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A rate limit on starting items, independent of the number of consumers.
///
/// Clones share the same limit: their starts count together, even in several queues.
///
/// ```
/// use requeue::{Pace, Limiter};
/// use std::time::{Duration, Instant};
///
/// let second = Duration::from_secs(1);
/// let pace = Pace::every(second);
/// let now = Instant::now();
/// assert!(pace.start(now).is_ok());
/// assert_eq!(pace.clone().start(now).unwrap_err(), now + second);
/// assert!(pace.start(now + second).is_ok());
/// ```
#[derive(Clone, Default)]
pub struct Pace {
    /// `None`: unlimited.
    shared: Option<LimiterRef>,
}

impl Pace {
    /// Creates a pace without a limit. It reads no clock.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    ///
    /// let now = std::time::Instant::now();
    /// let pace = Pace::unlimited();
    /// assert!((0..100).all(|_| pace.start(now).is_ok()));
    /// ```
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Returns `true` if the pace never refuses a slot: it is [`Pace::unlimited`], or its interval was zero.
    ///
    /// ```
    /// use requeue::Pace;
    /// use std::time::Duration;
    ///
    /// assert!(Pace::unlimited().is_unlimited());
    /// assert!(Pace::every(Duration::ZERO).is_unlimited());
    /// assert!(!Pace::every(Duration::from_nanos(1)).is_unlimited());
    /// ```
    pub fn is_unlimited(&self) -> bool {
        self.shared.is_none()
    }
}

#[cfg(feature = "rate")]
impl Pace {
    /// Creates a pace of one start per interval: no two starts are closer together.
    ///
    /// An interval of zero does not limit; one of more than 146 years is clamped to 146.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (start, hour) = (Instant::now(), Duration::from_secs(3600));
    /// let pace = Pace::every(hour);
    /// assert!(pace.start(start).is_ok());
    /// assert!(pace.start(start + hour / 2).is_err());
    /// assert!(pace.start(start + hour).is_ok());
    /// ```
    pub fn every(interval: Duration) -> Self {
        Self::with_interval(interval, 1)
    }

    /// Creates a pace of `n` starts per period, evenly spaced unless a [burst](Pace::burst) is allowed.
    ///
    /// The interval between two starts is a whole number of nanoseconds, rounded up so that the rate is never
    /// exceeded; so the rate is at most a billion a second. A period of zero does not limit.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::rate(10, second);
    /// assert!(pace.start(now).is_ok());
    /// assert_eq!(pace.start(now).unwrap_err(), now + second / 10);
    /// ```
    ///
    /// # Panics
    ///
    /// If `n` is 0; to start nothing, pause the queue.
    #[track_caller]
    pub fn rate(n: u32, per: Duration) -> Self {
        Self::every(interval_of(n, per))
    }

    /// Creates a new pace of the same rate that allows up to `burst` starts at once after a time without
    /// starts; 1 is no burst.
    ///
    /// At most n + `burst` items are started within n intervals, not counting those whose slots are given back:
    /// each of these permits another start, unless its interval is already over. An unlimited pace stays
    /// unlimited.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::rate(10, second).burst(3);
    /// let mut slots: Vec<_> = (0..3).map(|_| pace.start(now).unwrap()).collect();
    /// assert_eq!(pace.start(now).unwrap_err(), now + second / 10);
    ///
    /// pace.give_back(slots.remove(0), now);
    /// assert!(pace.start(now).is_ok());
    /// assert!(pace.start(now).is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// If `burst` is 0, or if the pace is [shared](Pace::shared): its [`Limiter`] decides on bursts.
    #[must_use = "the pace itself does not change"]
    #[track_caller]
    pub fn burst(self, burst: u32) -> Self {
        assert!(burst > 0, "burst of 0: nothing would ever start");
        let interval = self.gcra("burst").map_or(Duration::ZERO, Gcra::interval);
        Self::with_interval(interval, burst)
    }

    /// Creates a pace from a custom limiter, such as one backed by a store that several processes share.
    ///
    /// ```
    /// use requeue::{Pace, RateSlot, Limiter};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::{Duration, Instant};
    ///
    /// /// Starts nothing while the service is down.
    /// struct Breaker(AtomicBool);
    ///
    /// impl Limiter for Breaker {
    ///     fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
    ///         if self.0.load(Ordering::Relaxed) {
    ///             return Err(now + Duration::from_secs(5)); // try again then
    ///         }
    ///         Ok(RateSlot::new(now, 0))
    ///     }
    /// }
    ///
    /// let pace = Pace::shared(Breaker(AtomicBool::new(true)));
    /// assert!(pace.start(Instant::now()).is_err());
    /// ```
    pub fn shared(limiter: impl Limiter) -> Self {
        Self::of(LimiterKind::Other(Box::new(limiter)))
    }

    /// Changes the interval for all queues that use this pace or a clone of it. The burst does not change.
    ///
    /// The new interval applies from the last start on; waiters are woken and wait again accordingly. An interval
    /// of zero is taken as one nanosecond.
    ///
    /// ```
    /// use requeue::{ManualClock, Pace, Queue};
    /// use std::time::Duration;
    ///
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let pace = Pace::every(second);
    /// let builder = Queue::builder().clock(clock.clone()).pace(pace.clone());
    /// let (left, right) = (builder.clone().build(), builder.build());
    /// left.handle().push_batch([1, 2])?;
    /// right.push(3)?;
    ///
    /// assert_eq!(left.pop()?, 1);
    /// pace.set_interval(60 * second); // the server asks for less
    /// clock.advance(59 * second);
    /// assert!(left.pop().is_err() && right.pop().is_err());
    /// clock.advance(second);
    /// assert_eq!(right.pop()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the pace is [unlimited](Pace::is_unlimited), or if it is [shared](Pace::shared): its [`Limiter`] decides on
    /// intervals.
    #[track_caller]
    pub fn set_interval(&self, interval: Duration) {
        let gcra = self.gcra("interval");
        let gcra = gcra.expect("an unlimited pace has no interval");
        gcra.set_interval(interval);
        step!("pace.changes-unsaid", self.wake_waiters());
    }

    /// Changes the rate, as [`Pace::set_interval`] changes the interval.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::rate(10, second);
    /// assert!(pace.start(now).is_ok());
    /// pace.set_rate(100, second);
    /// assert!(pace.start(now + second / 100).is_ok());
    /// ```
    ///
    /// # Panics
    ///
    /// If `n` is 0, or if the pace is [unlimited](Pace::is_unlimited) or [shared](Pace::shared).
    #[track_caller]
    pub fn set_rate(&self, n: u32, per: Duration) {
        self.set_interval(interval_of(n, per));
    }

    /// Wakes all waiters in all queues that use this pace or a clone of it, so that they ask for a slot again.
    ///
    /// Call it when a custom limiter can grant slots earlier than it has announced. [`Pace::set_interval`] calls it
    /// itself.
    ///
    /// ```
    /// use requeue::{Pace, Queue, RateSlot, Limiter};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::sync::Arc;
    /// use std::time::{Duration, Instant};
    ///
    /// struct Open(Arc<AtomicBool>);
    ///
    /// impl Limiter for Open {
    ///     fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
    ///         let is_open = self.0.load(Ordering::Relaxed);
    ///         let later = now + Duration::from_secs(3600);
    ///         is_open.then_some(RateSlot::new(now, 0)).ok_or(later)
    ///     }
    /// }
    ///
    /// let open = Arc::new(AtomicBool::new(false));
    /// let pace = Pace::shared(Open(Arc::clone(&open)));
    /// let queue = Queue::builder().pace(pace.clone()).build();
    /// queue.push(1)?;
    /// std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| queue.handle().pop_blocking());
    ///     open.store(true, Ordering::Relaxed);
    ///     pace.wake_waiters();
    ///     assert_eq!(waiter.join().unwrap(), Ok(1));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wake_waiters(&self) {
        if let Some(shared) = &self.shared {
            shared.wait_queues.wake();
        }
    }

    fn with_interval(interval: Duration, burst: u32) -> Self {
        if interval.is_zero() {
            return Self::unlimited();
        }
        Self::of(LimiterKind::Gcra(Gcra::new(interval, burst)))
    }

    /// The limiter whose interval and burst can be changed, unless the pace is unlimited.
    ///
    /// # Panics
    ///
    /// If the pace is shared.
    #[track_caller]
    fn gcra(&self, what: &str) -> Option<&Gcra> {
        match self.kind()? {
            LimiterKind::Gcra(gcra) => Some(gcra),
            LimiterKind::Other(_) => {
                panic!("{what} of a shared pace: its `Limiter` decides on {what}s")
            }
        }
    }

    fn of(kind: LimiterKind) -> Self {
        let wait_queues = WaitQueues::default();
        let shared = Arc::new(SharedLimiter { wait_queues, kind });
        let shared = Some(LimiterRef::Shared(shared));
        Self { shared }
    }
}

/// Methods for queues that use a pace.
impl Pace {
    /// Registers a wait queue whose waiters are woken when the pace changes.
    pub(crate) fn join(&self, wait_queue: &Arc<DueTimer>) {
        if let Some(shared) = &self.shared {
            shared.wait_queues.join(wait_queue);
        }
    }

    /// Reverts one [`Pace::join`].
    pub(crate) fn leave(&self, wait_queue: &Arc<DueTimer>) {
        if let Some(shared) = &self.shared {
            shared.wait_queues.leave(wait_queue);
        }
    }

    /// Counts the starts of a queue that had another pace, the last of them at `last`.
    pub(crate) fn take_over(&self, old: &Self, last: Instant) {
        match self.kind() {
            None => {}
            Some(LimiterKind::Gcra(gcra)) => gcra.take_over(last, old.owed(last)),
            Some(LimiterKind::Other(limiter)) => {
                let slots = std::iter::repeat_with(|| limiter.start(last));
                let owed = usize::try_from(old.owed(last)).unwrap_or(usize::MAX);
                for slot in slots.take(owed).map_while(Result::ok) {
                    limiter.spend(slot);
                }
            }
        }
    }

    fn kind(&self) -> Option<&LimiterKind> {
        Some(&self.shared.as_ref()?.kind)
    }

    fn limiter(&self) -> &dyn Limiter {
        match &self.shared {
            Some(shared) => shared.limiter(),
            None => &Unlimited,
        }
    }
}

/// The interval of a rate.
#[track_caller]
fn interval_of(n: u32, per: Duration) -> Duration {
    assert!(
        n > 0,
        "rate of 0: nothing would ever start (use `Queue::pause` to stop for a while)"
    );
    let interval = per.as_nanos().div_ceil(u128::from(n));
    u64::try_from(interval).map_or(Duration::MAX, Duration::from_nanos)
}

/// For queues, and for limiters that combine several paces.
impl Limiter for Pace {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        self.limiter().start(now)
    }

    fn cancel(&self, slot: RateSlot, now: Instant) {
        self.limiter().cancel(slot, now);
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        self.limiter().give_back(slot, now);
    }

    fn spend(&self, slot: RateSlot) {
        self.limiter().spend(slot);
    }

    fn owed(&self, last: Instant) -> u32 {
        self.limiter().owed(last)
    }
}

/// Never refuses a slot.
struct Unlimited;

impl Limiter for Unlimited {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        Ok(RateSlot::new(now, 0))
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            None => f.write_str("Pace::unlimited()"),
            Some(LimiterKind::Gcra(gcra)) => f
                .debug_struct("Pace")
                .field("interval", &gcra.interval())
                .field("burst", &gcra.burst())
                .finish(),
            Some(LimiterKind::Other(_)) => f.write_str("Pace::shared(..)"),
        }
    }
}
