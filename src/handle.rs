//! A handle: one worker's access to a queue.

mod pop_batch;

use crate::core::pool::{CheckedOut, Pool};
use crate::core::put::Put;
use crate::core::shared::Shared;
use crate::core::{CellOf, Local};
use crate::future::{PushAsync, PushBatchAsync, TakeAsync};
use crate::order::Order;
use crate::raw::{Exclusive, Open};
use crate::{Expired, Fifo, OwnedTransaction, PopError, PushError, Transaction, Unleased};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// One worker's access to a [`Queue`](crate::Queue), with its transactions.
///
/// A handle belongs to one thread or task at a time, and may move between them. It owns a reference to its queue.
/// Dropping it loses nothing: committed items stay in the queue, and a forgotten open transaction aborts.
///
/// Items pushed through one handle are popped in that order, except after aborts.
///
/// Every method first cleans up after values of this handle leaked by [`std::mem::forget`]: a transaction is aborted,
/// the remaining items of a [`Taken`](crate::Taken) are dropped, and a future is removed from the wait queue.
///
/// # Waiting
///
/// Threads and tasks share one wait queue, on any async runtime, and are woken in FIFO order, one per item. A
/// newcomer that waits can overtake a woken waiter at most once: that waiter keeps its place, and when it is woken
/// again, newcomers that wait leave the item to it. A plain [`pop`](Self::pop) does not wait; it yields the processor
/// a few times while such a waiter has been woken. A wait spins for a few microseconds at its beginning and then uses
/// no processor time.
///
/// A timeout of zero tries once, [`Duration::MAX`] waits forever. Success takes precedence over an elapsed timeout.
///
/// The futures are cancel safe: if one is dropped, no item is lost, and a pending wake-up is passed to the next
/// waiter. They need no particular runtime.
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
/// Cloning a handle makes another handle of the same queue, with the same name if it has one, and shares nothing
/// else.
///
/// Two threads cannot use one handle at once, but each may have its own:
///
/// ```compile_fail
/// let handle = requeue::Queue::unbounded().handle();
/// let shared = &handle;
/// std::thread::scope(|scope| {
///     scope.spawn(|| shared.push(1)); // needs `&mut`
/// });
/// ```
///
/// ```
/// let handle = requeue::Queue::unbounded().handle();
/// std::thread::scope(|scope| {
///     for number in 0..2 {
///         let mut own = handle.clone();
///         scope.spawn(move || own.push(number));
///     }
/// });
/// assert_eq!(handle.queue().len(), 2);
/// ```
pub struct Handle<T, O: Order<T> = Fifo> {
    /// Used only through `&mut`, so the handle may be `Sync`.
    cell: Exclusive<CellOf<T, O>>,
    shared: Arc<Shared<T, O>>,
    /// The pool of handles for owned transactions of the queue.
    pool: Arc<Pool<T, O>>,
    name: Option<Arc<str>>,
}

