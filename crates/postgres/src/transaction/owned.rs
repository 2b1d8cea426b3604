//! Transactions bound to a queue.

use super::PgTransaction;
use crate::error::Error;
use crate::item::PgItem;
use crate::queue::PgQueue;
use requeue::workers::AsyncTransaction;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// A transaction bound to one queue, from [`PgQueue::begin`]: an [`AsyncTransaction`], as those of the queues in memory.
///
/// It derefs to its [`PgTransaction`], for all other verbs.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
/// use requeue::workers::AsyncTransaction;
/// use requeue_postgres::{PgQueue, Postgres};
///
/// /// Pushes all or nothing, to a queue in memory or in a database.
/// async fn push_all<X: AsyncTransaction>(mut tx: X, items: Vec<X::Item>) -> Result<(), X::Error> {
///     for item in items {
///         tx.push(item).await?;
///     }
///     tx.commit().await
/// }
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let numbers: PgQueue<u32> = db.queue("numbers");
/// push_all(numbers.begin().await?, vec![1, 2]).await?;
/// # Ok(()) }
/// ```
#[must_use = "a transaction that is dropped is aborted"]
pub struct OwnedTransaction<T> {
    tx: PgTransaction<'static>,
    queue: PgQueue<T>,
}

impl<T: 'static> OwnedTransaction<T> {
    pub(crate) fn new(tx: PgTransaction<'static>, queue: PgQueue<T>) -> Self {
        Self { tx, queue }
    }

    /// Takes the next item of the queue: see [`PgTransaction::pop`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop(&mut self) -> Result<Option<PgItem<T>>, Error> {
        self.tx.pop(&self.queue).await
    }

    /// Takes the next item of the queue, or waits for one: see [`PgTransaction::pop_wait`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop_wait(&mut self, timeout: Duration) -> Result<Option<PgItem<T>>, Error> {
        self.tx.pop_wait(&self.queue, timeout).await
    }

    /// Takes the next item of the queue, or waits for one until `deadline`: see [`PgTransaction::pop_deadline`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop_deadline(&mut self, deadline: Instant) -> Result<Option<PgItem<T>>, Error> {
        self.tx.pop_deadline(&self.queue, deadline).await
    }

    /// Returns the transaction.
    pub fn into_inner(self) -> PgTransaction<'static> {
        self.tx
    }
}

impl<T> Deref for OwnedTransaction<T> {
    type Target = PgTransaction<'static>;

    fn deref(&self) -> &PgTransaction<'static> {
        &self.tx
    }
}

impl<T> DerefMut for OwnedTransaction<T> {
    fn deref_mut(&mut self) -> &mut PgTransaction<'static> {
        &mut self.tx
    }
}

impl<T: Send + 'static> AsyncTransaction for OwnedTransaction<T> {
    type Item = T;
    type Error = Error;

    fn push(&mut self, item: T) -> impl Future<Output = Result<(), Error>> + Send {
        self.tx.push(&self.queue, item)
    }

    async fn commit(self) -> Result<(), Error> {
        self.tx.commit().await.map(drop)
    }

    fn abort(self) -> impl Future<Output = Result<(), Error>> + Send {
        self.tx.abort()
    }
}

debug!([T] OwnedTransaction<T>, |owned| tx: owned.tx, queue: owned.queue);
