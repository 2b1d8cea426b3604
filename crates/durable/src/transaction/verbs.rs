//! The verbs of a transaction.

use super::Transaction;
use crate::call::{now, Caller};
use crate::error::{PopError, PushError, StoreError};
use crate::item::{Item, Items};
use crate::order::{Many, One, Order};
use requeue::Wait;
use std::future::Future;

/// Pushes stage items, which are visible when the transaction commits. They return [`PushError::Full`],
/// [`Closed`](PushError::Closed), [`TooHeavy`](PushError::TooHeavy), [`Duplicate`](PushError::Duplicate) or
/// [`Codec`](PushError::Codec) with the items.
impl<T: Send + 'static, O: Order<T>> Transaction<'_, T, O> {
    requeue::verb! {
        push(&self, item: T) -> Result<(), PushError<T>>, |wait| self.stage_now(item, None, wait).map(drop);
        now:
        /// Stages an item.
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] if there is no room, and as all pushes.
        #[inline]
        blocking:
        /// Stages an item; waits for room.
        ///
        /// # Errors
        ///
        /// As all pushes; [`PushError::Full`] if only this transaction could make room.
        timed: "Stages an item", "room",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.builder("jobs").capacity(1).build()?;
        /// jobs.push(7)?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        refused = tx(8);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] after the timeout, and as all pushes.
        async(&self, item: T) -> impl Future<Output = Result<(), PushError<T>>> + Send + '_ {
            let staging = self.stage::<One>(item, None, Caller::Task);
            async { staging.await.map(drop) }
        }
        /// Stages an item in a task; waits for room.
        ///
        /// # Errors
        ///
        /// As all pushes.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future drops the item.
    }

    requeue::verb! {
        push_batch(&self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
            |wait| {
                let staging = self.stage::<Many>(items.into_iter().collect(), None, Caller::Thread(wait));
                now(staging).map(|tickets| tickets.len())
            };
        now:
        /// Stages all items; returns how many.
        ///
        /// # Errors
        ///
        /// As all pushes, if one of the items could not be pushed. All come back in their order; none is staged.
        blocking:
        /// As [`push_batch`](Self::push_batch); waits for room.
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
        timed: "Stages all items, or none", "room for all of them",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.builder("jobs").capacity(2).build()?;
        /// jobs.push(7)?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        refused = tx([8, 9]);
        /// assert_eq!(refused.unwrap_err().into_inner(), Some(vec![8, 9]));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
        async(&self, items: impl IntoIterator<Item = T>) -> impl Future<Output = Result<usize, PushError<Vec<T>>>> + Send + '_ {
            let staging = self.stage::<Many>(items.into_iter().collect(), None, Caller::Task);
            async { staging.await.map(|tickets| tickets.len()) }
        }
        /// As [`push_batch`](Self::push_batch), in a task; waits for room.
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
    }

    requeue::verb! {
        pop(&self) -> Result<Item<'_, T, O>, PopError>, |wait| now(self.hold(Caller::Thread(wait)));
        now:
        /// Takes the next item, which is held until the transaction ends.
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] if nothing is ready, [`Closed`](PopError::Closed), or [`Store`](PopError::Store) if the item is not in
        /// memory and could not be read, or if its delivery [could not be written](crate::Builder::max_attempts); it is held
        /// nevertheless.
        #[inline]
        blocking:
        /// Takes the next item; waits for one.
        ///
        /// # Errors
        ///
        /// As [`pop`](Self::pop).
        timed: "Takes the next item", "one",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.queue::<u32>("jobs")?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        popped = tx();
        /// assert!(popped.unwrap_err().is_empty());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`pop`](Self::pop).
        async(&self) -> impl Future<Output = Result<Item<'_, T, O>, PopError>> + Send + '_ { self.hold(Caller::Task) }
        /// Takes the next item in a task; waits for one.
        ///
        /// # Errors
        ///
        /// As [`pop`](Self::pop).
        ///
        /// # Cancel safety
        ///
        /// Dropping the future loses nothing: an item is held, and delivered, when the future is ready.
    }

    /// Takes up to `max` items; none if nothing is ready.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an item is not in memory and could not be read, or if the deliveries could not be written; all are held
    /// nevertheless.
    pub fn pop_batch(&self, max: usize) -> Result<Items<'_, T, O>, StoreError> {
        now(self.hold_batch(1, max, Caller::Thread(Wait::Never)))
    }

    requeue::verb! {
        pop_batch(&self, min: usize, max: usize) -> Result<Items<'_, T, O>, StoreError>,
            |wait| now(self.hold_batch(min, max, Caller::Thread(wait)));
        blocking:
        /// As [`pop_batch`](Self::pop_batch); waits for the first `min`, and takes fewer only if the queue is closed.
        ///
        /// # Errors
        ///
        /// As [`pop_batch`](Self::pop_batch).
        timed: "Takes up to `max` items", "the first `min` of them",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.queue("jobs")?;
        /// jobs.push(7)?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        popped = tx(2, 10);
        /// assert_eq!(popped?.len(), 1); // fewer than 2
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`pop_batch`](Self::pop_batch).
        async(&self, min: usize, max: usize) -> impl Future<Output = Result<Items<'_, T, O>, StoreError>> + Send + '_ {
            self.hold_batch(min, max, Caller::Task)
        }
        /// As [`pop_batch_blocking`](Self::pop_batch_blocking), in a task.
        ///
        /// # Errors
        ///
        /// As [`pop_batch`](Self::pop_batch).
        ///
        /// # Cancel safety
        ///
        /// Items that were taken before the future is dropped stay [held](Self::items).
    }
}
