//! A handle: one worker's access to a queue.

use crate::raw::{Lanes, Open, Seat};
use crate::{PopError, PushError, Transaction};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// One worker's access to a [`Queue`](crate::Queue), with its transactions.
///
/// A handle belongs to one thread or task at a time, and may move between them. It owns a reference
/// to its queue. Dropping it loses nothing: committed items stay in the queue, an open transaction
/// that was forgotten aborts.
///
/// Items pushed through one handle leave in that order, aborts apart.
///
/// Every method first ends what a forgotten transaction of this handle left: its items go back. What
/// was left of a forgotten [`Taken`](crate::Taken) is dropped.
///
/// # Example
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut handle = queue.handle();
/// handle.push_batch(["a", "b"])?;
/// let job = handle.transact(|tx| tx.pop().map(|job| *job))?;
/// assert_eq!(job, "a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A handle cannot be used by two threads at once, but each may have its own:
///
/// ```compile_fail
/// let mut handle = requeue::Queue::unbounded().handle();
/// let shared = &handle;
/// std::thread::scope(|scope| {
///     scope.spawn(|| format!("{shared:?}"));
/// });
/// # handle.push(1).unwrap();
/// ```
pub struct Handle<T> {
    seat: Seat<T>,
}

impl<T> Handle<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
        Self {
            seat: Seat::new(lanes),
        }
    }

    /// Pushes an item; it is ready at once. Wait-free but for allocation.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push(1)?;
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None: a queue without bounds always has room.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        self.seat.settle();
        self.seat.push(item);
        Ok(())
    }

    /// Pops an item; the pop is committed at once. Lock-free.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push(1)?;
    /// assert_eq!(handle.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if at some instant during the call nothing was ready.
    #[inline]
    pub fn pop(&mut self) -> Result<T, PopError> {
        self.seat.settle();
        self.seat.pop().ok_or(PopError::Empty)
    }

    /// Pushes all items in one transaction, and returns how many they were: they become ready all
    /// at once. If the iterator panics, none does.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// assert_eq!(queue.handle().push_batch(1..=3)?, 3);
    /// assert_eq!(queue.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None: a queue without bounds always has room.
    pub fn push_batch(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut tx = Open::new(&mut self.seat);
        tx.seat_mut().stage_all(items.into_iter());
        let count = tx.seat().staged();
        tx.close().commit();
        Ok(count)
    }

    /// Pops up to `max` items into `items` and returns how many they were; the pops are committed at
    /// once. 0 if `max` is 0, or if at some instant during the call nothing was ready.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch(1..=3)?;
    /// let mut items = Vec::new();
    /// assert_eq!(handle.pop_batch(2, &mut items), 2);
    /// assert_eq!(items, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_batch(&mut self, max: usize, items: &mut Vec<T>) -> usize {
        self.seat.settle();
        self.seat.pop_batch(max, items)
    }

    /// Begins a transaction.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert!(queue.is_empty());
    /// tx.commit();
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_, T> {
        Transaction::new(Open::new(&mut self.seat))
    }

    /// Runs `work` in a transaction: `Ok` commits and drops the held items, `Err` and a panic abort.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push(6)?;
    ///
    /// let failed: Result<(), &str> = handle.transact(|tx| {
    ///     let _job = tx.pop().map_err(|_| "nothing to do")?;
    ///     Err("cannot be done now")
    /// });
    /// assert!(failed.is_err());
    ///
    /// let done = handle.transact(|tx| tx.pop().map(|job| *job * 7));
    /// assert_eq!(done, Ok(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of `work`.
    pub fn transact<R, E>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.commit();
        Ok(result)
    }
}

/// A panic leaves a handle as whole as any other end of a transaction does.
impl<T> UnwindSafe for Handle<T> {}
impl<T> RefUnwindSafe for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
