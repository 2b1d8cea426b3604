//! What the future of a run has of its transaction.

use crate::future::Lent;
use crate::order::Order;
use crate::{Fifo, Item, PushError, Transaction};
use std::fmt;
use std::time::Duration;

/// What a task may do by the transaction in which it runs, from
/// [`WorkersBuilder::run_async`](crate::WorkersBuilder::run_async). Feature `tokio`.
///
/// A task may move between threads while it runs. So its future has, instead of the transaction, this,
/// which is lent by it until the future is ready or dropped.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{PushError, Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push(0)?;
/// let tasks = Workers::builder(&queue).tasks(1).run_async(|job, mut staging| {
///     Box::pin(async move {
///         if *job < 3 {
///             staging.push(*job + 1)?; // ready when the run is committed
///         }
///         Ok::<_, PushError<u32>>(())
///     })
/// });
/// queue.wait_idle_async().await;
/// assert_eq!(tasks.stop().await.done, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Staging<'t, T, O: Order<T> = Fifo> {
    lent: Lent<'t, T, O>,
}

impl<'t, T, O: Order<T>> Staging<'t, T, O> {
    pub(super) fn new(tx: &'t Transaction<'_, T, O>) -> Self {
        let lent = tx.lend();
        Self { lent }
    }

    /// Stages a push, as [`Transaction::push`] does. As many as the transaction holds always fit.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::bounded(1);
    /// queue.push("request")?;
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|job, mut staging| {
    ///     Box::pin(async move {
    ///         if *job == "request" {
    ///             staging.push("reply")?; // takes its place
    ///         }
    ///         Ok::<_, requeue::PushError<&str>>(())
    ///     })
    /// });
    /// queue.wait_idle_async().await;
    /// assert_eq!(queue.stats().committed, 2);
    /// # tasks.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::push`].
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        self.lent.stage(item)
    }

    /// Gives an item of the run back, to be delivered again as the queue's
    /// [`Backoff`](crate::Backoff) says; see [`Transaction::retry`].
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry`].
    ///
    /// # Panics
    ///
    /// If the item is of another transaction.
    #[track_caller]
    pub fn retry(&mut self, item: Item<'_, T>) -> Result<(), PushError<()>> {
        self.lent.retry(item, None)
    }

    /// Gives an item of the run back, to be delivered again after `delay`; see
    /// [`Transaction::retry_after`]. If the run then succeeds, the rest of it is committed.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("https://example.org/")?;
    /// queue.close();
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|page, mut staging| {
    ///     Box::pin(async move {
    ///         match page.attempts() {
    ///             1 => staging.retry_after(page, Duration::from_millis(1)), // too many requests
    ///             _ => Ok(()),
    ///         }
    ///     })
    /// });
    /// assert_eq!(tasks.join().await.done, 2);
    /// assert_eq!(queue.stats().committed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry_after`].
    ///
    /// # Panics
    ///
    /// If the item is of another transaction.
    #[track_caller]
    pub fn retry_after(&mut self, item: Item<'_, T>, delay: Duration) -> Result<(), PushError<()>> {
        self.lent.retry(item, Some(delay))
    }

    /// Gives an item of the run up: it is a [dead letter](crate::Queue::dead_letters) now, with this error;
    /// see [`Transaction::fail`].
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("https://example.org/nowhere")?;
    /// queue.close();
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|page, mut staging| {
    ///     Box::pin(async move { staging.fail(page, "not found") })
    /// });
    /// assert_eq!(tasks.join().await.done, 1);
    /// assert_eq!(queue.dead_letters().next().unwrap().error(), Some("not found"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::fail`].
    ///
    /// # Panics
    ///
    /// As for [`Transaction::fail`].
    #[track_caller]
    pub fn fail(
        &mut self,
        item: Item<'_, T>,
        error: impl fmt::Display,
    ) -> Result<(), PushError<()>> {
        self.lent.fail(item, error.to_string().into())
    }
}

impl<T, O: Order<T>> fmt::Debug for Staging<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").finish_non_exhaustive()
    }
}
