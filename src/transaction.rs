//! Transactions: pops that become final, and pushes that become visible, at the commit.

use crate::future::{PopAsync, StageAsync};
use crate::port::{Outcome, Port};
use crate::post::Lost;
use crate::raw::{Grip, HeldItems, Open, Party};
use crate::side::NoRoom;
use crate::{Expired, Peek, PopError, PushError, Taken};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A transaction of one [`Handle`](crate::Handle).
///
/// What it pops is *held*: nobody else sees it. What it pushes is *staged*: nobody sees it, this
/// transaction neither. [`commit`](Self::commit) makes all pushes visible at once and the pops
/// final. Dropping the transaction, by an early return or a panic too, aborts it: held items go
/// back to the head of the queue in their order, staged ones are dropped. A transaction that is
/// forgotten stays open until its handle is used again or dropped.
///
/// An abort allocates nothing and cannot fail. Changes made to held items stay.
///
/// # Example
///
/// A job stays borrowed while its follow-ups are pushed:
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut worker = queue.handle();
/// worker.push(vec![1, 2])?;
///
/// let tx = worker.begin();
/// let job = tx.pop()?;
/// for part in job.iter() {
///     tx.push(vec![*part])?;
/// }
/// tx.commit();
/// assert_eq!(queue.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A transaction that was committed cannot be touched again:
///
/// ```compile_fail
/// let mut worker = requeue::Queue::unbounded().handle();
/// let tx = worker.begin();
/// tx.push(1).unwrap();
/// tx.commit();
/// tx.push(2).unwrap();
/// ```
///
/// A transaction is `Send`, and may live across an `.await`. While a future lives that it has given out
/// by [`pop_async`](Self::pop_async) or [`push_async`](Self::push_async) it is lent to that future: all
/// methods by `&self` panic until the future is ready or dropped.
///
/// A held item is gone with its transaction:
///
/// ```compile_fail
/// let mut worker = requeue::Queue::<u32>::unbounded().handle();
/// let tx = worker.begin();
/// let job = tx.pop().unwrap();
/// tx.commit();
/// println!("{}", *job);
/// ```
#[must_use = "a transaction that is dropped aborts"]
pub struct Transaction<'h, T> {
    open: Open<'h, Port<T>>,
}

impl<'h, T> Transaction<'h, T> {
    #[inline]
    pub(crate) fn new(open: Open<'h, Port<T>>) -> Self {
        Self { open }
    }

