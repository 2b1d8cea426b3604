//! What the run of a task owns.

use crate::backend::{settle_by, Holds, Settlement, Tx};
pub use crate::raw::{KeptItem, KeptTransaction};
use crate::{Fifo, OwnedTransaction};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The item of a task's run of a [`Queue`](crate::Queue).
pub type TaskItem<T, O = Fifo> = KeptItem<OwnedTransaction<T, O>>;

/// The transaction of a task's run of a [`Queue`](crate::Queue).
pub type TaskTransaction<T, O = Fifo> = KeptTransaction<OwnedTransaction<T, O>>;

fmt_as_item!(Debug, [X: Holds + 'static] KeptItem<X> => X::Item);
fmt_as_item!(Display, [X: Holds + 'static] KeptItem<X> => X::Item);

impl<X: Tx + 'static> KeptTransaction<X> {
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

    /// The last error with which a run of the item has failed before, where the queue keeps it; see
    /// [`backend::Delivery::last_error`](crate::backend::Delivery::last_error).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::builder().tracked().build();
    /// queue.push("https://example.org/")?;
    /// queue.close();
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|page, tx| async move {
    ///     match tx.last_error(&page) {
    ///         None => Err("too many requests"),
    ///         Some(error) => Ok(assert_eq!(&*error, "\"too many requests\"")),
    ///     }
    /// });
    /// assert_eq!(tasks.join().await.done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If it is the item of another run, and as for [`Transaction::last_error`](crate::Transaction::last_error).
    pub fn last_error(&self, item: &KeptItem<X>) -> Option<Arc<str>> {
        self.tx().last_error(item.held())
    }

    #[track_caller]
    fn settle(&self, item: KeptItem<X>, settlement: Settlement) -> Result<(), X::Refused> {
        let settle = settle_by::<X>(settlement);
        item.settle(self, settle)
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
