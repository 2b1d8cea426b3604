//! What the run of a task owns.

use crate::backend::{Holds, Settlement, Tx};
use crate::raw::{KeptRef, User};
use crate::{Fifo, OwnedTransaction};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The item of a task's run of a [`Queue`](crate::Queue).
pub type TaskItem<T, O = Fifo> = KeptItem<OwnedTransaction<T, O>>;

/// The transaction of a task's run of a [`Queue`](crate::Queue).
pub type TaskTransaction<T, O = Fifo> = KeptTransaction<OwnedTransaction<T, O>>;

/// The item of a run of [`run_async`](super::PoolBuilder::run_on), owned by the run's future: [`TaskItem`] for a queue in
/// memory.
///
/// Dropping it does not give the item back: the pool commits or aborts the transaction of the run.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push(vec![1, 2])?;
/// queue.close();
/// let (send, mut sums) = tokio::sync::mpsc::unbounded_channel();
/// let tasks = Workers::builder(&queue).run_async(move |mut numbers, _tx| {
///     let attempts = numbers.attempts();
///     numbers.push(attempts);
///     let send = send.clone();
///     async move { send.send(numbers.iter().sum::<u32>()) }
/// });
/// assert_eq!(sums.recv().await, Some(4));
/// assert_eq!(tasks.join().await.done, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct KeptItem<X: Holds + 'static> {
    reference: KeptRef<X>,
}

impl<X: Holds + 'static> KeptItem<X> {
    pub(super) fn new(reference: KeptRef<X>) -> Self {
        Self { reference }
    }

    /// Returns how often the item was delivered, this delivery included: see [`Item::attempts`](crate::Item::attempts).
    pub fn attempts(&self) -> u32 {
        self.reference.attempts()
    }
}

impl<X: Holds + 'static> Deref for KeptItem<X> {
    type Target = X::Item;

    fn deref(&self) -> &X::Item {
        &self.reference
    }
}

impl<X: Holds + 'static> DerefMut for KeptItem<X> {
    fn deref_mut(&mut self) -> &mut X::Item {
        &mut self.reference
    }
}

/// Delegates to the item.
impl<X: Holds + 'static> fmt::Debug for KeptItem<X>
where
    X::Item: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Delegates to the item.
impl<X: Holds + 'static> fmt::Display for KeptItem<X>
where
    X::Item: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// The transaction of a run of [`run_async`](super::PoolBuilder::run_on), owned by the run's future: [`TaskTransaction`] for a
/// queue in memory.
///
/// It dereferences to what the backend [shows](Holds::View), for a queue in memory a
/// [`Transaction`](crate::Transaction), so it has all methods by `&self`, in all forms of waiting. It cannot be ended: the
/// pool commits or aborts, depending on the result of the run. Dropping it neither commits nor aborts.
///
/// An item that the run pops itself is an [`Item`](crate::Item): use `Transaction::retry(&tx, item)` for it. The methods of
/// the same names here are for the item of the run.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::bounded(1);
/// queue.push("request")?;
/// let tasks = Workers::builder(&queue).tasks(1).run_async(|job, tx| async move {
///     if *job == "request" {
///         tx.push_async("reply").await?; // takes its place
///     }
///     Ok::<_, requeue::PushError<&str>>(())
/// });
/// queue.wait_idle_async().await;
/// assert_eq!(queue.stats().committed, 2);
/// # tasks.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// The future of a run may be moved between threads while references to the item and to the transaction are in use,
/// so functions can take them:
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{PushError, Queue, TaskItem, TaskTransaction, Workers};
///
/// async fn halve(job: &TaskItem<u32>, tx: &TaskTransaction<u32>) -> Result<(), PushError<u32>> {
///     if **job > 1 {
///         tx.push_async(**job / 2).await?;
///     }
///     Ok(())
/// }
///
/// let queue = Queue::unbounded();
/// queue.push(8)?;
/// queue.close();
/// let tasks = Workers::builder(&queue).run_async(|job, tx| async move { halve(&job, &tx).await });
/// assert_eq!(tasks.join().await.done, 4); // 8, 4, 2, 1
/// # Ok::<(), PushError<u32>>(())
/// # }).unwrap();
/// ```
///
/// Several threads may use it at once, too. But their calls must not coincide: a call panics that finds another one
/// under way, as on a transaction that is [borrowed](crate::Transaction#borrowing).
pub struct KeptTransaction<X> {
    user: User<X>,
}