impl<T, O: Order<T>> Handle<T, O> {
    pub(crate) fn new(
        shared: Arc<Shared<T, O>>,
        pool: Arc<Pool<T, O>>,
        name: Option<Arc<str>>,
    ) -> Self {
        let cell = Local::in_cell(Arc::clone(&shared), name.clone());
        Self {
            cell: Exclusive::new(cell),
            shared,
            pool,
            name,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    pub(crate) fn pool(&self) -> &Arc<Pool<T, O>> {
        &self.pool
    }

    #[inline]
    pub(crate) fn cell(&mut self) -> &mut CellOf<T, O> {
        self.cell.get_mut()
    }

    /// The handle's local state, after the cleanup of a forgotten transaction or future.
    #[inline]
    pub(crate) fn local(&mut self) -> &mut Local<T, O> {
        self.cell().settled()
    }

    /// Pushes an item; it is ready at once. Wait-free, or lock-free on a bounded queue, if the queue has no other
    /// options and no waiters: see [Progress](crate::guide::performance#progress).
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
    /// [`PushError::Full`] if the queue is bounded and had no room at some point during the call,
    /// [`PushError::Closed`] if it is closed. The item comes back with the error.
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few stores, beyond the compiler's estimate
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        self.cell().push(item)
    }

    /// Pushes an item, and waits for room if there is none. Waiters are served in FIFO order.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(1);
    /// let mut handle = queue.handle();
    /// handle.push_blocking(1)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| handle.push_blocking(2));
    ///     assert_eq!(queue.pop(), Ok(1));
    /// });
    /// assert_eq!(queue.pop(), Ok(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Closed`] with the item, if the queue is closed; [`PushError::Full`] at once, if its key is at its
    /// [limit](crate::Builder::key_capacity).
    pub fn push_blocking(&mut self, item: T) -> Result<(), PushError<T>> {
        self.push_waiting(item, None)
    }

    /// Pushes an item, and waits up to `timeout` for room.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::bounded(1).handle();
    /// handle.push(1)?;
    /// let refused = handle.push_timeout(2, Duration::from_millis(1)).unwrap_err();
    /// assert!(refused.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] with the item, on timeout; [`PushError::Closed`] with the item, if the queue is closed.
    pub fn push_timeout(&mut self, item: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.push_waiting(item, Some(timeout))
    }

    fn push_waiting(&mut self, item: T, timeout: Option<Duration>) -> Result<(), PushError<T>> {
        let mut local = self.local();
        Local::put_waiting(&mut local, item, Put::Publish, timeout, Shared::register)
    }

    /// A future that pushes the item when there is room. Cancel safe: if it is dropped before it is
    /// ready, the item is dropped with it and was not pushed.
    ///
    /// Its output is that of [`Handle::push_blocking`].
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::bounded(1);
    /// queue.handle().push_async("job").await?;
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn push_async(&mut self, item: T) -> PushAsync<'_, T, O> {
        PushAsync::new(self.cell(), item)
    }

    /// Pops an item; the pop is committed at once. Lock-free if the queue has no options except a bound, and no
    /// waiters for room: see [Progress](crate::guide::performance#progress).
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
    /// [`PopError::Empty`] if nothing was ready at some point during the call, or nothing [may be
    /// taken](PopError::Empty) now; [`PopError::Closed`] if nothing can become ready any more.
    #[inline]
    pub fn pop(&mut self) -> Result<T, PopError> {
        self.cell().pop()
    }

    /// Pops an item, and waits for one if there is none.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// std::thread::scope(|scope| {
    ///     let popped = scope.spawn(|| handle.pop_blocking());
    ///     queue.push("job").unwrap();
    ///     assert_eq!(popped.join().unwrap(), Ok("job"));
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if nothing can become ready any more.
    pub fn pop_blocking(&mut self) -> Result<T, PopError> {
        self.local().pop_waiting(None)
    }

    /// Pops an item, and waits up to `timeout` for one.
    ///
    /// ```
    /// use requeue::PopError;
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
    /// assert_eq!(handle.pop_timeout(Duration::from_millis(1)), Err(PopError::Empty));
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout; [`PopError::Closed`] if nothing can become ready any more.
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopError> {
        self.local().pop_waiting(Some(timeout))
    }

