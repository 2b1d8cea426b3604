//! The builder of queues.

use crate::order::Order;
use crate::policy::records::Callbacks;
use crate::policy::settings::Settings;
use crate::policy::unique::OnDuplicate;
use crate::raw::Shareable;
use crate::time::{Backoff, Clock};
#[cfg(feature = "broker")]
use crate::AfterTtl;
use crate::{DeadLetter, Fifo, Leased, Lifo, Queue, ReturnTo, Unleased};
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
/// `O` is the order of the queue: [`Fifo`], by key ([`ByKey`](crate::ByKey)) or by priority
/// ([`ByPriority`](crate::ByPriority)).
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T, O: Order<T> = Fifo> {
    pub(crate) order: O::Settings,
    /// What makes a queue with items and keys that may be sent between threads one that may be sent itself.
    proof: Shareable<O::Source>,
    pub(super) settings: Settings,
    /// `None` if there are none, which most queues do without.
    callbacks: Option<Box<Callbacks<T>>>,
}

impl<T, O: Order<T>> Builder<T, O> {
    /// Sets the capacity of the queue; see [`Queue::bounded`]. The default is unbounded.
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
        self.settings.capacity = Some(capacity);
        self.settings.budget = None;
        self
    }

    /// Shares a capacity with other queues, whatever their items and orders, instead of a [`capacity`](Builder::capacity) of its
    /// own: together they hold no more than the limit of the [`Budget`](crate::Budget), in items, or in units where they
    /// [weigh](Builder::weigh) items.
    ///
    /// Pushes that wait for room wait in one FIFO, for room that any of the queues frees, also by its drop. A transaction uses
    /// the room of the items that it holds for what it stages in the same queue only. An expired lease or time to live frees
    /// its room when its own queue is used, or waited for.
    ///
    /// ```
    /// use requeue::{Budget, Queue};
    ///
    /// let budget = Budget::new(2);
    /// let mails = Queue::builder().budget(&budget).build();
    /// let jobs = Queue::builder().by_priority().budget(&budget).build();
    /// mails.push("hello")?;
    /// jobs.priority(1).push(7)?;
    /// assert!(mails.push("too many").unwrap_err().is_full());
    /// assert_eq!(jobs.pop()?, 7);
    /// mails.push("fits now")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Progress
    ///
    /// As for [`weigh`](Builder::weigh), also if the items of this queue have no weights.
    #[cfg(feature = "broker")]
    pub fn budget(mut self, budget: &crate::Budget) -> Self {
        self.settings.budget = Some(budget.clone());
        self.settings.capacity = None;
        self.settings.records.get_or_insert(|| None);
        self
    }

    /// Weighs items: the [capacity](Builder::capacity) limits their total weight, in units of your choice, such as bytes, and not
    /// their number.
    ///
    /// `weigh` is called once for each item, by the push, before the item is in the queue, and without a lock. The item keeps
    /// this weight until it is gone for good; it counts wherever a place of a bounded queue does: while it is ready, held,
    /// delayed or scheduled. A transaction needs as much room as its held items weigh, or as its staged ones do,
    /// whichever is more; so what comes back to the queue always has room. [`Queue::weight`] is the total weight.
    ///
    /// An item that weighs more than the capacity is refused as [`PushError::TooHeavy`](crate::PushError::TooHeavy), by all
    /// forms of a push, at once. A push that waits gathers room while it is the first that waits, as a batch does: light items
    /// cannot starve a heavy one. One of weight 0 needs no room. Items that are pushed in the same nanosecond have times that are
    /// nanoseconds apart, and [live](Builder::ttl) so much less. A [dead letter](Queue::dead_letters) has no weight; one that is
    /// pushed again is weighed again.
    ///
    /// ```
    /// let queue = requeue::Queue::builder()
    ///     .weigh(|message: &String| message.len())
    ///     .capacity(1_000)
    ///     .build();
    /// queue.push("x".repeat(600))?;
    /// assert!(queue.push("y".repeat(600)).unwrap_err().is_full());
    /// assert!(queue.push("z".repeat(1_001)).unwrap_err().is_too_heavy());
    /// queue.push("y".repeat(400))?;
    /// assert_eq!((queue.len(), queue.weight()), (2, 1_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// A panic of `weigh` leaves the push: nothing is pushed, and the items are dropped.
    ///
    /// # Progress
    ///
    /// Each push, and whatever ends an item for good, takes one of 16 locks for a moment, in a table of the weights.
    #[doc(alias("bytes", "byte budget", "semaphore"))]
    #[cfg(feature = "broker")]
    pub fn weigh(mut self, weigh: impl Fn(&T) -> usize + Send + Sync + 'static) -> Self {
        self.callbacks_mut().weigh = Some(Arc::new(weigh));
        self.settings.records.get_or_insert(|| None);
        self
    }

    /// Sets the maximum number of deliveries of an item. When the last one fails, the item becomes a [dead
    /// letter](Queue::dead_letters). By default, items are delivered until a delivery is committed.
    ///
    /// Each transaction that held the item and did not commit counts as a failed delivery; see
    /// [`Reason`](crate::Reason).
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
    #[doc(alias("max_deliveries", "retry", "poison"))]
    #[track_caller]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        let attempts = NonZeroU32::new(attempts);
        assert!(
            attempts.is_some(),
            "max_attempts is 0: no item could be delivered (1 delivers each item once)"
        );
        self.settings.max_attempts = attempts;
        self
    }

    /// Sets the maximum number of [dead letters](Queue::dead_letters) that the queue keeps. The default is unlimited.
    ///
    /// At the limit, items that would become dead letters are retried instead, until letters are taken out. With
    /// [`Builder::on_dead_overflow`] the oldest letter is removed instead.
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
        self.settings.max_dead_letters = Some(most);
        self
    }

    /// Sets a function for the oldest dead letter, which is removed when there are more than
    /// [`max_dead_letters`](Builder::max_dead_letters).
    ///
    /// `overflow` is called by the call that makes an item a dead letter, at the end of its transaction or lease,
    /// while the queue is in a consistent state. It may use the same queue, but if it owns a clone of it, the queue
    /// is never dropped. If it panics, the panic is caught and that letter is lost.
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
        self.callbacks_mut().overflow = Some(Arc::new(overflow));
        self
    }

    /// Sets the delay of an item after a failed delivery. By default, it goes back to the head at once. So does an
    /// item that was taken back from a worker, since it has waited for its lease.
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
    #[doc(alias("retry", "delay"))]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = Some(backoff);
        self
    }

    /// Sets where the items of failed deliveries go back to. The default is the head: they come before all that were not
    /// delivered yet.
    ///
    /// At the [tail](ReturnTo::Tail) an item that fails again and again keeps no other waiting. It counts for an abort, whatever
    /// its cause, and for a [`Delivery`](crate::Delivery) that is dropped or given up. An item that is
    /// [delayed](Builder::backoff) comes to the head when it is due, and so does one whose [lease](Builder::leased) expires.
    ///
    /// ```
    /// use requeue::{Queue, ReturnTo};
    ///
    /// let queue = Queue::builder().on_failure(ReturnTo::Tail).max_attempts(2).build();
    /// queue.push_batch(["poison", "a", "b"])?;
    /// let mut order = Vec::new();
    /// while let Ok(job) = queue.take() {
    ///     order.push(*job);
    ///     if *job != "poison" {
    ///         job.ack();
    ///     }
    /// }
    /// assert_eq!(order, ["poison", "a", "b", "poison"]);
    /// assert_eq!(queue.dead_letters().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("requeue", "nack", "poison"))]
    pub fn on_failure(mut self, to: ReturnTo) -> Self {
        self.settings.return_to = to;
        self
    }

    /// Sets the clock, from which the queue reads the time and which wakes its tasks. The default is the system
    /// clock.
    ///
    /// It is used for all times: delays, leases, timestamps, and the timeouts of calls that wait. A clock that goes
    /// backwards makes delays, leases and timeouts longer by that much, and ages shorter; nothing is lost.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::<u32>::builder().clock(clock.clone()).build();
    /// assert_eq!(queue.now(), clock.now());
    /// ```
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.settings.clock = Some(Arc::new(clock));
        self
    }

    /// Keeps the time of each push, for [`Stats::oldest`](crate::Stats::oldest) and [`DeadLetter::pushed_at`]. Costs
    /// sixteen bytes for each item and reads the clock at each push.
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
        self.settings.timestamps = true;
        self
    }

    /// Sets the time to live of items: one that was pushed longer ago is not delivered any more. The default is no limit.
    ///
    /// By default such items are dropped; see [`Builder::on_expired`]. An item that is held when its time is over may still be
    /// committed; otherwise its time ends when it comes back. That of a scheduled item begins when it is due, and that of a
    /// dead letter that is pushed again begins anew.
    ///
    /// The time is decided by the [clock](Builder::clock) at each pop, take or peek, also of a batch. Nobody has to pop for
    /// items to end: whatever inspects or waits for the queue, and pushes, drop those whose time is over, so at that time a
    /// push that waits for room goes on, and [`Queue::wait_idle`] ends. An item that is behind a younger one, such as one that
    /// was delayed or went back to the tail, is dropped when it would be next, and takes up room until then.
    ///
    /// Keeps [timestamps](Builder::timestamps).
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .ttl(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("stale")?;
    /// clock.advance(Duration::from_secs(30));
    /// queue.push("fresh")?;
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(queue.pop()?, "fresh");
    /// assert_eq!(queue.stats().timed_out, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `ttl` is zero: nothing could be delivered.
    #[doc(alias("expiry", "expiration", "time to live"))]
    #[track_caller]
    #[cfg(feature = "broker")]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        assert!(
            !ttl.is_zero(),
            "time to live of zero: nothing could be delivered"
        );
        self.settings.ttl = Some(ttl);
        self
    }

    /// As [`Builder::ttl`], and pushes may give items less time: see [`Queue::expires_in`](crate::Queue#method.expires_in).
    /// Something is kept beside each item for that, so pushes and pops take longer.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let builder = Queue::builder().max_ttl(Duration::MAX);
    /// let queue = builder.clock(clock.clone()).build();
    /// queue.expires_in(Duration::from_secs(5)).push("soon or never")?;
    /// queue.push("some day")?;
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(queue.pop()?, "some day");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Builder::ttl`].
    #[track_caller]
    #[cfg(feature = "broker")]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.settings.own_ttls = true;
        self.settings.records.get_or_insert(|| None);
        self.ttl(ttl)
    }

    /// Sets what becomes of items whose [time to live](Builder::ttl) is over. By default they are dropped, by the thread that
    /// finds them: a panic of a destructor is caught.
    ///
    /// ```
    /// use requeue::{AfterTtl, ManualClock, Queue, Reason};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .ttl(Duration::from_secs(60))
    ///     .on_expired(AfterTtl::DeadLetter)
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("stale")?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(queue.is_empty());
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.reason), ("stale", Reason::TimedOut));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "broker")]
    pub fn on_expired(mut self, then: AfterTtl) -> Self {
        self.settings.after_ttl = then;
        self
    }

    /// The function that gets dead letters drops those whose time to live is over, so they are not emitted as dead letters: for
    /// crates that keep queues elsewhere too.
    #[doc(hidden)]
    #[cfg(feature = "broker")]
    pub fn drops_expired(mut self, drops: bool) -> Self {
        self.settings.drops_expired = drops;
        self
    }

    /// Leases items: a transaction holds an item for at most `term` (a visibility timeout). Then the item is
    /// available to others, and the transaction cannot commit any more: [`Transaction::try_commit`] returns
    /// [`Expired`](crate::Expired). So of several deliveries of an item at most one is committed.
    /// [`Transaction::renew`] restarts the term, and [`Queue::recover`] ends it early.
    ///
    /// The order of the queue becomes [`Leased`]: items are ordered as before, but transactions have no
    /// [`commit`](crate::Transaction::commit), which never fails. Choose the order first: `by_priority()` or
    /// `fair_by(key)`, then `leased(term)`.
    ///
    /// Others receive a copy that was made when the item was taken: modifications by the late worker are lost. Each
    /// item that a transaction takes is cloned, and recorded under a lock that is contended only when expired items
    /// are taken back.
    ///
    /// An expired item is taken back by the next call that pops, waits, or inspects the queue. That counts as a
    /// failed delivery, but without a [backoff](Builder::backoff), since the item has waited already.
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
    #[doc(alias("visibility timeout", "lease"))]
    #[track_caller]
    pub fn leased(mut self, term: Duration) -> Builder<T, Leased<O>>
    where
        T: Clone,
        O: Unleased,
    {
        assert!(!term.is_zero(), "lease of zero: it would expire at once");
        self.settings.lease = Some(term);
        let proof = self.proof;
        self.by(|order| order, proof)
    }

    /// Sets a rate limit for the start of items, that is, their pop, in a transaction or not. The default is
    /// unlimited.
    ///
    /// When the pace allows no start, pops return [`Empty`](crate::PopError::Empty), or wait until it does. Each item
    /// takes a token, those of a batch too. The token is returned if the item is aborted or retried; see [`Pace`](crate::Pace) for
    /// when that allows another start, and [`Queue::set_pace`].
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
    #[doc(alias("rate limit", "throttle"))]
    #[cfg(feature = "rate")]
    pub fn pace(mut self, pace: crate::Pace) -> Self {
        self.settings.pace = pace;
        self
    }

    /// Sets the maximum number of items in flight: held by all transactions together. The default is unlimited.
    ///
    /// At the limit, pops return [`Empty`](crate::PopError::Empty), or wait until an item is committed, aborted,
    /// retried or taken back. A transaction that itself holds that many items must not wait for another one: it would
    /// wait for itself.
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
    /// If `items` is 0: to deliver nothing, pause the queue.
    #[doc(alias("concurrency limit", "semaphore"))]
    #[track_caller]
    pub fn max_held(mut self, items: usize) -> Self {
        assert!(
            items > 0,
            "max_held is 0: no item could be taken (use `Queue::pause` to stop for a while)"
        );
        self.settings.max_held = Some(items);
        self
    }

    /// Builds the queue [paused](Queue::pause): it delivers nothing until [`Queue::resume`].
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
        self.settings.paused = true;
        self
    }

    /// Names the queue, for `Debug` and for the features `metrics` and `tracing`, which emit only for named queues.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().name("mails").build();
    /// assert!(format!("{queue:?}").contains("mails"));
    /// ```
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    pub(super) fn callbacks_mut(&mut self) -> &mut Callbacks<T> {
        self.callbacks.get_or_insert_with(Box::default)
    }

    /// Keeps the settings for a queue in another order.
    pub(crate) fn by<P: Order<T>>(
        self,
        order: impl FnOnce(O::Settings) -> P::Settings,
        proof: Shareable<P::Source>,
    ) -> Builder<T, P> {
        Builder {
            order: order(self.order),
            proof,
            settings: self.settings,
            callbacks: self.callbacks,
        }
    }

    /// Builds the queue.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().build();
    /// assert_eq!(queue.capacity(), None);
    /// ```
    ///
    /// # Panics
    ///
    /// If items have [weights](Builder::weigh), and duplicates [replace](Builder::on_duplicate) others: these would have other
    /// weights.
    #[track_caller]
    pub fn build(self) -> Queue<T, O> {
        let refuses = self.settings.on_duplicate == OnDuplicate::Refuse;
        let callbacks = self.callbacks.as_deref();
        let is_clear = refuses || callbacks.map_or(true, |it| it.weigh.is_none());
        assert!(
            is_clear,
            "duplicates cannot replace items that have weights"
        );
        let paused = self.settings.paused;
        let queue = Queue::with(self.settings, self.callbacks, self.order, self.proof);
        if paused {
            queue.pause();
        }
        queue
    }
}

