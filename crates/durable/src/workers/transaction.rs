//! Transactions in generic code.

use crate::order::Order;
use crate::{PushError, Transaction};
use requeue::workers::AsyncTransaction;
use std::future::{ready, Future};

/// For functions that work with queues in memory too. Commits do not block.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// # futures::executor::block_on(async {
/// use requeue::workers::AsyncTransaction;
///
/// async fn push_all<X: AsyncTransaction>(mut tx: X, items: Vec<X::Item>) -> Result<(), X::Error> {
///     for item in items {
///         tx.push(item).await?; // on an error the transaction is dropped, which aborts it
///     }
///     tx.commit().await
/// }
///
/// let jobs = store.builder("jobs").capacity(2).build()?;
/// push_all(jobs.handle().begin(), vec![1, 2]).await?;
/// assert!(push_all(jobs.begin_owned(), vec![3]).await.unwrap_err().is_full());
/// assert_eq!(jobs.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: Send + 'static, O: Order<T>> AsyncTransaction for Transaction<'_, T, O> {
    type Item = T;
    type Error = PushError<T>;

    fn push(&mut self, item: T) -> impl Future<Output = Result<(), PushError<T>>> + Send {
        ready(Transaction::push(self, item))
    }

    async fn commit(self) -> Result<(), PushError<T>> {
        self.commit_async().await?;
        Ok(())
    }

    fn abort(self) -> impl Future<Output = Result<(), PushError<T>>> + Send {
        drop(self);
        ready(Ok(()))
    }
}
