//! The trait behind every pace.

use std::time::Instant;

/// A rate limiter: decides when the next item may be started. It is behind every [`Pace`](crate::Pace), and can be
/// implemented for other policies.
///
/// # Contract
///
/// - Methods may be called from any thread at any time. The caller holds no lock of the queue during the call.
/// - A slot counts as used unless it is returned by [`Limiter::cancel`] or [`Limiter::give_back`]. Each slot is
///   returned or [spent](Limiter::spend) at most once; those of transactions that are leaked never are.
/// - A queue whose pace is [set](crate::Queue::set_pace) to this limiter takes one slot for each start that is still
///   [outstanding](Limiter::owed) at its previous pace, all at the time of the last start, until one is refused. It
///   spends these slots at once.
/// - If a method panics, no item and no other slot is lost. A panic of [`Limiter::start`] and [`Limiter::owed`] reaches
///   the caller of the queue; those of the end of a transaction are caught.
/// - If the queue's clock panics when a slot is to be returned, the slot is spent instead.
///
/// ```
/// use requeue::{Pace, RateSlot, Limiter};
/// use std::time::{Duration, Instant};
///
/// /// Each host has its own rate limit, and all hosts share another one.
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
    /// Takes a slot to start one item now, or returns the time at which to try again. Waiters do not retry
    /// earlier, unless they are [woken](crate::Pace::wake_waiters).
    ///
    /// `now` is read from the queue's [clock](crate::Builder::clock).
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
    /// The earliest time at which a slot is available; it is later than `now`.
    fn start(&self, now: Instant) -> Result<RateSlot, Instant>;

    /// Returns a slot that was not used, because there was nothing to start. The default does nothing.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, pace) = (Instant::now(), Pace::every(Duration::from_secs(1)));
    /// let slot = pace.start(now).unwrap();
    /// pace.cancel(slot, now);
    /// assert!(pace.start(now).is_ok());
    /// ```
    fn cancel(&self, slot: RateSlot, now: Instant) {
        let _ = (slot, now);
    }

    /// Returns a slot whose item was started but not committed. The default does nothing.
    ///
    /// ```
    /// use requeue::{Pace, Limiter};
    /// use std::time::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let pace = Pace::every(second);
    /// let slot = pace.start(now).unwrap();
    /// pace.give_back(slot, now);
    /// assert!(pace.start(now).is_err()); // starts are at least an interval apart
    /// ```
    fn give_back(&self, slot: RateSlot, now: Instant) {
        let _ = (slot, now);
    }

    /// Spends a slot whose item was committed. The default does nothing. A limiter of items in flight, such as one that
    /// several processes share, grants the slot again.
    ///
    /// ```
    /// use requeue::{Limiter, Pace, Queue, RateSlot};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    /// use std::time::Instant;
    ///
    /// /// Counts what is in flight.
    /// struct InFlight(Arc<AtomicU32>);
    ///
    /// impl Limiter for InFlight {
    ///     fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
    ///         self.0.fetch_add(1, Ordering::Relaxed);
    ///         Ok(RateSlot::new(now, 0))
    ///     }
    ///     fn cancel(&self, slot: RateSlot, _: Instant) {
    ///         self.spend(slot);
    ///     }
    ///     fn give_back(&self, slot: RateSlot, _: Instant) {
    ///         self.spend(slot);
    ///     }
    ///     fn spend(&self, _: RateSlot) {
    ///         self.0.fetch_sub(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let count = Arc::new(AtomicU32::new(0));
    /// let queue = Queue::builder().pace(Pace::shared(InFlight(Arc::clone(&count)))).build();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.pop()?;
    /// assert_eq!(count.load(Ordering::Relaxed), 1);
    /// tx.commit();
    /// assert_eq!(count.load(Ordering::Relaxed), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn spend(&self, slot: RateSlot) {
        let _ = slot;
    }

    /// Returns the number of slots that are still outstanding at the time of the last start, including that of this
    /// start. A queue whose pace is [replaced](crate::Queue::set_pace) carries them over to the new one. The default
    /// returns 1.
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

/// The permission to start one item, granted by [`Limiter::start`].
///
/// ```
/// use requeue::RateSlot;
/// use std::time::Instant;
///
/// let now = Instant::now();
/// let slot = RateSlot::new(now, 7);
/// assert_eq!((slot.at(), slot.mark()), (now, 7));
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot that is not used must be cancelled"]
pub struct RateSlot {
    at: Instant,
    mark: u64,
}

impl RateSlot {
    /// Creates a slot that was taken at `at`, with a mark for its limiter's own use.
    ///
    /// ```
    /// let slot = requeue::RateSlot::new(std::time::Instant::now(), 0);
    /// assert_eq!(slot.mark(), 0);
    /// ```
    pub fn new(at: Instant, mark: u64) -> Self {
        Self { at, mark }
    }

    /// Returns the time at which the slot was taken.
    ///
    /// ```
    /// let now = std::time::Instant::now();
    /// assert_eq!(requeue::RateSlot::new(now, 0).at(), now);
    /// ```
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Returns the mark that the limiter has set.
    ///
    /// ```
    /// let slot = requeue::RateSlot::new(std::time::Instant::now(), 42);
    /// assert_eq!(slot.mark(), 42);
    /// ```
    pub fn mark(&self) -> u64 {
        self.mark
    }
}
