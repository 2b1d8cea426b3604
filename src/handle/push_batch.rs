//! Batches of pushes that are committed at once.

use super::Handle;
use crate::core::put::Put;
use crate::future::{PushBatchAsync, Pushing, User};
use crate::order::Order;
use crate::PushError;

impl<T, O: Order<T>> Handle<T, O> {
    verb! {
        push_batch(&mut self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
            |wait| self.local().push_batch(items, Put::Publish, wait);
        now:
        /// Pushes all items in one transaction, and returns their number: they become ready all at once. If the iterator
        /// panics, none is pushed.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(3);
        /// let mut handle = queue.handle();
        /// assert_eq!(handle.push_batch(1..=2)?, 2);
        /// let refused = handle.push_batch(3..=4).unwrap_err();
        /// assert_eq!(refused.into_inner(), [3, 4]); // there was room for only one of them
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] if the queue is bounded and had no room for all of them,
        /// [`PushError::Closed`] if it is closed. All items come back in their order.
        blocking:
        /// Pushes all items in one transaction, and waits until there is room for all of them.
        ///
        /// The first waiter gathers room as it becomes free, so that small pushes cannot starve a large batch.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(2);
        /// let mut handle = queue.handle();
        /// assert_eq!(handle.push_batch_blocking([1, 2])?, 2);
        /// assert!(handle.push_batch_blocking([3, 4, 5]).unwrap_err().is_full()); // can never fit
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] at once, without a wait, if there are more items than the queue's capacity: such a batch can never
        /// fit, so push it in parts; or if the items do not fit their [keys](crate::Builder::key_capacity) now.
        /// [`PushError::Closed`] if the queue is closed. All items come back in their order.
        timed: "Pushes all items in one transaction", "room for all of them",
        /// let queue = requeue::Queue::bounded(2);
        /// queue.push(1)?;
        /// let mut handle = queue.handle();
        refused = handle([2, 3]);
        /// assert_eq!(refused.unwrap_err().into_inner(), [2, 3]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] if there was no room in time, [`PushError::Closed`] if the queue is closed. All items come
        /// back in their order.
        async(&mut self, items: impl IntoIterator<Item = T>) -> PushBatchAsync<'_, T, O> {
            PushBatchAsync::new(Pushing::new(User::handle(self.cell()), items.into_iter().collect(), Default::default()))
        }
        /// A future that pushes all items in one transaction when there is room for all of them. Cancel
        /// safe: if it is dropped before it is ready, the items are dropped with it and were not pushed.
        ///
        /// Its output is that of [`Handle::push_batch_blocking`].
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(2);
        /// assert_eq!(queue.handle().push_batch_async([1, 2]).await?, 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }
}
