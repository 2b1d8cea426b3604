//! How fast items may be started: intervals, rates and bursts.
//!
//! A [`Pace`] gives out *turns*. Whoever has a turn may start one item; if there is none to start it cancels
//! the turn, and if the item is aborted it gives the turn back.
//!
//! # The limiter
//!
//! A number, the *mark*, says when all that was started so far will be paid for, if one turn is paid for
//! in each interval *I*. A turn may be had at *now* if the mark is no more than the *tolerance* ahead: *b* - 1
//! intervals, for a burst of *b*. It moves the mark to max(mark, now) + *I*. This is the generic cell
//! rate algorithm in the form that is called virtual scheduling: ITU-T Recommendation I.371, and ATM Forum,
//! Traffic Management Specification 4.0, 1996.
//!
//! # What comes back of a turn
//!
//! *A turn that was had at t and comes back at g moves the mark back by what is left of its interval:
//! t + I - g, at least 0.* That is no more than what the turn has cost, so that the turns which are kept obey
//! the pace in all windows of time, as if the others had never been: in a window of length *x* there are at
//! most *b* + *x* / *I* of them.
//!
//! The reason: let the *debt* be how far the mark is ahead of the time. Compare two worlds, with and without
//! the turn. At *t* the debts differ by *I*. Later starts add the same to both, and time takes the same
//! off both, except while the smaller one is 0; so the difference shrinks by no more than the time that
//! passes, and at *g* it is *t* + *I* - *g* or more. Taking so much off the greater debt leaves no less
//! than the smaller one, and who owes more starts no earlier.
//!
//! More might be due where others were kept waiting by the turn all the time, but that is not to be seen from
//! the mark.
//!
//! An item that is aborted was started nevertheless. So where there is no burst, a turn whose item is
//! aborted keeps its interval: never do two starts lie closer together than that. There nothing comes back but
//! what was cancelled.
//!
//! # Another interval
//!
//! The limiter keeps the time *l* of the last start. When the interval becomes *J*, what was owed at *l* costs *J* instead
//! of *I* for each turn: the mark moves to *l* + (mark - *l*) *J* / *I*, at least *l* + *J* and at most *l* + *b* *J*. From *l*
//! on that is the limiter of the new interval, so all windows that begin at *l* or later obey it. Of the turns
//! that were had before *l* nothing comes back afterwards, since their share of the mark is not known.
//!
//! A queue that gets another pace does the same. It keeps the time of its own last start, and its new pace
//! counts there as many turns as the old one was owed then, if the new one has not counted more already.
//!
//! # Time
//!
//! The mark counts nanoseconds from 146 years before the limiter was made, and times are taken as at most as
//! long after. Intervals and tolerances are at most 146 years too, so that all sums fit into a word. A clock
//! that goes back finds the mark ahead, and waits.
//!
//! What is at a distance are the readings of the clock. A thread that is held up after it has read the clock
//! starts its item later than its turn says.

mod gate;
mod gcra;
mod last;
mod limiter;
mod shared_limiter;

#[cfg(all(loom, test))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use gate::{Gate, Start};
pub use limiter::{Limiter, RateSlot};

use crate::sync::step;
use crate::wait::WaitQueue;
use gcra::Gcra;
use shared_limiter::{SharedLimiter, WaitQueues};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NANO: Duration = Duration::from_nanos(1);

/// How fast items may be started, whatever the number of those who take them.
///
/// Clones are the same pace: what they start together is what counts, be it in several queues.
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
#[derive(Clone)]
pub struct Pace {
    kind: PaceKind,
}

#[derive(Clone)]
enum PaceKind {
    Unlimited,
    Gcra(Arc<SharedLimiter<Gcra>>),
    Shared(Arc<SharedLimiter<dyn Limiter>>),
}

impl Pace {
    /// As fast as one can. It reads no clock.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    ///
    /// let now = std::time::Instant::now();
    /// let pace = Pace::unlimited();
    /// assert!((0..100).all(|_| pace.start(now).is_ok()));
    /// ```
    pub fn unlimited() -> Self {
        Self {
            kind: PaceKind::Unlimited,
        }
    }

