//! A queue with settings.

use crate::core::settings::Settings;
use crate::order::Order;
use crate::policy::dead::{Letters, Overflow};
use crate::policy::retry::Failures;
use crate::time::{Backoff, Clock, Time};
use crate::{DeadLetter, Fifo, Leased, Pace, Queue, Unleased};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a new [`Queue`], from [`Queue::builder`].
///
/// ```
/// let queue = requeue::Queue::<u32>::builder().capacity(100).build();
/// assert_eq!(queue.capacity(), Some(100));
/// ```
///
/// `O` says in which order the items come: [`Fifo`], by key ([`ByKey`](crate::ByKey)) or by priority
/// ([`ByPriority`](crate::ByPriority)).
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T, O: Order<T> = Fifo> {
    order: O::Settings,
    capacity: Option<usize>,
    max_attempts: Option<NonZeroU32>,
    max_dead_letters: usize,
    on_dead_overflow: Option<Overflow<T>>,
    backoff: Option<Backoff>,
    clock: Option<Arc<dyn Clock>>,
    timestamps: bool,
    lease: Option<Duration>,
    pace: Pace,
    max_held: Option<usize>,
    paused: bool,
    name: Option<Arc<str>>,
}

impl<T, O: Order<T>> Builder<T, O> {
    fn with_order(order: O::Settings) -> Self {
        Self {
            order,
            capacity: None,
            max_attempts: None,
            max_dead_letters: usize::MAX,
            on_dead_overflow: None,
            backoff: None,
            clock: None,
            timestamps: false,
            lease: None,
            pace: Pace::unlimited(),
            max_held: None,
            paused: false,
            name: None,
        }
    }

    /// The most items that the queue takes; see [`Queue::bounded`]. Without it, there is no bound.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().capacity(1).build();
    /// queue.push("first")?;
    /// assert!(queue.push("second").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0: a queue must have room for at least one item.
    #[track_caller]
    pub fn capacity(mut self, capacity: usize) -> Self {
        assert!(capacity > 0, "capacity is 0: the queue could take no item");
        self.capacity = Some(capacity);
        self
    }

