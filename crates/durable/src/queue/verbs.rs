//! The verbs of queues and handles: each is a transaction of its own.

use super::DurableQueue;
use crate::call::{now, Caller};
use crate::error::{PopError, PushError, StoreError};
use crate::handle::Handle;
use crate::order::{Load, Many, One, Order, Place};
use crate::queue::priority::Push;
use crate::ticket::Tickets;
use crate::Transaction;
use requeue::Wait;
use std::future::Future;

pub(super) async fn push<T: Send + 'static, O: Order<T>, L: Load>(
    tx: Transaction<'_, T, O>,
    load: L::Of<T>,
    place: Option<Place>,
    caller: Caller,
) -> Result<Tickets, PushError<L::Of<T>>> {
    let tx = tx.at_once()?;
    let staging = tx.stage::<L>(load, place, caller);
    let tickets = staging.await?;
    tx.commit_by(caller).await?;
    Ok(tickets)
}

async fn pop<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    caller: Caller,
) -> Result<T, PopError> {
    let taking = tx.take(caller);
    taking.await?;
    let mut taken = tx.commit_by(caller).await?;
    Ok(taken.next().expect("it held an item"))
}

async fn pop_batch<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    min: usize,
    max: usize,
    caller: Caller,
) -> Result<Vec<T>, StoreError> {
    let taking = tx.take_batch(min, max, caller);
    drop(taking.await?);
    Ok(tx.commit_by(caller).await?.collect())
}