impl<T, O: Order<T>> Clone for Builder<T, O> {
    fn clone(&self) -> Self {
        Self {
            order: self.order.clone(),
            proof: self.proof,
            settings: self.settings.clone(),
            callbacks: self.callbacks.clone(),
        }
    }
}

debug_struct!([T, O: Order<T>] Builder<T, O>, |it|
    name: it.settings.name, capacity: it.settings.capacity, max_attempts: it.settings.max_attempts,
    max_dead_letters: it.settings.max_dead_letters, backoff: it.settings.backoff, timestamps: it.settings.timestamps,
    lease: it.settings.lease, pace: it.settings.pace, max_held: it.settings.max_held, stickiness: it.settings.stickiness);

impl<T> Builder<T> {
    /// Sets how many items of one handle a consumer takes before it compares handles again. The default is 64.
    ///
    /// The smaller it is, the closer items of different handles come out to the order of their pushes, and the more
    /// often a consumer looks for the handle with the oldest item. [`u32::MAX`] means until about 2 KiB of items are used
    /// up, which are 256 small ones. The displacement of items that two handles of a thread push in turn, and the time
    /// per item of two producers and two consumers on two cores (medians of 101 rounds):
    ///
    /// | stickiness | 1 | 4 | 16 | 64 | 256 | `u32::MAX` |
    /// |---|---|---|---|---|---|---|
    /// | places, at most | 2 | 11 | 32 | 96 | 255 | 255 |
    /// | ns | 63.7 | 25.4 | 11.6 | 8.5 | 8.2 | 8.1 |
    ///
    /// `cargo run --release -p requeue-compare -- --only stickiness` measures both.
    ///
    /// Pops of batches compare handles after four batches, but after no fewer items than pops of one, and at most four
    /// times as many. Where no other handle has items, a consumer takes four times as many before it looks again. The
    /// order of the items of one handle is always kept. Queues in another order have no such setting: they compare all
    /// items.
    ///
    /// The term is that of the `MultiQueue`: Williams, Sanders and Dementiev, "Engineering `MultiQueues`: Fast Relaxed
    /// Concurrent Priority Queues" (2021).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().stickiness(1).build();
    /// let (mut left, mut right) = (queue.handle(), queue.handle());
    /// for item in 0..100 {
    ///     left.push(2 * item)?;
    ///     right.push(2 * item + 1)?;
    /// }
    /// for place in 0..200 {
    ///     let item: usize = queue.pop()?;
    ///     assert!(item.abs_diff(place) <= 1);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `items` is 0: a consumer could take no item.
    #[doc(alias = "quota")]
    #[track_caller]
    pub fn stickiness(mut self, items: u32) -> Self {
        assert!(items > 0, "stickiness is 0: a consumer could take no item");
        self.settings.stickiness = Some(items);
        self
    }