    /// How often an item is delivered at most. When the last delivery fails, the item becomes a
    /// [dead letter](Queue::dead_letters). Without it, items are delivered until a delivery is
    /// committed.
    ///
    /// Each end of a transaction that held the item counts as a failed delivery if it was not a commit;
    /// see [`Reason`](crate::Reason).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(2).build();
    /// queue.push("poison")?;
    /// let mut worker = queue.handle();
    /// for _ in 0..2 {
    ///     let tx = worker.begin();
    ///     assert_eq!(*tx.pop()?, "poison");
    ///     tx.abort();
    /// }
    /// assert!(queue.is_empty());
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.attempts), ("poison", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `attempts` is 0: no item could be delivered.
    #[track_caller]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        let attempts = NonZeroU32::new(attempts);
        assert!(
            attempts.is_some(),
            "max_attempts is 0: no item could be delivered (1 delivers each item once)"
        );
        self.max_attempts = attempts;
        self
    }

    /// How many [dead letters](Queue::dead_letters) the queue keeps at most; without it, all of them.
    ///
    /// When there are so many, no more items die: they go on being retried, until letters are taken out.
    /// With [`Builder::on_dead_overflow`] the oldest letter gives way instead.
    ///
    /// ```
    /// let queue = requeue::Queue::builder()
    ///     .max_attempts(1)
    ///     .max_dead_letters(1)
    ///     .build();
    /// let mut worker = queue.handle();
    /// worker.push_batch([1, 2])?;
    /// let tx = worker.begin();
    /// assert_eq!(tx.pop_batch(2).len(), 2);
    /// tx.abort();
    /// assert_eq!((queue.dead_letters().len(), queue.len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_dead_letters(mut self, most: usize) -> Self {
        self.max_dead_letters = most;
        self
    }

    /// What to do with the oldest dead letter when there are more than
    /// [`max_dead_letters`](Builder::max_dead_letters).
    ///
    /// `overflow` is called by whoever ends the transaction whose item died, or finds that its lease is
    /// over, when nothing is half done. It may use the same queue, but if it owns it the queue is never
    /// dropped. If it panics, the panic is caught and that letter is lost with it.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    ///
    /// let (log, logged) = channel();
    /// let queue = requeue::Queue::builder()
    ///     .max_attempts(1)
    ///     .max_dead_letters(1)
    ///     .on_dead_overflow(move |letter| log.send(letter.item).unwrap())
    ///     .build();
    /// let mut worker = queue.handle();
    /// worker.push_batch([1, 2])?;
    /// let tx = worker.begin();
    /// assert_eq!(tx.pop_batch(2).len(), 2);
    /// tx.abort();
    /// assert_eq!(logged.try_recv(), Ok(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_dead_overflow(
        mut self,
        overflow: impl Fn(DeadLetter<T>) + Send + Sync + 'static,
    ) -> Self {
        self.on_dead_overflow = Some(Arc::new(overflow));
        self
    }

    /// How long an item is out of the way after a failed delivery. Without it, it goes back to the head
    /// at once, as does one that was taken back from a worker: it has waited for its lease.
    ///
    /// ```
    /// use requeue::{Backoff, ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .backoff(Backoff::fixed(Duration::from_secs(5)))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// let _job = tx.pop()?;
    /// tx.abort();
    /// assert!(queue.is_empty());
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Where the queue reads the time, and who wakes its waiters; without it, the system's clock.
    ///
    /// All times go through it: delays, leases, time stamps, and the timeouts of calls that wait. A
    /// clock that goes backwards makes delays, leases and timeouts longer by that much, and ages
    /// shorter; nothing is lost by it.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::<u32>::builder().clock(clock.clone()).build();
    /// assert_eq!(queue.now(), clock.now());
    /// ```
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Keeps the time of each push, for [`Stats::oldest`](crate::Stats::oldest) and
    /// [`DeadLetter::pushed_at`]. Costs sixteen bytes for each item and a look at the clock for each push.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().timestamps().clock(clock.clone()).build();
    /// queue.push(1)?;
    /// clock.advance(Duration::from_secs(3));
    /// assert_eq!(queue.stats().oldest, Some(Duration::from_secs(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timestamps(mut self) -> Self {
        self.timestamps = true;
        self
    }

    /// Lets a transaction hold an item for no longer than `term`. Then the item is available to others,
    /// and the transaction cannot commit any more: [`Transaction::try_commit`] says
    /// [`Expired`](crate::Expired). So of several deliveries of an item at most one is committed.
    /// [`Transaction::renew`] starts the term anew, and [`Queue::recover`] ends it early.
    ///
    /// The order of the queue becomes [`Leased`]: it is as it was, but transactions have no
    /// [`commit`](crate::Transaction::commit), which never fails. The order itself is chosen before: `by_priority()` or
    /// `fair_by(key)`, then `leased(term)`.
    ///
    /// What others get is a copy that was made when the item was taken: changes of the late worker are
    /// lost. Each item that a transaction takes is cloned, and written down under a lock that only those
    /// contend for who take back what is over.
    ///
    /// An item is taken back by whoever pops next, waits, or looks at the queue. That counts as a failed
    /// delivery; the item does not wait for a [backoff](Builder::backoff) then, it has waited already.
    ///
    /// ```
    /// use requeue::{Expired, ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .leased(Duration::from_secs(30))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let mut slow = queue.handle();
    /// let tx = slow.begin();
    /// assert_eq!(*tx.pop()?, "job");
    ///
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(queue.pop()?, "job");
    /// assert_eq!(tx.try_commit().unwrap_err(), Expired);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `term` is zero.
    ///
    /// [`Transaction::try_commit`]: crate::Transaction::try_commit
    /// [`Transaction::renew`]: crate::Transaction::renew
    #[track_caller]
    pub fn leased(mut self, term: Duration) -> Builder<T, Leased<O>>
    where
        T: Clone,
        O: Unleased,
    {
        assert!(!term.is_zero(), "lease of zero: it would be over at once");
        self.lease = Some(term);
        self.by(|order| order)
    }

    /// How fast items are started: popped, in a transaction or not. Without it, as fast as one can.
    ///
    /// When the pace allows no start, pops say [`Empty`](crate::PopError::Empty), or wait until it does.
    /// Each item takes a turn, those of a batch too. A turn is given back when its item is aborted or
    /// retried; what that is worth, the pace says. See [`Queue::set_pace`].
    ///
    /// ```
    /// use requeue::{ManualClock, Pace, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let second = Duration::from_secs(1);
    /// let queue = Queue::builder()
    ///     .pace(Pace::every(second))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("first")?;
    /// queue.push("second")?;
    /// assert_eq!(queue.pop()?, "first");
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// clock.advance(second);
    /// assert_eq!(queue.pop()?, "second");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How many items may be held by transactions at once, all together. Without it, any number.
    ///
    /// When there are so many, pops say [`Empty`](crate::PopError::Empty), or wait until an item is committed,
    /// aborted, retried or taken back. A transaction that holds all that may be held waits for itself: do not
    /// wait for another item then.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_held(1).build();
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// let _first = tx.pop()?;
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// tx.commit();
    /// assert_eq!(queue.pop()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `items` is 0: a queue that gives out nothing is a paused one.
    #[track_caller]
    pub fn max_held(mut self, items: usize) -> Self {
        assert!(
            items > 0,
            "max_held is 0: no item could be taken (use `Queue::pause` to stop for a while)"
        );
        self.max_held = Some(items);
        self
    }

    /// Builds the queue [paused](Queue::pause): it gives out nothing until [`Queue::resume`].
    ///
    /// ```
    /// let queue = requeue::Queue::builder().paused().build();
    /// queue.push(1)?;
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// queue.resume();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Names the queue, for `Debug` and for the features `metrics` and `tracing`, which tell of queues
    /// with a name only.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().name("mails").build();
    /// assert!(format!("{queue:?}").contains("mails"));
    /// ```
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same settings for a queue in another order.
    pub(crate) fn by<P: Order<T>>(
        self,
        order: impl FnOnce(O::Settings) -> P::Settings,
    ) -> Builder<T, P> {
        Builder {
            order: order(self.order),
            capacity: self.capacity,
            max_attempts: self.max_attempts,
            max_dead_letters: self.max_dead_letters,
            on_dead_overflow: self.on_dead_overflow,
            backoff: self.backoff,
            clock: self.clock,
            timestamps: self.timestamps,
            lease: self.lease,
            pace: self.pace,
            max_held: self.max_held,
            paused: self.paused,
            name: self.name,
        }
    }

    pub(crate) fn order(&mut self) -> &mut O::Settings {
        &mut self.order
    }

    /// Makes the queue.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().build();
    /// assert_eq!(queue.capacity(), None);
    /// ```
    pub fn build(self) -> Queue<T, O> {
        let time = self.clock.map_or_else(Time::system, Time::of);
        let letters = Letters::new(self.max_dead_letters, self.on_dead_overflow);
        let settings = Settings {
            capacity: self.capacity,
            failures: Failures::new(self.max_attempts, self.backoff, letters),
            time,
            timed: self.timestamps,
            lease: self.lease,
            pace: self.pace,
            max_held: self.max_held,
            name: self.name,
        };
        let queue = Queue::with(settings, self.order);
        if self.paused {
            queue.pause();
        }
        queue
    }
}

impl<T, O: Order<T>> Clone for Builder<T, O> {
    fn clone(&self) -> Self {
        Self {
            order: self.order.clone(),
            capacity: self.capacity,
            max_attempts: self.max_attempts,
            max_dead_letters: self.max_dead_letters,
            on_dead_overflow: self.on_dead_overflow.clone(),
            backoff: self.backoff,
            clock: self.clock.clone(),
            timestamps: self.timestamps,
            lease: self.lease,
            pace: self.pace.clone(),
            max_held: self.max_held,
            paused: self.paused,
            name: self.name.clone(),
        }
    }
}

impl<T, O: Order<T>> fmt::Debug for Builder<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("max_attempts", &self.max_attempts)
            .field("max_dead_letters", &self.max_dead_letters)
            .field("backoff", &self.backoff)
            .field("timestamps", &self.timestamps)
            .field("lease", &self.lease)
            .field("pace", &self.pace)
            .field("max_held", &self.max_held)
            .finish_non_exhaustive()
    }
}

/// [`Queue::builder`].
impl<T> Default for Builder<T> {
    fn default() -> Self {
        Self::with_order(())
    }
}