    /// Stages a push.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert!(tx.pop().is_err()); // a transaction does not read its own writes
    /// tx.commit();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded, this transaction has staged as many items as it
    /// holds, and at some instant of the call there was no room for more. [`PushError::Closed`] if the
    /// queue is closed. The item comes back with the error.
    ///
    /// # Panics
    ///
    /// If the transaction is lent to a future, like all methods by `&self`.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.open.get().stage(item)
    }

    /// Stages a push, and waits for room if there is none.
    ///
    /// Two that both wait for room which only the other's end would free wait for ever: two
    /// transactions, or this one and a batch that gathers room.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(1);
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_blocking(1)?;
    /// assert!(tx.push_blocking(2).unwrap_err().is_full()); // can never fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] at once, if the transaction has staged as many items as the queue's
    /// capacity; [`PushError::Closed`] if the queue is closed. The item comes back with the error.
    pub fn push_blocking(&self, item: T) -> Result<(), PushError<T>> {
        self.open.get().stage_waiting(item, None)
    }

    /// Stages a push, and waits up to `timeout` for room.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::bounded(1);
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let refused = handle.begin().push_timeout(2, Duration::from_millis(1));
    /// assert!(refused.unwrap_err().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the time is over, or at once as in [`Transaction::push_blocking`];
    /// [`PushError::Closed`] if the queue is closed. The item comes back with the error.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.open.get().stage_waiting(item, Some(timeout))
    }

    /// A future that stages a push when there is room. The transaction is lent to it meanwhile.
    ///
    /// Its output is that of [`Transaction::push_blocking`]. Cancel safe: if it is dropped before it is
    /// ready, the item is dropped with it and was not staged.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::bounded(1);
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_async("job").await?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn push_async(&self, item: T) -> StageAsync<'_, T> {
        StageAsync::new(self.open.get(), item)
    }

    /// Takes an item and holds it. Lock-free.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let (first, second) = (tx.pop()?, tx.pop()?);
    /// assert_eq!((*first, *second), (1, 2));
    /// tx.abort();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if at some instant during the call nothing was ready. What this
    /// transaction holds or has staged is not ready. [`PopError::Closed`] if nothing can become ready
    /// any more.
    #[inline]
    pub fn pop(&self) -> Result<Item<'_, T>, PopError> {
        self.open.get().hold().map(Item::new)
    }

    /// Takes an item and holds it, and waits for one if there is none.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         let tx = handle.begin();
    ///         let job = tx.pop_blocking().unwrap();
    ///         assert_eq!(*job, "job");
    ///         tx.commit();
    ///     });
    ///     queue.push("job").unwrap();
    /// });
    /// assert_eq!(queue.stats().committed, 1);
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if nothing can become ready any more. [`PopError::Empty`] if the queue is
    /// closed, nothing is ready, and this transaction holds or has staged something: it must not wait
    /// for another one that waits for it.
    pub fn pop_blocking(&self) -> Result<Item<'_, T>, PopError> {
        self.open.get().hold_waiting(None).map(Item::new)
    }

    /// Takes an item and holds it, and waits up to `timeout` for one.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
    /// let tx = handle.begin();
    /// assert!(tx.pop_timeout(Duration::from_millis(1)).unwrap_err().is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if the time is over, and as for [`Transaction::pop_blocking`].
    pub fn pop_timeout(&self, timeout: Duration) -> Result<Item<'_, T>, PopError> {
        self.open.get().hold_waiting(Some(timeout)).map(Item::new)
    }

    /// A future that takes an item when there is one, and holds it. The transaction is lent to it
    /// meanwhile.
    ///
    /// Its output is that of [`Transaction::pop_blocking`]. Cancel safe: it takes an item only when it is
    /// ready, and that item is the transaction's.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// assert_eq!(*tx.pop_async().await?, "job");
    /// tx.commit();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn pop_async(&self) -> PopAsync<'_, T> {
        PopAsync::new(self.open.get())
    }

    /// Takes up to `max` items; all of them are held when the call returns. None if at some instant
    /// during the call nothing was ready.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([1, 2, 3])?;
    /// let tx = handle.begin();
    /// let sum: i32 = tx.pop_batch(10).map(|item| *item).sum();
    /// assert_eq!((sum, tx.held()), (6, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_batch(&self, max: usize) -> Items<'_, T> {
        self.pop_batch_blocking(1, max, Duration::ZERO)
    }

    /// Takes up to `max` items, and waits until there are at least `min` of them, but not longer than
    /// `timeout`.
    ///
    /// Fewer than `min` (or `max`, if that is less) only if the time is over or the queue is closed and
    /// nothing is ready. What comes meanwhile is held at once, so that others do not see it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([1, 2, 3])?;
    /// let tx = handle.begin();
    /// assert_eq!(tx.pop_batch_blocking(2, 10, Duration::MAX).len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_batch_blocking(&self, min: usize, max: usize, timeout: Duration) -> Items<'_, T> {
        Items {
            held: self.open.get().hold_batch_waiting(min, max, timeout),
        }
    }

    /// How many pushes are staged.
    ///
    /// ```
    /// let mut handle = requeue::Queue::unbounded().handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert_eq!(tx.staged(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn staged(&self) -> usize {
        self.open.get().seat().access().staged()
    }

    /// How many items are held.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// assert_eq!(tx.held(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> usize {
        self.open.get().seat().access().held()
    }

    /// Commits: the pushes become visible all at once, the pops final. Never fails, and
    /// never waits: one store, however many items were pushed, and a wake-up for those who wait.
    ///
    /// The held items are given out by value; those not taken are dropped with the iterator.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job".to_string())?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.pop()?.push_str(" done");
    /// let done: Vec<String> = tx.commit().collect();
    /// assert_eq!(done, ["job done"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few stores
    pub fn commit(self) -> Taken<'h, T> {
        if self.is_guarded() {
            return self.commit_guarded();
        }
        self.end_by_commit()
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn end_by_commit(self) -> Taken<'h, T> {
        let port = self.open.close();
        let outcome = port.commit();
        let taken = Taken::new(port, outcome);
        taken.wake_for(outcome);
        taken
    }

    #[inline]
    fn is_guarded(&self) -> bool {
        self.open.get().side().is_guarded()
    }

    #[cold]
    fn commit_guarded(self) -> Taken<'h, T> {
        self.try_commit().expect("the lease is not over")
    }

    /// Commits, unless the queue [leases](crate::Builder::leased) its items and some of those that this
    /// transaction held were taken back.
    ///
    /// As [`Transaction::commit`] otherwise.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().leased(std::time::Duration::from_secs(60)).build();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// assert_eq!(tx.try_commit()?.next(), Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if an item was taken back. Then this transaction is aborted: what was taken back is
    /// others', and the rest goes back to the head.
    pub fn try_commit(self) -> Result<Taken<'h, T>, Expired> {
        if !self.is_guarded() {
            return Ok(self.end_by_commit());
        }
        self.close_book()?;
        let taken = self.end_by_commit();
        taken.end_guard();
        Ok(taken)
    }

    /// Makes sure that nothing is taken back any more.
    pub(crate) fn close_book(&self) -> Result<(), Expired> {
        let closed = self.open.get().side().close_book();
        closed.map_err(|Lost| Expired)
    }

    /// Starts the terms of the leases of all held items anew, if the queue
    /// [leases](crate::Builder::leased) its items.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder()
    ///     .leased(Duration::from_secs(10))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("long job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// for _ in 0..3 {
    ///     clock.advance(Duration::from_secs(9));
    ///     tx.renew()?;
    /// }
    /// assert!(queue.is_empty());
    /// assert!(tx.try_commit().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if an item was taken back: this transaction cannot commit any more.
    pub fn renew(&self) -> Result<(), Expired> {
        self.open.get().seat().assert_not_lent();
        let renewed = self.open.get().side().renew();
        renewed.map_err(|Lost| Expired)
    }

    /// Gives a held item back, to be delivered again after a time: as long as the queue's
    /// [`Backoff`](crate::Backoff) says, or at once if it has none.
    ///
    /// As [`Transaction::retry_after`] otherwise.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.retry(tx.pop()?)?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry_after`].
    ///
    /// # Panics
    ///
    /// If the item is of another transaction.
    pub fn retry(&self, item: Item<'_, T>) -> Result<(), PushError<()>> {
        self.give_back_later(item, None)
    }

    /// Gives a held item back, to be delivered again after `delay`. Until then it is out of the way;
    /// then it is at the head of the queue.
    ///
    /// It leaves the transaction at once and for good, however that ends: what else the transaction
    /// holds or has staged is not touched. This counts as a failed delivery: an item that was delivered
    /// as often as it may be [dies](crate::Builder::max_attempts) instead. A delay that is longer than a
    /// clock can say lasts for some centuries.
    ///
    /// A closed queue waits for delayed items, as for those that are held.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// let mut handle = queue.handle();
    /// handle.push_batch(["fails", "works"])?;
    ///
    /// let tx = handle.begin();
    /// let (first, second) = (tx.pop()?, tx.pop()?);
    /// tx.retry_after(first, Duration::from_secs(60))?;
    /// assert_eq!(*second, "works");
    /// tx.commit();
    /// assert!(queue.is_empty());
    ///
    /// clock.advance(Duration::from_secs(60));
    /// let tx = handle.begin();
    /// let again = tx.pop()?;
    /// assert_eq!((*again, again.attempts()), ("fails", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded, this transaction has staged as many items as it holds,
    /// and there is no room: the item may not give its place both to a staged item and to itself. It is
    /// still held then, and goes back if the transaction is aborted.
    ///
    /// # Panics
    ///
    /// If the item is of another transaction.
    pub fn retry_after(&self, item: Item<'_, T>, delay: Duration) -> Result<(), PushError<()>> {
        self.give_back_later(item, Some(delay))
    }

    fn give_back_later(
        &self,
        item: Item<'_, T>,
        delay: Option<Duration>,
    ) -> Result<(), PushError<()>> {
        let port = self.open.get();
        let retried = port.side().retry(&port.seat().access(), item.grip, delay);
        retried.map_err(|NoRoom| PushError::Full(()))
    }

    /// Looks at the item that a pop would give, without taking it.
    ///
    /// The transaction is lent to what this returns, and nobody else is given the item meanwhile. When
    /// it is dropped the item is back at its place; no delivery is counted.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(7)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let peeked = tx.peek()?;
    /// if *peeked > 5 {
    ///     assert_eq!(peeked.take().attempts(), 1);
    /// }
    /// assert_eq!(tx.held(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::pop`].
    ///
    /// # Panics
    ///
    /// If the transaction is lent to a future, or to another [`Peek`].
    pub fn peek(&self) -> Result<Peek<'_, T>, PopError> {
        Peek::new(self.open.get())
    }

    /// Aborts: held items go back to the head of the queue, in their order; staged ones are dropped.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// tx.abort();
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(self) {
        drop(self);
    }

    /// What the queue's clock says.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn now(&self) -> std::time::Instant {
        self.open.get().side().shared().time.clock_now()
    }

    /// Lends the transaction until what is returned is dropped.
    #[cfg(feature = "tokio")]
    pub(crate) fn lend(&self) -> crate::future::Lent<'_, T> {
        crate::future::Lent::new(self.open.get())
    }

    /// This transaction as one of several that commit together.
    pub(crate) fn party(&mut self) -> &mut dyn Party {
        let port = self.open.get_mut();
        port.end_forgotten();
        port
    }

    /// The items, after [`Party::conclude`], and what is to be announced.
    pub(crate) fn into_taken(self) -> (Taken<'h, T>, Outcome) {
        let port = self.open.close();
        let outcome = port.concluded();
        (Taken::new(port, outcome), outcome)
    }
}