    /// The same settings, for other items.
    #[doc(hidden)]
    pub fn for_items<U>(self) -> Builder<U> {
        Builder {
            settings: self.settings,
            ..Builder::default()
        }
    }

    /// Delivers the newest item first, that is, depth first if items push their successors.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().lifo().build();
    /// queue.push("other root")?;
    /// queue.push("root")?;
    ///
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// assert_eq!(*tx.pop()?, "root");
    /// tx.push("first child")?;
    /// tx.push("last child")?;
    /// tx.commit();
    /// let order: Vec<_> = queue.drain().collect();
    /// assert_eq!(order, ["last child", "first child", "other root"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Order
    ///
    /// Of the items that one handle pushes, or one thread without a handle, a pop takes the last; a batch and the pushes
    /// of a commit become ready together, and the last of them comes first. Items of several handles are ordered by when a
    /// pop, or a call that counts items, finds them; those found together have no order between the handles. Once two threads
    /// have contended for the stack, it is divided into eight for as long as the queue lives: then a handle takes the items of its own
    /// stack first, which are those that it has pushed itself and those of some other handles, and then those of the others. An
    /// item that has become due is on any of them. What was on the stack before comes last, as do dead letters that are pushed
    /// again.
    ///
    /// Items given back by an abort, or later by a [retry](crate::Transaction::retry_after), come before all others, in
    /// the order in which they were delivered, and those of the last abort first. So an item that fails again and again
    /// delays all others, unless it is retried later or has a [maximum of attempts](Builder::max_attempts). Nothing keeps
    /// old items from starving while new ones are pushed.
    ///
    /// An item that is [visited](Queue::peek_each) returns to its place; if pops removed that meanwhile, it comes before
    /// the other pushed items.
    ///
    /// # Costs
    ///
    /// Pushes are those of any [`Queue`]. A [handle](crate::Handle) that pops the only item which is left of those that it has
    /// pushed takes no lock, if no item was returned. All other pops take the lock of a stack, under which they move pushed items
    /// onto it and take the next one from it: unlike with a [`Queue`] in the default order, a thread that stalls there delays the others.
    /// A pop that finds nothing takes the locks of all stacks.
    /// A push and a pop of a number take 112 instructions on one thread if a handle pops each item at once, 225 if it pushes 64
    /// and then pops them, and 305 if another handle pops each, where the default order takes 80. The stack takes 24 bytes for an item in addition to its
    /// size, and grows by doubling; it shrinks when three quarters of it are unused.
    pub fn lifo(self) -> Builder<T, Lifo>
    where
        T: Send,
    {
        self.by(|()| (), Shareable::proved())
    }
}

/// As [`Queue::builder`].
impl<T> Default for Builder<T> {
    fn default() -> Self {
        Self {
            order: (),
            proof: Shareable::proved(),
            settings: Settings::default(),
            callbacks: None,
        }
    }
}

/// For crates that keep queues elsewhere too.
impl<T, O: Order<T>> Builder<T, O> {
    /// The settings that matter there as well: the attempts, the backoff, and the clock, if it is not that of the system.
    #[doc(hidden)]
    pub fn kept(&self) -> (Option<u32>, Option<Backoff>, Option<Arc<dyn Clock>>) {
        let Settings {
            max_attempts,
            backoff,
            clock,
            ..
        } = &self.settings;
        (max_attempts.map(NonZeroU32::get), *backoff, clock.clone())
    }

    /// Raises limits, for a queue whose items have this weight already, and that has so many of one key.
    #[doc(hidden)]
    pub fn with_room_for(mut self, weight: usize, of_one_key: usize) -> Self {
        let capacity = &mut self.settings.capacity;
        *capacity = capacity.map(|limit| limit.max(weight));
        O::make_room(&mut self.order, of_one_key);
        self
    }
}
