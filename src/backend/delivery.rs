//! Deliveries of any queue.

use super::{Backend, Settlement, Tx};
use crate::raw::{Finding, Keeper, KeptItem, KeptTransaction};
use crate::Wait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An item of any [`Backend`] that was taken, until it is acknowledged or given back: a transaction that holds one item, and
/// borrows nothing.
///
/// A delivery that is dropped has failed: its transaction is aborted, at the latest when the queue notices. For a queue in memory a
/// [`requeue::Delivery`](crate::Delivery) does the same, and costs less.
///
/// ```
/// use requeue::backend::{Backend, Delivery};
/// use requeue::{Queue, Wait};
/// use std::error::Error;
///
/// /// Works with queues in memory, on disk and in a database.
/// async fn sum<B>(queue: &B) -> Result<u32, B::Error>
/// where
///     B: Backend<Item = &'static str, Tx: 'static>,
/// {
///     let mut sum = 0;
///     while let Some(job) = Delivery::take(queue, Wait::Never).await? {
///         match job.parse::<u32>() {
///             Ok(number) => {
///                 sum += number;
///                 job.ack().await?;
///             }
///             Err(_) if job.attempts() == 1 => job.nack().await?,
///             Err(error) => job.fail(error).await?,
///         }
///     }
///     Ok(sum)
/// }
///
/// # futures::executor::block_on(async {
/// let queue = Queue::unbounded();
/// queue.push_batch(["7", "seven", "9"])?;
/// assert_eq!(sum(&queue).await?, 16);
/// assert_eq!(queue.dead_letters().next().unwrap().attempts, 2);
/// # Ok::<(), Box<dyn Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "a delivery that is dropped has failed"]
pub struct Delivery<X: Tx + 'static> {
    item: KeptItem<X>,
    tx: KeptTransaction<X>,
    keeper: Keeper<X>,
}

impl<X: Tx + 'static> Delivery<X> {
    /// Takes an item. `None`: none was ready in time, or the queue is closed and nothing is left.
    ///
    /// Cancel safe: if the future is dropped before it is ready, it has taken nothing.
    ///
    /// # Errors
    ///
    /// If no item could be taken.
    pub async fn take<B>(queue: &B, wait: Wait) -> Result<Option<Self>, X::Error>
    where
        B: Backend<Tx = X, Item = X::Item, Error = X::Error>,
    {
        let keeper = Keeper::new(queue.begin(None));
        let mut items = keeper.find(pop::<B>(1, wait)).await?;
        Ok(items.pop().map(|item| Self {
            item,
            tx: keeper.user(),
            keeper,
        }))
    }

    /// The number of deliveries of the item, this one included.
    pub fn attempts(&self) -> u32 {
        self.item.attempts()
    }

    /// The last error with which a delivery of the item has failed before, where the queue keeps it: one in memory does if it is
    /// [tracked](crate::Builder::tracked), one on disk or in `PostgreSQL` always does.
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.tx.tx().last_error(self.item.held())
    }

    /// The transaction of the delivery: what is pushed there becomes visible when the item is acknowledged.
    ///
    /// ```
    /// use requeue::backend::Delivery;
    /// use requeue::{Queue, Wait};
    ///
    /// # futures::executor::block_on(async {
    /// let queue = Queue::unbounded();
    /// queue.push(3)?;
    /// let job = Delivery::take(&queue, Wait::Forever).await?.unwrap();
    /// job.transaction().push(*job - 1)?;
    /// job.ack().await?;
    /// assert_eq!(queue.pop()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn transaction(&self) -> &X::View {
        &self.tx
    }

    /// Acknowledges the delivery: the item is gone from the queue.
    ///
    /// # Errors
    ///
    /// If that could not be committed: the item is delivered again, or, if a store has failed meanwhile, it may have been committed.
    pub async fn ack(self) -> Result<(), X::Error> {
        let Self { item, tx, keeper } = self;
        drop((item, tx));
        commit(keeper).await
    }

    /// Gives the item back as a failed delivery, to be delivered again as soon as the rules of the queue allow it.
    ///
    /// # Errors
    ///
    /// If that could not be stored: the item is given back when the queue notices.
    pub async fn nack(self) -> Result<(), X::Error> {
        self.settle(Settlement::Retry).await
    }

    /// Gives the item back as a failed delivery, to be delivered again after `delay`.
    ///
    /// # Errors
    ///
    /// As for [`nack`](Self::nack).
    pub async fn nack_after(self, delay: Duration) -> Result<(), X::Error> {
        self.settle(Settlement::RetryAfter(delay)).await
    }

    /// Fails the delivery: the item becomes a dead letter with this error.
    ///
    /// # Errors
    ///
    /// As for [`nack`](Self::nack).
    pub async fn fail(self, error: impl fmt::Display) -> Result<(), X::Error> {
        let error = error.to_string();
        self.settle(Settlement::Fail(error.into())).await
    }

    async fn settle(self, settlement: Settlement) -> Result<(), X::Error> {
        let Self { item, tx, keeper } = self;
        item.settle(&tx, settle_by(settlement))?;
        drop(tx);
        commit(keeper).await
    }
}

/// Commits the transaction of a delivery whose item is gone.
async fn commit<X: Tx + 'static>(keeper: Keeper<X>) -> Result<(), X::Error> {
    let tx = keeper.into_value();
    let mut tx = tx.expect("the delivery alone has the transaction");
    tx.commit().await.map(drop)
}

deref!([X: Tx + 'static] Delivery<X> => X::Item, |delivery| &delivery.item, &mut delivery.item);

fmt_as_item!(Debug, [X: Tx + 'static] Delivery<X> => X::Item);

/// Settles an item, of any lifetime.
pub(crate) fn settle_by<X: Tx>(
    settlement: Settlement,
) -> impl for<'t> FnOnce(&'t X, X::Held<'t>) -> Result<(), X::Refused> {
    move |tx, held| tx.settle(held, settlement)
}

/// Pops up to `max` items of a transaction.
pub(crate) fn pop<B: Backend>(
    max: usize,
    wait: Wait,
) -> impl for<'t> FnOnce(&'t B::Tx) -> Finding<'t, B::Tx, B::Error> {
    move |tx| Box::pin(tx.pop_batch(max, wait))
}