macro_rules! verbs {
    ($type:ident, [$($by:tt)+], $begin:expr, $on:ident: $(#[$own:meta])*) => {
        /// Each call is a transaction of its own, and durable when it returns: see [`Durability`](crate::Durability).
        ///
        /// Pushes return [`PushError::Full`], [`Closed`](PushError::Closed), [`TooHeavy`](PushError::TooHeavy),
        /// [`Duplicate`](PushError::Duplicate) or [`Codec`](PushError::Codec) with the items, or [`PushError::Store`]; pops return [`PopError`]. A pop whose commit fails gives its items back to the head.
        impl<T: Send + 'static, O: Order<T>> $type<T, O> {
            requeue::verb! {
                push($($by)+ self, item: T) -> Result<(), PushError<T>>,
                    |wait| self.with_tx(|tx| {
                        let tx = tx.at_once()?;
                        tx.stage_now(item, None, wait)?;
                        Ok(drop(tx.commit()?))
                    });
                now:
                /// Pushes an item.
                ///
                /// # Errors
                ///
                /// [`PushError::Full`] if there is no room, and as all pushes.
                blocking:
                /// Pushes an item; waits for room.
                ///
                /// # Errors
                ///
                /// As all pushes.
                timed: "Pushes an item", "room",
                /// # let directory = tempfile::tempdir()?;
                /// # let store = requeue_durable::Store::open(directory.path())?;
                /// let jobs = store.builder("jobs").capacity(1).build()?;
                /// jobs.push(7)?;
                $(#[$own])*
                refused = $on(8);
                /// assert!(refused.unwrap_err().is_full());
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                ///
                /// [`PushError::Full`] after the timeout, and as all pushes.
                async($($by)+ self, item: T) -> impl Future<Output = Result<(), PushError<T>>> + Send + '_ {
                    let pushing = Push::push::<One>(self, item, None, Caller::Task);
                    async { pushing.await.map(drop) }
                }
                /// Pushes an item in a task; waits for room.
                ///
                /// # Errors
                ///
                /// As all pushes.
                ///
                /// # Cancel safety
                ///
                /// Dropping the future drops the item, or leaves its commit to the log, as
                /// [`commit_async`](Transaction::commit_async) says.
            }

            requeue::verb! {
                push_batch($($by)+ self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
                    |wait| {
                        let pushing = Push::push::<Many>(self, items.into_iter().collect(), None, Caller::Thread(wait));
                        now(pushing).map(|tickets| tickets.len())
                    };
                now:
                /// Pushes all items in one transaction, or none; returns how many.
                ///
                /// # Errors
                ///
                /// As all pushes, if one of the items could not be pushed. All come back in their order.
                blocking:
                /// As [`push_batch`](Self::push_batch); waits for room.
                ///
                /// # Errors
                ///
                /// As all pushes.
                timed: "Pushes all items in one transaction, or none", "room for all of them",
                /// # let directory = tempfile::tempdir()?;
                /// # let store = requeue_durable::Store::open(directory.path())?;
                /// let jobs = store.builder("jobs").capacity(2).build()?;
                /// jobs.push(7)?;
                $(#[$own])*
                refused = $on([8, 9]);
                /// assert_eq!(refused.unwrap_err().into_inner(), Some(vec![8, 9]));
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                ///
                /// As [`push_batch`](Self::push_batch).
                async($($by)+ self, items: impl IntoIterator<Item = T>) -> impl Future<Output = Result<usize, PushError<Vec<T>>>> + Send + '_ {
                    let pushing = Push::push::<Many>(self, items.into_iter().collect(), None, Caller::Task);
                    async { pushing.await.map(|tickets| tickets.len()) }
                }
                /// As [`push_batch`](Self::push_batch), in a task; waits for room.
                ///
                /// # Errors
                ///
                /// As all pushes.
            }

            requeue::verb! {
                pop($($by)+ self) -> Result<T, PopError>, |wait| self.with_tx(|tx| now(pop(tx, Caller::Thread(wait))));
                now:
                /// Pops the next item.
                ///
                /// # Errors
                ///
                /// [`PopError::Empty`] if nothing is ready, and as all pops.
                blocking:
                /// Pops the next item; waits for one.
                ///
                /// # Errors
                ///
                /// As all pops.
                timed: "Pops the next item", "one",
                /// # let directory = tempfile::tempdir()?;
                /// # let store = requeue_durable::Store::open(directory.path())?;
                /// let jobs = store.queue::<u32>("jobs")?;
                $(#[$own])*
                popped = $on();
                /// assert!(popped.unwrap_err().is_empty());
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                ///
                /// [`PopError::Empty`] after the timeout, and as all pops.
                async($($by)+ self) -> impl Future<Output = Result<T, PopError>> + Send + '_ {
                    pop($begin(self), Caller::Task)
                }
                /// Pops the next item in a task; waits for one.
                ///
                /// # Errors
                ///
                /// As all pops.
                ///
                /// # Cancel safety
                ///
                /// Dropping the future gives the item back, or leaves its commit to the log, as
                /// [`commit_async`](Transaction::commit_async) says; then the item is lost.
            }

            /// Pops up to `max` items in one transaction; none if nothing is ready.
            ///
            /// # Errors
            ///
            /// If an item could not be read or the commit failed; the items are back at the head.
            pub fn pop_batch($($by)+ self, max: usize) -> Result<Vec<T>, StoreError> {
                self.pop_batch_waiting(1, max, Wait::Never)
            }

            requeue::verb! {
                pop_batch($($by)+ self, min: usize, max: usize) -> Result<Vec<T>, StoreError>,
                    |wait| self.with_tx(|tx| now(pop_batch(tx, min, max, Caller::Thread(wait))));
                blocking:
                /// As [`pop_batch`](Self::pop_batch); waits for the first `min`, and returns less only if the queue is closed.
                ///
                /// # Errors
                ///
                /// As [`pop_batch`](Self::pop_batch).
                timed: "Pops up to `max` items in one transaction", "the first `min` of them",
                /// # let directory = tempfile::tempdir()?;
                /// # let store = requeue_durable::Store::open(directory.path())?;
                /// let jobs = store.queue("jobs")?;
                /// jobs.push(7)?;
                $(#[$own])*
                popped = $on(2, 10);
                /// assert_eq!(popped?, [7]); // fewer than 2
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                ///
                /// As [`pop_batch`](Self::pop_batch).
                async($($by)+ self, min: usize, max: usize) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send + '_ {
                    pop_batch($begin(self), min, max, Caller::Task)
                }
                /// As [`pop_batch_blocking`](Self::pop_batch_blocking), in a task.
                ///
                /// # Errors
                ///
                /// As [`pop_batch`](Self::pop_batch).
            }
        }
    };
}

verbs! { Handle, [&mut], Handle::begin, handle:
    /// let mut handle = jobs.handle();
}
verbs! { DurableQueue, [&], DurableQueue::begin_owned, jobs: }