    /// A future that pops an item when there is one. Cancel safe: it pops only when it completes.
    ///
    /// Its output is that of [`Handle::pop_blocking`].
    ///
    /// Poll it or drop it: a future that is woken and then neither polled nor dropped [keeps its
    /// wake-up](crate::guide::waiting#cancel-safety).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// assert_eq!(queue.handle().pop_async().await?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn pop_async(&mut self) -> TakeAsync<'_, T, O> {
        TakeAsync::new(self.cell())
    }

    /// Pushes all items in one transaction, and returns their number: they become ready all at once. If the iterator
    /// panics, none is pushed.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(3);
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.push_batch(1..=2)?, 2);
    /// let refused = handle.push_batch(3..=4).unwrap_err();
    /// assert_eq!(refused.into_inner(), [3, 4]); // there was room for only one of them
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded and had no room for all of them,
    /// [`PushError::Closed`] if it is closed. All items come back in their order.
    pub fn push_batch(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.cell().push_batch_now(items)
    }

    /// Pushes all items in one transaction, and waits until there is room for all of them.
    ///
    /// The first waiter gathers room as it becomes free, so that small pushes cannot starve a large batch.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(2);
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.push_batch_blocking([1, 2])?, 2);
    /// assert!(handle.push_batch_blocking([3, 4, 5]).unwrap_err().is_full()); // can never fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] at once, if the items exceed the queue's capacity or the room of their keys;
    /// [`PushError::Closed`] if it is closed. All items come back in their order.
    pub fn push_batch_blocking(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = items.into_iter().collect();
        self.cell().push_batch(items, None, Shared::register_nth)
    }

    /// As [`Handle::push_batch_blocking`], but waits no longer than `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::bounded(2);
    /// queue.push(1)?;
    /// let refused = queue.handle().push_batch_timeout([2, 3], Duration::from_millis(1));
    /// assert_eq!(refused.unwrap_err().into_inner(), [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if there was no room in time, [`PushError::Closed`] if the queue is closed. All items come
    /// back in their order.
    pub fn push_batch_timeout(
        &mut self,
        items: impl IntoIterator<Item = T>,
        timeout: Duration,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = items.into_iter().collect();
        let cell = self.cell();
        cell.push_batch(items, Some(timeout), Shared::register_nth)
    }

    /// A future that pushes all items in one transaction when there is room for all of them. Cancel
    /// safe: if it is dropped before it is ready, the items are dropped with it and were not pushed.
    ///
    /// Its output is that of [`Handle::push_batch_blocking`].
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::bounded(2);
    /// assert_eq!(queue.handle().push_batch_async([1, 2]).await?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn push_batch_async(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> PushBatchAsync<'_, T, O> {
        PushBatchAsync::new(self.cell(), items.into_iter().collect())
    }

    /// Calls `inspect` with the item that a pop would return, and puts the item back in its place. No delivery is
    /// counted; while `inspect` runs the item is not delivered to others.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(String::from("job"))?;
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.peek_with(|job| job.len())?, 3);
    /// assert_eq!(handle.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::pop`].
    pub fn peek_with<R>(&mut self, inspect: impl FnOnce(&T) -> R) -> Result<R, PopError> {
        let tx = self.begin();
        let peeked = tx.peek()?;
        Ok(inspect(&peeked))
    }

    /// The name that was given to the handle by [`Queue::named_handle`](crate::Queue::named_handle).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert_eq!(queue.named_handle("mailer").name(), Some("mailer"));
    /// assert_eq!(queue.handle().name(), None);
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
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
    pub fn begin(&mut self) -> Transaction<'_, T, O> {
        Transaction::new(Open::new(self.cell()))
    }

    /// Begins a transaction that owns this handle, and may be stored, sent, and committed or aborted elsewhere. The
    /// handle is dropped with it; [`Queue::begin_owned`](crate::Queue::begin_owned) reuses handles.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let delivery = queue.named_handle("consumer 7").begin_owned();
    /// delivery.pop()?;
    /// assert_eq!(queue.held()[0].worker.as_deref(), Some("consumer 7"));
    /// std::thread::spawn(|| delivery.commit()).join().unwrap();
    /// assert!(queue.held().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_owned(self) -> OwnedTransaction<T, O> {
        OwnedTransaction::begin(self.check_out())
    }

    /// Converts the handle for a transaction that owns it.
    pub(crate) fn check_out(self) -> CheckedOut<T, O> {
        CheckedOut::new(Box::new(self.cell.into_inner()), None)
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
    /// The error of `work`.
    ///
    /// A queue that [leases](crate::Builder::leased) its items has [`try_transact`](Self::try_transact) instead.
    pub fn transact<R, E>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        O: Unleased,
    {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.commit();
        Ok(result)
    }

    /// Runs `work` in a transaction, as [`transact`](Self::transact) does, and commits unless an item that `work`
    /// took was taken back.
    ///
    /// ```
    /// use std::error::Error;
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder().leased(Duration::from_secs(60)).build();
    /// queue.push(6)?;
    /// let done = queue.handle().try_transact(|tx| Ok::<_, Box<dyn Error>>(*tx.pop()? * 7))?;
    /// assert_eq!(done, 42);
    /// # Ok::<(), Box<dyn Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `work`, or [`Expired`] if an item was taken back; then the transaction is aborted.
    pub fn try_transact<R, E: From<Expired>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    ) -> Result<R, E> {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.try_commit()?;
        Ok(result)
    }
}

impl<T, O: Order<T>> Clone for Handle<T, O> {
    fn clone(&self) -> Self {
        let (shared, pool) = (Arc::clone(&self.shared), Arc::clone(&self.pool));
        Self::new(shared, pool, self.name.clone())
    }
}

/// A panic leaves a handle in a consistent state, as any other end of a transaction does.
impl<T, O: Order<T>> UnwindSafe for Handle<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for Handle<T, O> {}

impl<T, O: Order<T>> fmt::Debug for Handle<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