    /// One in each interval: no two starts are closer together.
    ///
    /// An interval of zero does not limit; one of more than 146 years is as one of 146.
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
        Self::metered(interval, 1)
    }

    /// So many in each period, spread evenly, unless a [burst](Pace::burst) is allowed.
    ///
    /// The interval between two is a whole number of nanoseconds, rounded up, so that there are never more;
    /// and hence at most a billion a second. A period of zero does not limit.
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
    /// If `n` is 0: a queue that starts nothing is a paused one.
    #[track_caller]
    pub fn rate(n: u32, per: Duration) -> Self {
        Self::every(interval_of(n, per))
    }

    /// A new pace of the same rate, at which up to `burst` may be started at once after a time without
    /// starts; 1 is no burst.
    ///
    /// In a time of n intervals no more than n + `burst` are started, those apart whose turns are given back:
    /// then another one may be started for them, unless their interval is over anyway. An unlimited pace stays
    /// unlimited.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::rate(10, second).burst(3);
    /// let mut turns: Vec<_> = (0..3).map(|_| pace.start(now).unwrap()).collect();
    /// assert_eq!(pace.start(now).unwrap_err(), now + second / 10);
    ///
    /// pace.give_back(turns.remove(0), now);
    /// assert!(pace.start(now).is_ok());
    /// assert!(pace.start(now).is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// If `burst` is 0, or the pace is a [shared](Pace::shared) one, whose bursts are not known here.
    #[must_use = "the pace itself does not change"]
    #[track_caller]
    pub fn burst(self, burst: u32) -> Self {
        assert!(burst > 0, "burst of 0: nothing would ever start");
        match self.kind {
            PaceKind::Unlimited => self,
            PaceKind::Gcra(shared_limiter) => {
                Self::metered(shared_limiter.limiter.interval(), burst)
            }
            PaceKind::Shared(_) => {
                panic!("burst of a shared pace: its `Limiter` decides on bursts")
            }
        }
    }

    /// A pace that something else knows, as a store that several processes share.
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
    ///             return Err(now + Duration::from_secs(5)); // look again then
    ///         }
    ///         Ok(RateSlot::new(now, 0))
    ///     }
    /// }
    ///
    /// let pace = Pace::shared(Breaker(AtomicBool::new(true)));
    /// assert!(pace.start(Instant::now()).is_err());
    /// ```
    pub fn shared(limiter: impl Limiter) -> Self {
        Self {
            kind: PaceKind::Shared(SharedLimiter::new(limiter)),
        }
    }

    /// Changes the interval, for all queues that have this pace or a clone of it. The burst stays as it is.
    ///
    /// The new interval counts from the last start on, and those who wait for the next one are woken to wait for
    /// it anew. An interval of zero is taken for one of a nanosecond.
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
    /// If the pace [is unlimited](Pace::is_unlimited), or a [shared](Pace::shared) one, whose intervals are not known
    /// here.
    #[track_caller]
    pub fn set_interval(&self, interval: Duration) {
        match &self.kind {
            PaceKind::Unlimited => panic!("an unlimited pace has no interval"),
            PaceKind::Gcra(shared_limiter) => {
                shared_limiter.limiter.set_interval(interval.max(NANO))
            }
            PaceKind::Shared(_) => panic!("a shared pace has intervals of its own"),
        }
        step!("pace.changes-unsaid", self.wake_waiters());
    }

    /// Changes the interval to that of a [rate](Pace::rate), as [`Pace::set_interval`] does.
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
    /// If `n` is 0, or the pace [is unlimited](Pace::is_unlimited) or a [shared](Pace::shared) one.
    #[track_caller]
    pub fn set_rate(&self, n: u32, per: Duration) {
        self.set_interval(interval_of(n, per));
    }

    /// Wakes all who wait for a turn, in all queues that have this pace or a clone of it, to ask for one anew.
    ///
    /// For limiters that may give turns earlier than they have said; a pace that is
    /// [changed](Pace::set_interval) does so itself.
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
        if let Some(wait_queues) = self.wait_queues() {
            wait_queues.wake();
        }
    }

    /// Whether it never refuses a turn, because it is [`Pace::unlimited`] or was made with an interval of zero.
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
        matches!(self.kind, PaceKind::Unlimited)
    }

    fn metered(interval: Duration, burst: u32) -> Self {
        if interval.is_zero() {
            return Self::unlimited();
        }
        Self {
            kind: PaceKind::Gcra(SharedLimiter::new(Gcra::new(interval, burst))),
        }
    }

    fn wait_queues(&self) -> Option<&WaitQueues> {
        match &self.kind {
            PaceKind::Unlimited => None,
            PaceKind::Gcra(shared_limiter) => Some(&shared_limiter.wait_queues),
            PaceKind::Shared(shared_limiter) => Some(&shared_limiter.wait_queues),
        }
    }
}

