//! What a pace is made of.

use std::time::Instant;

/// What says when the next item may be started: behind every [`Pace`](crate::Pace), and open to others.
///
/// # What a limiter owes
///
/// - Its methods may be called from any thread at any time. A pop that waits for their answer holds no lock of
///   the queue, and nothing that others wait for.
/// - A turn that it has given is taken to be used, unless it comes back by [`Limiter::cancel`] or
///   [`Limiter::give_back`]. Each turn comes back at most once, and not always.
/// - A queue that is [given](crate::Queue::set_pace) the limiter takes a turn for each start that its last pace is
///   [owed](Limiter::owed), at the time of the last of them, as far as there are. It keeps these turns.
/// - If a method panics, the call of the queue panics that has called it, and no item is lost by it.
///
/// ```
/// use requeue::{Pace, RateSlot, Limiter};
/// use std::time::{Duration, Instant};
///
/// /// Each host at its own pace, all together at another one.
/// struct Both(Pace, Pace);
///
/// impl Limiter for Both {
///     fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
///         let first = self.0.start(now)?;
///         let second = self.1.start(now);
///         if second.is_err() {
///             self.0.cancel(first, now);
///         }
///         second
///     }
/// }
///
/// let second = Duration::from_secs(1);
/// let all = Pace::rate(10, second);
/// let host = Pace::shared(Both(Pace::every(second), all.clone()));
/// let now = Instant::now();
/// assert!(all.start(now).is_ok());
/// assert_eq!(host.start(now).unwrap_err(), now + second / 10);
/// assert!(host.start(now + second / 10).is_ok());
/// ```
pub trait Limiter: Send + Sync + 'static {
    /// Takes a turn, to start one item now. Or says when it is worth trying again: whoever waits does so then,
    /// and not before, unless [woken](crate::Pace::wake_waiters).
    ///
    /// The time is that of the queue's [clock](crate::Builder::clock).
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    ///
    /// let now = std::time::Instant::now();
    /// assert!(Pace::unlimited().start(now).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// The earliest time at which a turn may be had; a later one than now.
    fn start(&self, now: Instant) -> Result<RateSlot, Instant>;

    /// Takes back a turn that was not used: there was nothing to start. By itself, does nothing.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, pace) = (Instant::now(), Pace::every(Duration::from_secs(1)));
    /// let turn = pace.start(now).unwrap();
    /// pace.cancel(turn, now);
    /// assert!(pace.start(now).is_ok());
    /// ```
    fn cancel(&self, turn: RateSlot, now: Instant) {
        let _ = (turn, now);
    }

    /// Takes back a turn whose item was started, and was not committed. By itself, does nothing.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::every(second);
    /// let turn = pace.start(now).unwrap();
    /// pace.give_back(turn, now);
    /// assert!(pace.start(now).is_err()); // never two starts closer than the interval
    /// ```
    fn give_back(&self, turn: RateSlot, now: Instant) {
        let _ = (turn, now);
    }

    /// How many turns are not paid for yet at the time of the last start, that of this start included: so many are
    /// counted by the [next](crate::Queue::set_pace) pace of a queue that has started something. By itself, says 1.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::every(second).burst(5);
    /// assert!(pace.start(now).is_ok());
    /// assert!(pace.start(now + second / 2).is_ok());
    /// assert_eq!(pace.owed(now + second / 2), 2);
    /// ```
    fn owed(&self, last: Instant) -> u32 {
        let _ = last;
        1
    }
}

/// The leave to start one item, from [`Limiter::start`].
///
/// ```
/// use requeue::RateSlot;
/// use std::time::Instant;
///
/// let now = Instant::now();
/// let turn = RateSlot::new(now, 7);
/// assert_eq!((turn.at(), turn.mark()), (now, 7));
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a turn that is not used is to be cancelled"]
pub struct RateSlot {
    at: Instant,
    mark: u64,
}

impl RateSlot {
    /// A turn that was had at some time, with a mark by which its limiter knows it.
    ///
    /// ```
    /// let turn = requeue::RateSlot::new(std::time::Instant::now(), 0);
    /// assert_eq!(turn.mark(), 0);
    /// ```
    pub fn new(at: Instant, mark: u64) -> Self {
        Self { at, mark }
    }

    /// When it was had.
    ///
    /// ```
    /// let now = std::time::Instant::now();
    /// assert_eq!(requeue::RateSlot::new(now, 0).at(), now);
    /// ```
    pub fn at(&self) -> Instant {
        self.at
    }

    /// By what its limiter knows it.
    ///
    /// ```
    /// let turn = requeue::RateSlot::new(std::time::Instant::now(), 42);
    /// assert_eq!(turn.mark(), 42);
    /// ```
    pub fn mark(&self) -> u64 {
        self.mark
    }
}