impl<X: Tx + 'static> KeptTransaction<X> {
    pub(super) fn new(user: User<X>) -> Self {
        Self { user }
    }

    /// Gives the item of the run back, to be delivered again after the queue's
    /// [`Backoff`](crate::Backoff); see [`Transaction::retry`](crate::Transaction::retry).
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry`](crate::Transaction::retry).
    ///
    /// # Panics
    ///
    /// As for [`Transaction::retry`](crate::Transaction::retry).
    #[track_caller]
    pub fn retry(&self, item: KeptItem<X>) -> Result<(), X::Refused> {
        self.settle(item, Settlement::Retry)
    }

    /// Gives the item of the run back, to be delivered again after `delay`; see
    /// [`Transaction::retry_after`](crate::Transaction::retry_after). If the run then succeeds, the rest of the transaction is committed.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("https://example.org/")?;
    /// queue.close();
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|page, tx| async move {
    ///     match page.attempts() {
    ///         1 => tx.retry_after(page, Duration::from_millis(1)), // too many requests
    ///         _ => Ok(()),
    ///     }
    /// });
    /// let report = tasks.join().await;
    /// assert_eq!((report.given_up, report.done), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry_after`](crate::Transaction::retry_after).
    ///
    /// # Panics
    ///
    /// As for [`Transaction::retry_after`](crate::Transaction::retry_after).
    #[track_caller]
    pub fn retry_after(&self, item: KeptItem<X>, delay: Duration) -> Result<(), X::Refused> {
        self.settle(item, Settlement::RetryAfter(delay))
    }

    /// Moves the item of the run to the [dead-letter queue](crate::Queue::dead_letters), with this error;
    /// see [`Transaction::fail`](crate::Transaction::fail).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("https://example.org/nowhere")?;
    /// queue.close();
    /// let tasks = Workers::builder(&queue)
    ///     .tasks(1)
    ///     .run_async(|page, tx| async move { tx.fail(page, "not found") });
    /// assert_eq!(tasks.join().await.given_up, 1);
    /// assert_eq!(queue.dead_letters().next().unwrap().error(), Some("not found"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::fail`](crate::Transaction::fail).
    ///
    /// # Panics
    ///
    /// As for [`Transaction::fail`](crate::Transaction::fail).
    #[track_caller]
    pub fn fail(&self, item: KeptItem<X>, error: impl fmt::Display) -> Result<(), X::Refused> {
        self.settle(item, Settlement::Fail(error.to_string().into()))
    }

    #[track_caller]
    fn settle(&self, item: KeptItem<X>, settlement: Settlement) -> Result<(), X::Refused> {
        let settle = settle_by::<X>(settlement);
        item.reference.settle(&self.user, settle)
    }
}

impl<X: Holds> Deref for KeptTransaction<X> {
    type Target = X::View;

    fn deref(&self) -> &X::View {
        self.user.view()
    }
}

impl<X: Holds> fmt::Debug for KeptTransaction<X>
where
    X::View: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptTransaction").field(&**self).finish()
    }
}

/// As a function for any lifetime.
fn settle_by<X: Tx>(
    settlement: Settlement,
) -> impl for<'t> FnOnce(&'t X, X::Held<'t>) -> Result<(), X::Refused> {
    move |tx, held| tx.settle(held, settlement)
}