/// What queues do with their pace.
impl Pace {
    /// Those who wait in a wait queue are woken when the pace changes.
    pub(crate) fn join(&self, wait_queue: &Arc<WaitQueue>) {
        if let Some(wait_queues) = self.wait_queues() {
            wait_queues.join(wait_queue);
        }
    }

    /// Takes back one [`Pace::join`].
    pub(crate) fn leave(&self, wait_queue: &Arc<WaitQueue>) {
        if let Some(wait_queues) = self.wait_queues() {
            wait_queues.leave(wait_queue);
        }
    }

    /// Whether the other one is a clone.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (PaceKind::Unlimited, PaceKind::Unlimited) => true,
            (PaceKind::Gcra(one), PaceKind::Gcra(other)) => Arc::ptr_eq(one, other),
            (PaceKind::Shared(one), PaceKind::Shared(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Counts what was started by a queue that had another pace, the last of it at some time.
    pub(crate) fn take_over(&self, old: &Self, last: Instant) {
        match &self.kind {
            PaceKind::Unlimited => {}
            PaceKind::Gcra(shared_limiter) => {
                shared_limiter.limiter.take_over(last, old.owed(last))
            }
            PaceKind::Shared(shared_limiter) => {
                let turns = std::iter::repeat_with(|| shared_limiter.limiter.start(last));
                let owed = usize::try_from(old.owed(last)).unwrap_or(usize::MAX);
                turns.take(owed).take_while(Result::is_ok).for_each(drop);
            }
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

/// What a pace is asked by its queues; of use to a limiter that is made of several paces.
impl Limiter for Pace {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        match &self.kind {
            PaceKind::Unlimited => Ok(RateSlot::new(now, 0)),
            PaceKind::Gcra(shared_limiter) => shared_limiter.limiter.start(now),
            PaceKind::Shared(shared_limiter) => shared_limiter.limiter.start(now),
        }
    }

    fn cancel(&self, turn: RateSlot, now: Instant) {
        match &self.kind {
            PaceKind::Unlimited => {}
            PaceKind::Gcra(shared_limiter) => shared_limiter.limiter.cancel(turn, now),
            PaceKind::Shared(shared_limiter) => shared_limiter.limiter.cancel(turn, now),
        }
    }

    fn give_back(&self, turn: RateSlot, now: Instant) {
        match &self.kind {
            PaceKind::Unlimited => {}
            PaceKind::Gcra(shared_limiter) => shared_limiter.limiter.give_back(turn, now),
            PaceKind::Shared(shared_limiter) => shared_limiter.limiter.give_back(turn, now),
        }
    }

    fn owed(&self, last: Instant) -> u32 {
        match &self.kind {
            PaceKind::Unlimited => 1,
            PaceKind::Gcra(shared_limiter) => shared_limiter.limiter.owed(last),
            PaceKind::Shared(shared_limiter) => shared_limiter.limiter.owed(last),
        }
    }
}

/// [`Pace::unlimited`].
impl Default for Pace {
    fn default() -> Self {
        Self::unlimited()
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            PaceKind::Unlimited => f.write_str("Pace::unlimited()"),
            PaceKind::Gcra(shared_limiter) => f
                .debug_struct("Pace")
                .field("interval", &shared_limiter.limiter.interval())
                .field("burst", &shared_limiter.limiter.burst())
                .finish(),
            PaceKind::Shared(_) => f.write_str("Pace::shared(..)"),
        }
    }
}
