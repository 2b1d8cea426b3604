//! Transactions: pops that become final, and pushes that become visible, at the commit.

use crate::raw::{HeldItems, Open, Party};
use crate::{PopError, PushError, Taken};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Deref, DerefMut};

/// A transaction of one [`Handle`](crate::Handle).
///
/// What it pops is *held*: nobody else sees it. What it pushes is *staged*: nobody sees it, this
/// transaction neither. [`commit`](Self::commit) makes all pushes visible at once and the pops
/// final. Dropping the transaction, by an early return or a panic too, aborts it: held items go
/// back to the head of the queue in their order, staged ones are dropped. A transaction that is
/// forgotten stays open until its handle is used again or dropped.
///
/// An abort allocates nothing, blocks nobody and cannot fail. Changes made to held items stay.
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
    open: Open<'h, T>,
}

impl<'h, T> Transaction<'h, T> {
    #[inline]
    pub(crate) fn new(open: Open<'h, T>) -> Self {
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
    /// None: a queue without bounds always has room.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.open.seat().stage(item);
        Ok(())
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
    /// transaction holds or has staged is not ready.
    #[inline]
    pub fn pop(&self) -> Result<Item<'_, T>, PopError> {
        let held = self.open.seat().hold();
        held.map(Item::new).ok_or(PopError::Empty)
    }

    /// Takes up to `max` items; all of them are held when the call returns.
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
        Items {
            held: self.open.seat().hold_batch(max),
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
        self.open.seat().staged()
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
        self.open.seat().held()
    }

    /// Commits: the pushes become visible all at once, the pops final. Never fails, never blocks;
    /// one store, however many items were pushed.
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
    #[inline]
    #[allow(clippy::must_use_candidate)] // dropping the items is the common case
    pub fn commit(self) -> Taken<'h, T> {
        let seat = self.open.close();
        seat.commit();
        Taken::new(seat)
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

    /// This transaction as one of several that commit together.
    pub(crate) fn party(&mut self) -> &mut dyn Party {
        self.open.seat_mut()
    }

    /// The items, after [`Party::conclude`].
    pub(crate) fn into_taken(self) -> Taken<'h, T> {
        Taken::new(self.open.close())
    }
}

impl<T> fmt::Debug for Transaction<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
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
    item: &'t mut T,
    attempts: u32,
}

impl<'t, T> Item<'t, T> {
    #[inline]
    fn new((item, attempts): (&'t mut T, u32)) -> Self {
        Self { item, attempts }
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
        self.attempts
    }
}

impl<T> Deref for Item<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.item
    }
}

impl<T> DerefMut for Item<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.item
    }
}

impl<T> fmt::Debug for Item<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("attempts", &self.attempts)
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
