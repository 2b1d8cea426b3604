//! The verbs of a transaction.

use super::Transaction;
use crate::error::{PopError, PushError, StoreError};
use crate::item::{Item, Items};
use crate::order::{Order, Wait};
use requeue::DeliveryId;
use std::future::Future;
use std::time::Duration;

/// Pushes stage items, which are visible when the transaction commits. They return [`PushError::Full`],
/// [`Closed`](PushError::Closed) or [`Codec`](PushError::Codec) with the items.
impl<T: Send + 'static, O: Order<T>> Transaction<'_, T, O> {
    /// Stages an item.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if there is no room, and as all pushes.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.stage(item, None, Wait::Never).map(drop)
    }

    /// Stages an item; waits for room.
    ///
    /// # Errors
    ///
    /// As all pushes; [`PushError::Full`] if only this transaction could make room.
    pub fn push_blocking(&self, item: T) -> Result<(), PushError<T>> {
        self.stage(item, None, Wait::Forever).map(drop)
    }

    /// Stages an item; waits for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] after the timeout, and as all pushes.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.stage(item, None, Wait::For(timeout)).map(drop)
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
    pub fn push_async(
        &self,
        item: T,
    ) -> impl Future<Output = Result<(), PushError<T>>> + Send + '_ {
        let staging = self.stage_async(item, None);
        async { staging.await.map(drop) }
    }

    /// Stages all items; returns how many.
    ///
    /// # Errors
    ///
    /// As all pushes, if one of the items could not be pushed. All come back in their order; none is staged.
    pub fn push_batch(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = items.into_iter().collect();
        self.stage_batch(items, None, Wait::Never)
            .map(|tickets| tickets.len())
    }

    /// As [`push_batch`](Self::push_batch); waits for room.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_blocking(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = items.into_iter().collect();
        self.stage_batch(items, None, Wait::Forever)
            .map(|tickets| tickets.len())
    }

    /// As [`push_batch`](Self::push_batch); waits for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_timeout(
        &self,
        items: impl IntoIterator<Item = T>,
        timeout: Duration,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = items.into_iter().collect();
        self.stage_batch(items, None, Wait::For(timeout))
            .map(|tickets| tickets.len())
    }

    /// As [`push_batch`](Self::push_batch), in a task; waits for room.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_async(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> impl Future<Output = Result<usize, PushError<Vec<T>>>> + Send + '_ {
        let staging = self.stage_batch_async(items.into_iter().collect(), None);
        async { staging.await.map(|tickets| tickets.len()) }
    }

    /// Takes the next item, which is held until the transaction ends.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if nothing is ready, [`Closed`](PopError::Closed), or [`Store`](PopError::Store) if the item is not in
    /// memory and could not be read, or if its delivery [could not be written](crate::Builder::max_attempts); it is held
    /// nevertheless.
    #[inline]
    pub fn pop(&self) -> Result<Item<'_, T, O>, PopError> {
        self.hold(Wait::Never)
    }

    /// Takes the next item; waits for one.
    ///
    /// # Errors
    ///
    /// As [`pop`](Self::pop).
    pub fn pop_blocking(&self) -> Result<Item<'_, T, O>, PopError> {
        self.hold(Wait::Forever)
    }

    /// Takes the next item; waits for one for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`pop`](Self::pop).
    pub fn pop_timeout(&self, timeout: Duration) -> Result<Item<'_, T, O>, PopError> {
        self.hold(Wait::For(timeout))
    }

    /// Takes the next item in a task; waits for one.
    ///
    /// # Errors
    ///
    /// As [`pop`](Self::pop).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: an item is held, and delivered, when the future is ready.
    pub fn pop_async(&self) -> impl Future<Output = Result<Item<'_, T, O>, PopError>> + Send + '_ {
        self.hold_async()
    }

    /// Takes up to `max` items; none if nothing is ready.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an item is not in memory and could not be read, or if the deliveries could not be written; all are held
    /// nevertheless.
    pub fn pop_batch(&self, max: usize) -> Result<Items<'_, T, O>, StoreError> {
        self.hold_batch(1, max, Wait::Never)
    }

    /// As [`pop_batch`](Self::pop_batch); waits for the first `min`, and takes fewer only if the queue is closed.
    ///
    /// # Errors
    ///
    /// As [`pop_batch`](Self::pop_batch).
    pub fn pop_batch_blocking(
        &self,
        min: usize,
        max: usize,
    ) -> Result<Items<'_, T, O>, StoreError> {
        self.hold_batch(min, max, Wait::Forever)
    }

    /// As [`pop_batch`](Self::pop_batch); waits for the first `min` for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`pop_batch`](Self::pop_batch).
    pub fn pop_batch_timeout(
        &self,
        min: usize,
        max: usize,
        timeout: Duration,
    ) -> Result<Items<'_, T, O>, StoreError> {
        self.hold_batch(min, max, Wait::For(timeout))
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
    pub fn pop_batch_async(
        &self,
        min: usize,
        max: usize,
    ) -> impl Future<Output = Result<Items<'_, T, O>, StoreError>> + Send + '_ {
        self.hold_batch_async(min, max)
    }

    /// The id of the transaction, also reported by [`DurableQueue::held`](crate::DurableQueue::held): see
    /// [`requeue::Transaction::id`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push(7)?;
    /// let mut handle = jobs.handle();
    /// handle.pop()?;
    /// jobs.push(8)?;
    /// let tx = handle.begin();
    /// tx.pop()?;
    /// assert_eq!(jobs.held()[0].id, tx.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> DeliveryId {
        self.core().ram.id()
    }
}
