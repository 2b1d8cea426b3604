//! Batches of pops without a handle.

use super::Queue;
use crate::core::pop_batch::Batch;
use crate::future::{TakeBatchAsync, TakingBatch, User};
use crate::order::Order;

impl<T, O: Order<T>> Queue<T, O> {
    /// Pops up to `max` items into `items` and returns their number; the pops are committed at once. 0 if `max` is 0,
    /// or if nothing was ready at some point during the call.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch(1..=3)?;
    /// let mut items = Vec::new();
    /// assert_eq!(queue.pop_batch(2, &mut items), 2);
    /// assert_eq!(items, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pop_batch(&self, max: usize, items: &mut Vec<T>) -> usize {
        self.call(|cell| cell.settled().pop_batch(max, items))
    }

    verb! {
        pop_batch(&self, min: usize, max: usize, items: &mut Vec<T>) -> usize,
            |wait| self.call(|cell| cell.settled().pop_batch_waiting(Batch::new(min, max), wait, items));
        blocking:
        /// Pops up to `max` items into `items`, and waits until there are at least `min` of them. Returns their number.
        ///
        /// Fewer than `min` (or `max`, if that is less) only if the queue is closed and drained. Items are popped as they
        /// arrive, and each pop is committed at once.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch(1..=3)?;
        /// let mut items = Vec::new();
        /// assert_eq!(queue.pop_batch_blocking(2, 10, &mut items), 3);
        /// queue.close();
        /// assert_eq!(queue.pop_batch_blocking(2, 10, &mut items), 0);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        timed: "Pops up to `max` items into `items`", "the first `min` of them",
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch(1..=3)?;
        /// let mut items = Vec::new();
        popped = queue(5, 10, &mut items);
        /// assert_eq!(popped, 3); // fewer than 5
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        async_within<'i>(&self, min: usize, max: usize, items: &'i mut Vec<T>) -> TakeBatchAsync<'i, T, O>, |wait| {
            let batch = Batch::new(min, max).within(wait, &self.shared().time);
            TakeBatchAsync::new(TakingBatch { user: User::pooled(self.pool()), batch, items })
        }
        /// A future that pops up to `max` items into `items`, and is ready when there are at least `min` of them. Its
        /// output is that of [`Queue::pop_batch_blocking`].
        ///
        /// Cancel safe: popped items are in `items` at once, and stay there if the future is dropped or forgotten early.
        /// It pops only while it is polled. It may outlive this `Queue`.
        ///
        /// Poll it or drop it: a future that is woken and then neither polled nor dropped [keeps its
        /// wake-up](crate::guide::waiting#cancel-safety).
        ///
        /// ```
        /// use futures::FutureExt;
        ///
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch(1..=3)?;
        /// let mut items = Vec::new();
        /// assert_eq!(queue.pop_batch_async(2, 2, &mut items).await, 2);
        /// assert_eq!(queue.pop_batch_async(5, 10, &mut items).now_or_never(), None);
        /// assert_eq!(items, [1, 2, 3]); // nothing is lost
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        timeout_async:
        /// As [`Queue::pop_batch_async`], but ready after `timeout` at the latest, when there may be fewer than `min` items.
        ///
        /// The time runs from this call on, by the [clock](crate::Builder::clock) of the queue; it needs no runtime. Cancel
        /// safe, as [`Queue::pop_batch_async`].
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch(1..=3)?;
        /// let (mut items, moment) = (Vec::new(), Duration::from_millis(1));
        /// assert_eq!(queue.pop_batch_timeout_async(5, 10, &mut items, moment).await, 3);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }
}
