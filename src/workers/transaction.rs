//! What a pool of tasks needs of a transaction, wherever its queue is.

use crate::error::TransactionError;
use crate::order::Order;
use crate::{OwnedTransaction, Transaction};
use std::error::Error;
use std::future::{ready, Future};

/// A transaction whose queue may be anywhere: in memory, on disk, in a database.
///
/// It has what a function that is generic over queues needs to push, and to end a transaction as its run ended. Each
/// method gives a future that is `Send`, so that such a function may be spawned on any runtime. Those of the queues
/// of this crate are ready at once.
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
    /// What is pushed.
    type Item: Send;
    /// Why a push was refused, or an end failed.
    type Error: Error + Send;

    /// Stages a push: nobody sees the item before [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// If it is refused. The transaction goes on, and may still be committed.
    fn push(&mut self, item: Self::Item) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Makes the pushes visible, all at one instant, and the pops final.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, either may have happened.
    ///
    /// # Errors
    ///
    /// If it was aborted instead.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Gives back what was popped, and drops what was pushed.
    ///
    /// # Errors
    ///
    /// If the queue could not be told. What was popped is back when it notices.
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
