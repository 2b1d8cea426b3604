//! The trait of transactions of any queue, in memory or not.

use crate::error::TransactionError;
use crate::order::Order;
use crate::{OwnedTransaction, Transaction};
use std::error::Error;
use std::future::{ready, Future};

/// A transaction of any queue: in memory, on disk, in a database.
///
/// Generic functions can push with it and end the transaction. Each method returns a future that is `Send`, so that
/// such a function can be spawned on any runtime. The futures of this crate's queues are ready at once.
///
/// A transaction that is dropped is aborted, at the latest when its queue notices.
///
/// ```
/// # futures::executor::block_on(async {
/// use requeue::workers::AsyncTransaction;
/// use requeue::Queue;
///
/// /// Pushes all or nothing.
/// async fn push_all<X: AsyncTransaction>(mut tx: X, items: Vec<X::Item>) -> Result<(), X::Error> {
///     for item in items {
///         tx.push(item).await?; // on an error the transaction is dropped
///     }
///     tx.commit().await
/// }
///
/// let queue = Queue::bounded(2);
/// let mut handle = queue.handle();
/// push_all(handle.begin(), vec![1, 2]).await.unwrap();
/// assert!(push_all(handle.begin(), vec![3]).await.is_err());
/// assert_eq!(queue.len(), 2);
/// # });
/// ```
pub trait AsyncTransaction: Sized + Send {
    /// The type of the items.
    type Item: Send;
    /// The error of a push, a commit or an abort.
    type Error: Error + Send;

    /// Stages a push: the item is not visible before [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// If the push is refused. The transaction stays open, and can still be committed.
    fn push(&mut self, item: Self::Item) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Makes all pushes visible at once, and the pops final.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the transaction may have committed or aborted.
    ///
    /// # Errors
    ///
    /// If the transaction was aborted instead.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Gives the popped items back, and drops the pushed ones.
    ///
    /// # Errors
    ///
    /// If the queue could not be reached. The popped items are given back when it notices.
    fn abort(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

macro_rules! in_memory {
    ($transaction:ty) => {
        impl<T: Send, O: Order<T>> AsyncTransaction for $transaction {
            type Item = T;
            type Error = TransactionError<T>;

            fn push(&mut self, item: T) -> impl Future<Output = Result<(), Self::Error>> + Send {
                let staged = Transaction::push(self, item);
                ready(staged.map_err(TransactionError::Push))
            }

            fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send {
                let committed = self.try_commit().map(drop);
                ready(committed.map_err(TransactionError::Commit))
            }

            fn abort(self) -> impl Future<Output = Result<(), Self::Error>> + Send {
                drop(self);
                ready(Ok(()))
            }
        }
    };
}

in_memory!(Transaction<'_, T, O>);
in_memory!(OwnedTransaction<T, O>);
