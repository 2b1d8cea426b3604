//! Takes: deliveries that own their item.

use super::Queue;
use crate::core::delivery::Delivered;
use crate::future::{OwnedPopping, QueueTake};
use crate::order::Order;
use crate::{Delivery, PopError, Wait};
use std::future::Future;

/// Deliveries.
impl<T, O: Order<T>> Queue<T, O> {
    /// Takes an item for delivery: the returned [`Delivery`] owns it, and is acknowledged or given back.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let job = queue.take()?;
    /// assert_eq!((*job, job.attempts()), ("job", 1));
    /// drop(job); // not acknowledged
    /// let again = queue.take()?;
    /// assert_eq!(again.attempts(), 2);
    /// assert_eq!(again.ack(), "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It uses the handle of the current thread, as [`Queue::push`] does, with the progress of
    /// [`Handle::pop`](crate::Handle::pop).
    ///
    /// # Errors
    ///
    /// As for [`Queue::pop`].
    #[doc(alias("receive", "get", "consume"))]
    #[inline]
    pub fn take(&self) -> Result<Delivery<T, O>, PopError> {
        self.deliver(Wait::Never)
    }

    #[inline(always)] // the take
    fn deliver(&self, wait: Wait) -> Result<Delivery<T, O>, PopError> {
        let delivered: Result<Delivered<T, O>, _> = match self.pool.own() {
            Some(mut own) => own.take_for_delivery(wait),
            None => self.check_out().take_for_delivery(wait),
        };
        delivered.map(Delivery)
    }

    /// Takes up to `max` items: those that are ready.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch([1, 2, 3])?;
    /// let taken = queue.take_batch(2);
    /// assert!(taken.iter().map(|item| **item).eq([1, 2]));
    /// drop(taken);
    /// assert!(queue.drain().eq([1, 2, 3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_batch(&self, max: usize) -> Vec<Delivery<T, O>> {
        self.more(Vec::new(), max)
    }

    fn more(&self, mut taken: Vec<Delivery<T, O>>, max: usize) -> Vec<Delivery<T, O>> {
        taken.extend((taken.len()..max).map_while(|_| self.take().ok()));
        taken
    }

    verb! {
        take_batch(&self, max: usize) -> Result<Vec<Delivery<T, O>>, PopError>, |wait| {
            let first = (max > 0).then(|| self.deliver(wait)).transpose()?;
            Ok(self.more(Vec::from_iter(first), max))
        };
        blocking:
        /// Takes up to `max` items: it waits for the first one, and takes with it those that are ready.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch([1, 2, 3])?;
        /// assert_eq!(queue.take_batch_blocking(2)?.len(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Queue::take_blocking`].
        timed: "Takes up to `max` items", "the first one",
        /// let queue = requeue::Queue::unbounded();
        /// queue.push(1)?;
        taken = queue(10);
        /// assert_eq!(taken?.len(), 1);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Queue::take_timeout`].
        async(&self, max: usize) -> impl Future<Output = Result<Vec<Delivery<T, O>>, PopError>> {
            let queue = self.clone();
            async move {
                let first = match max {
                    0 => None,
                    _ => Some(queue.take_async().await?),
                };
                Ok(queue.more(Vec::from_iter(first), max))
            }
        }
        /// A future that takes up to `max` items, as [`Queue::take_batch_blocking`] does. Cancel safe, and borrows nothing, as
        /// [`Queue::take_async`].
        ///
        /// # Errors
        ///
        /// As for [`Queue::take_blocking`].
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push_batch([1, 2, 3])?;
        /// assert_eq!(queue.take_batch_async(2).await?.len(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    verb! {
        take(&self) -> Result<Delivery<T, O>, PopError>, |wait| self.deliver(wait);
        blocking:
        /// Takes an item for delivery, and waits for one if there is none. Waiters are served in FIFO order.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// std::thread::scope(|scope| {
        ///     let taken = scope.spawn(|| queue.take_blocking());
        ///     queue.push("job").unwrap();
        ///     assert_eq!(taken.join().unwrap().unwrap().ack(), "job");
        /// });
        /// ```
        ///
        /// On a closed queue it waits while deliveries are open, since their items may come back: also for those of its own
        /// thread, which another one has to end.
        ///
        /// # Errors
        ///
        /// [`PopError::Closed`] if nothing can become ready any more.
        timed: "Takes an item for delivery", "one",
        /// let queue = requeue::Queue::<u32>::unbounded();
        taken = queue();
        /// assert!(taken.is_err_and(|error| error.is_empty()));
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] on timeout; [`PopError::Closed`] if nothing can become ready any more.
        async(&self) -> QueueTake<T, O> { QueueTake::new(OwnedPopping::new(self.pool())) }
        /// A future that takes an item for delivery when there is one. Neither it nor the delivery borrows anything, so both can
        /// be moved into a task. Its output is that of [`Queue::take_blocking`].
        ///
        /// Cancel safe: it takes an item only when it completes, and leaves the wait queue when it is dropped. Poll it or drop it:
        /// a future that is woken and then neither polled nor dropped [keeps its wake-up](crate::guide::waiting#cancel-safety).
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push("job")?;
        /// assert_eq!(queue.take_async().await?.ack(), "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }
}
