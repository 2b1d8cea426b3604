//! Pushes of a transaction.

use super::Transaction;
use crate::core::put::{Load, Put};
use crate::future::{Pushing, StageAsync, StageBatchAsync, User};
use crate::order::{Order, StorePlace};
use crate::time::Wait;
use crate::PushError;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Stages a push.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert!(tx.pop().is_err()); // a transaction does not read its own writes
    /// tx.commit();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded, this transaction has staged as many items as it holds, and there
    /// was no room for more at some point during the call. [`PushError::Closed`] if the queue is closed and this
    /// transaction holds no item of it. The item comes back with the error.
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[inline(always)] // the push of a transaction
    #[track_caller]
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        match self.open.cell().stage_at_once(item) {
            Ok(()) => Ok(()),
            Err(item) => self.open.cell().stage(item),
        }
    }

    verb! {
        push(&self, item: T) -> Result<(), PushError<T>>,
            |wait| self.local().put_waiting(item, Put::Stage, wait, (Default::default(), ()));
        blocking:
        /// Stages a push, and waits for room if there is none.
        ///
        /// Two transactions, or a transaction and a batch that gathers room, deadlock if each waits for room that only
        /// the end of the other would free.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(1);
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        /// tx.push_blocking(1)?;
        /// assert!(tx.push_blocking(2).unwrap_err().is_full()); // can never fit
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] at once, if the transaction has staged as many items as the queue's capacity, if the key
        /// of the item is at its [limit](crate::Builder::key_capacity), or if the queue is closed and has no room now:
        /// perhaps only transactions like this one could free some. [`PushError::Closed`] if the queue is closed and this
        /// transaction holds no item of it. The item comes back with the error.
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        timed: "Stages a push", "room",
        /// let queue = requeue::Queue::bounded(1);
        /// queue.push(1)?;
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        refused = tx(2);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] on timeout, or at once as in [`Transaction::push_blocking`]; [`PushError::Closed`] as
        /// there. The item comes back with the error.
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        async(&self, item: T) -> StageAsync<'_, T, O> { StageAsync::new(Pushing::new(User::Transaction(self.local()), item, Default::default())) }
        /// A future that stages a push when there is room. It borrows the transaction until it is ready or dropped.
        ///
        /// Its output is that of [`Transaction::push_blocking`]. Cancel safe: if it is dropped before it is
        /// ready, the item is dropped with it and was not staged.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(1);
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        /// tx.push_async("job").await?;
        /// tx.commit();
        /// assert_eq!(queue.pop()?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
    }

    verb! {
        push_batch(&self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
            |wait| self.local().push_batch(items, Put::Stage, wait);
        now:
        /// Stages all items, and returns their number. If the iterator panics, none is staged.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(3);
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        /// assert_eq!(tx.push_batch(1..=2)?, 2);
        /// assert_eq!(tx.push_batch(3..=4).unwrap_err().into_inner(), [3, 4]); // room for one of them
        /// tx.commit();
        /// assert_eq!(queue.len(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Those of [`Transaction::push`], if one of the items could not be pushed. All come back in their order.
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        blocking:
        /// Stages all items, and waits until there is room for all of them; see [`Transaction::push_blocking`].
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(2);
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        /// assert_eq!(tx.push_batch_blocking([1, 2])?, 2);
        /// assert!(tx.push_batch_blocking([3]).unwrap_err().is_full()); // can never fit
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Those of [`Transaction::push_blocking`]; `Full` at once if the items and those staged before can never fit, or
        /// the items do not fit their keys now. All come back in their order.
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        timed: "Stages all items", "room for all of them",
        /// let queue = requeue::Queue::bounded(2);
        /// queue.push(1)?;
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        refused = tx([2, 3]);
        /// assert_eq!(refused.unwrap_err().into_inner(), [2, 3]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] on timeout, otherwise those of [`Transaction::push_batch_blocking`].
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        async(&self, items: impl IntoIterator<Item = T>) -> StageBatchAsync<'_, T, O> {
            let items = items.into_iter().collect();
            StageBatchAsync::new(Pushing::new(User::Transaction(self.local()), items, Default::default()))
        }
        /// A future that stages all items when there is room for them. It borrows the transaction until it is ready or
        /// dropped.
        ///
        /// Its output is that of [`Transaction::push_batch_blocking`]. Cancel safe: if it is dropped before it is
        /// ready, the items are dropped with it and were not staged.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(2);
        /// let mut handle = queue.handle();
        /// let tx = handle.begin();
        /// assert_eq!(tx.push_batch_async([1, 2]).await?, 2);
        /// tx.commit();
        /// assert_eq!(queue.pop()?, 1);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
    }

    /// The number of staged pushes.
    ///
    /// ```
    /// let mut handle = requeue::Queue::unbounded().handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert_eq!(tx.staged(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn staged(&self) -> usize {
        self.local().staged()
    }
}

/// Pushes to places of a store: for crates that keep queues elsewhere too. They wait as those without a place do.
impl<T, O: Order<T>> Transaction<'_, T, O> {
    #[doc(hidden)]
    #[allow(private_bounds)] // an item, or a vector
    #[inline]
    #[track_caller]
    pub fn push_to<L: Load<T, O>>(
        &self,
        place: StorePlace,
        load: L,
        wait: Wait,
    ) -> Result<(), PushError<L>> {
        let mut local = self.local();
        let to = place.place(&local.shared().time);
        local.put_waiting(load, Put::Stage, wait, to).map(drop)
    }

    #[doc(hidden)]
    #[track_caller]
    pub fn push_to_async(&self, place: StorePlace, item: T) -> StageAsync<'_, T, O> {
        let local = self.local();
        let place = place.place(&local.shared().time);
        StageAsync::new(Pushing::new(User::Transaction(local), item, place))
    }

    #[doc(hidden)]
    #[track_caller]
    pub fn push_batch_to_async(
        &self,
        place: StorePlace,
        items: Vec<T>,
    ) -> StageBatchAsync<'_, T, O> {
        let local = self.local();
        let place = place.place(&local.shared().time);
        StageBatchAsync::new(Pushing::new(User::Transaction(local), items, place))
    }
}
