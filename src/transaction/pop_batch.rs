//! Batches of pops in a transaction.

use super::Transaction;
use crate::core::pop_batch::Batch;
use crate::future::{HoldingBatch, PopBatchAsync};
use crate::item::Items;
use crate::order::Order;
use crate::time::Wait;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Pops up to `max` items; all of them are held when the call returns. No items if nothing was ready at some
    /// point during the call.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([1, 2, 3])?;
    /// let tx = handle.begin();
    /// let sum: i32 = tx.pop_batch(10).map(|item| *item).sum();
    /// assert_eq!((sum, tx.held()), (6, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn pop_batch(&self, max: usize) -> Items<'_, T, O> {
        self.pop_batch_waiting(0, max, Wait::Never)
    }

    verb! {
        pop_batch(&self, min: usize, max: usize) -> Items<'_, T, O>,
            |wait| Items::new(self.local().gather().pop_batch_waiting(Batch::new(min, max), wait));
        blocking:
        /// Pops up to `max` items, and waits until there are at least `min` of them.
        ///
        /// Fewer than `min` (or `max`, if that is less) only if the queue is closed and nothing is ready. Items are held
        /// as they arrive, invisible to others.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// let mut handle = queue.handle();
        /// handle.push_batch([1, 2, 3])?;
        /// let tx = handle.begin();
        /// assert_eq!(tx.pop_batch_blocking(2, 10).len(), 3);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        timed: "Pops up to `max` items", "the first `min` of them",
        /// let queue = requeue::Queue::unbounded();
        /// let mut handle = queue.handle();
        /// handle.push_batch([1, 2, 3])?;
        /// let tx = handle.begin();
        popped = tx(5, 10);
        /// assert_eq!(popped.len(), 3); // fewer than 5
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        async_within(&self, min: usize, max: usize) -> PopBatchAsync<'_, T, O>, |wait| {
            let local = self.local();
            let batch = Batch::new(min, max).within(wait, &local.shared().time);
            PopBatchAsync::new(HoldingBatch { gathering: local.gather(), batch })
        }
        /// A future that pops up to `max` items, and is ready when there are at least `min` of them. It borrows the
        /// transaction until it is ready or dropped. Its output is that of [`Transaction::pop_batch_blocking`].
        ///
        /// Cancel safe: no item is lost. But each poll takes what is ready, and what was taken stays with the transaction
        /// if the future is dropped before it is ready. Nobody has seen these items then, and [`commit`](Self::commit)
        /// commits them with the others. So after a `select!` or a timeout, get all items of the transaction by
        /// [`items`](Self::items) before you commit; to wait for a batch for a limited time, use
        /// [`pop_batch_timeout_async`](Self::pop_batch_timeout_async).
        ///
        /// Poll it or drop it: a future that is woken and then neither polled nor dropped [keeps its
        /// wake-up](crate::guide::waiting#cancel-safety).
        ///
        /// ```
        /// use futures::FutureExt;
        ///
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// let mut handle = queue.handle();
        /// handle.push_batch([1, 2, 3])?;
        /// let tx = handle.begin();
        /// assert_eq!(tx.pop_batch_async(2, 2).await.len(), 2);
        /// assert!(tx.pop_batch_async(5, 10).now_or_never().is_none()); // it has taken the third item
        /// assert_eq!(tx.held(), 3);
        /// assert!(tx.commit().eq([1, 2, 3]));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        timeout_async:
        /// As [`Transaction::pop_batch_async`], but ready after `timeout` at the latest, when there may be fewer than `min`
        /// items.
        ///
        /// The time runs from this call on, by the [clock](crate::Builder::clock) of the queue; it needs no runtime. Cancel
        /// safe, as [`Transaction::pop_batch_async`].
        ///
        /// ```
        ///         ///
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// let mut handle = queue.handle();
        /// handle.push_batch([1, 2, 3])?;
        /// let tx = handle.begin();
        /// let rows = tx.pop_batch_timeout_async(5, 10, std::time::Duration::from_millis(1)).await;
        /// assert_eq!(rows.len(), 3); // all that came in time
        /// tx.commit();
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
    }

    /// All items that the transaction holds, in the order of the pops, those included that it took for futures that
    /// were dropped.
    ///
    /// ```
    /// use futures::FutureExt;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([1, 2])?;
    /// let mut tx = handle.begin();
    /// assert!(tx.pop_batch_async(5, 10).now_or_never().is_none());
    /// for mut item in tx.items() {
    ///     *item *= 10;
    /// }
    /// assert!(tx.commit().eq([10, 20]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn items(&mut self) -> Items<'_, T, O> {
        Items::new(self.open.cell_mut().held_items())
    }
}
