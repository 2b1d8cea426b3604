//! The verbs of queues and handles: each is a transaction of its own.

use super::DurableQueue;
use crate::call::{now, Caller};
use crate::error::{PopError, PushError, StoreError};
use crate::handle::{Handle, HandleState};
use crate::order::{Order, Place};
use crate::ticket::{Ticket, Tickets};
use crate::transaction::Core;
use crate::{Taken, Transaction};
use requeue::Wait;
use std::future::Future;

/// What can begin a transaction: a queue, or a handle.
pub(crate) trait Begin<T: Send + 'static, O: Order<T>>: Sized {
    /// Runs `work` in a transaction, and commits it.
    fn run<R, S, E: From<StoreError>>(
        self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
        end: impl FnOnce(R, Taken<'_, T, O>) -> S,
    ) -> Result<S, E>;
}

fn run<T: Send + 'static, O: Order<T>, R, S, E: From<StoreError>>(
    tx: Transaction<'_, T, O>,
    work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    end: impl FnOnce(R, Taken<'_, T, O>) -> S,
) -> Result<S, E> {
    let result = work(&tx)?;
    let taken = tx.commit()?;
    Ok(end(result, taken))
}

impl<T: Send + 'static, O: Order<T>> Begin<T, O> for &mut Handle<T, O> {
    fn run<R, S, E: From<StoreError>>(
        self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
        end: impl FnOnce(R, Taken<'_, T, O>) -> S,
    ) -> Result<S, E> {
        run(self.begin(), work, end)
    }
}

impl<T: Send + 'static, O: Order<T>> Begin<T, O> for &DurableQueue<T, O> {
    fn run<R, S, E: From<StoreError>>(
        self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
        end: impl FnOnce(R, Taken<'_, T, O>) -> S,
    ) -> Result<S, E> {
        self.with_state(|state: &mut HandleState<T, O>| {
            let core = state.take(|| Core::new(self, None));
            run(Transaction::of(core, state), work, end)
        })
    }
}

pub(crate) fn push<T: Send + 'static, O: Order<T>>(
    target: impl Begin<T, O>,
    item: T,
    place: Option<Place>,
    wait: Wait,
) -> Result<Ticket, PushError<T>> {
    target.run(
        |tx| now(tx.stage(item, place, Caller::Thread(wait))),
        |ticket, _| ticket,
    )
}

pub(crate) fn push_batch<T: Send + 'static, O: Order<T>>(
    target: impl Begin<T, O>,
    items: Vec<T>,
    place: Option<Place>,
    wait: Wait,
) -> Result<Tickets, PushError<Vec<T>>> {
    target.run(
        |tx| now(tx.stage_batch(items, place, Caller::Thread(wait))),
        |tickets, _| tickets,
    )
}

fn pop<T: Send + 'static, O: Order<T>>(
    target: impl Begin<T, O>,
    wait: Wait,
) -> Result<T, PopError> {
    let first = |(), mut taken: Taken<'_, T, O>| taken.next().expect("it held an item");
    target.run(|tx| now(tx.take(Caller::Thread(wait))).map(drop), first)
}

fn pop_batch<T: Send + 'static, O: Order<T>>(
    target: impl Begin<T, O>,
    min: usize,
    max: usize,
    wait: Wait,
) -> Result<Vec<T>, StoreError> {
    target.run(
        |tx| {
            drop(now(tx.take_batch(min, max, Caller::Thread(wait))));
            Ok::<_, StoreError>(())
        },
        |(), taken| taken.collect(),
    )
}

pub(crate) async fn push_async<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    item: T,
    place: Option<Place>,
) -> Result<Ticket, PushError<T>> {
    let staging = tx.stage(item, place, Caller::Task);
    let ticket = staging.await?;
    tx.commit_async().await?;
    Ok(ticket)
}

pub(crate) async fn push_batch_async<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    items: Vec<T>,
    place: Option<Place>,
) -> Result<Tickets, PushError<Vec<T>>> {
    let staging = tx.stage_batch(items, place, Caller::Task);
    let tickets = staging.await?;
    tx.commit_async().await?;
    Ok(tickets)
}

async fn pop_async<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
) -> Result<T, PopError> {
    let taking = tx.take(Caller::Task);
    taking.await?;
    let mut taken = tx.commit_async().await?;
    Ok(taken.next().expect("it held an item"))
}

async fn pop_batch_async<T: Send + 'static, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    min: usize,
    max: usize,
) -> Result<Vec<T>, StoreError> {
    let taking = tx.take_batch(min, max, Caller::Task);
    drop(taking.await);
    Ok(tx.commit_async().await?.collect())
}

macro_rules! verbs {
    ($type:ident, [$($by:tt)+], $begin:expr, $on:ident: $(#[$own:meta])*) => {
        /// Each call is a transaction of its own, and durable when it returns: see [`Durability`](crate::Durability).
        ///
        /// Pushes return [`PushError::Full`], [`Closed`](PushError::Closed) or [`Codec`](PushError::Codec) with the items, or
        /// [`PushError::Store`]; pops return [`PopError`]. A pop whose commit fails gives its items back to the head.
        impl<T: Send + 'static, O: Order<T>> $type<T, O> {
            requeue::verb! {
                push($($by)+ self, item: T) -> Result<(), PushError<T>>,
                    |wait| push(self, item, None, wait).map(drop);
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
                    async move { push_async($begin(self), item, None).await.map(drop) }
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
                    |wait| push_batch(self, items.into_iter().collect(), None, wait).map(|tickets| tickets.len());
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
                    let items = items.into_iter().collect();
                    async move { push_batch_async($begin(self), items, None).await.map(|tickets| tickets.len()) }
                }
                /// As [`push_batch`](Self::push_batch), in a task; waits for room.
                ///
                /// # Errors
                ///
                /// As all pushes.
            }

            requeue::verb! {
                pop($($by)+ self) -> Result<T, PopError>, |wait| pop(self, wait);
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
                    async move { pop_async($begin(self)).await }
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
                pop_batch(self, 1, max, Wait::Never)
            }

            requeue::verb! {
                pop_batch($($by)+ self, min: usize, max: usize) -> Result<Vec<T>, StoreError>,
                    |wait| pop_batch(self, min, max, wait);
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
                    async move { pop_batch_async($begin(self), min, max).await }
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