impl<T> fmt::Debug for Transaction<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Transaction");
        if self.open.get().seat().is_lent() {
            return debug.finish_non_exhaustive();
        }
        debug
            .field("staged", &self.staged())
            .field("held", &self.held())
            .finish()
    }
}

/// An item that a [`Transaction`] holds.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push(String::from("job"))?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// let mut job = tx.pop()?;
/// job.push('!');
/// assert_eq!(*job, "job!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Item<'t, T> {
    grip: Grip<'t, T>,
}

impl<'t, T> Item<'t, T> {
    #[inline]
    pub(crate) fn new(grip: Grip<'t, T>) -> Self {
        Self { grip }
    }

    /// How often the item was delivered, this time included: 1 at first. Each abort of a
    /// transaction that held it, by whatever way, adds one.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.begin().pop()?.attempts(), 1);
    /// assert_eq!(handle.begin().pop()?.attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempts(&self) -> u32 {
        self.grip.attempts()
    }
}

impl<T> Deref for Item<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.grip
    }
}

impl<T> DerefMut for Item<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.grip
    }
}

impl<T> fmt::Debug for Item<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("attempts", &self.grip.attempts())
            .finish_non_exhaustive()
    }
}

/// The items of one [`Transaction::pop_batch`]. All of them are held, whether iterated or not.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push(1)?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// let items = tx.pop_batch(8);
/// assert_eq!(items.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Items<'t, T> {
    held: HeldItems<'t, T>,
}

impl<'t, T> Iterator for Items<'t, T> {
    type Item = Item<'t, T>;

    fn next(&mut self) -> Option<Item<'t, T>> {
        self.held.next().map(Item::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.held.len(), Some(self.held.len()))
    }
}

impl<T> ExactSizeIterator for Items<'_, T> {}
impl<T> FusedIterator for Items<'_, T> {}

impl<T> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("len", &self.len()).finish()
    }
}
