//! The methods of a handle, without one.

use super::Queue;
use crate::core::put::Put;
use crate::future::{OwnedPop, OwnedPopping, OwnedPush, OwnedPushBatch, OwnedPushing};
use crate::order::Order;
use crate::{PopError, PushError};

impl<T, O: Order<T>> Queue<T, O> {
    /// Pushes an item without a handle; it is ready at once.
    ///
    /// The queue has a handle for each thread that uses it, and uses that of the current thread; it is made by the first
    /// call, and dropped when the thread ends. So the items that a thread pushes are popped in the order of their pushes,
    /// and a push costs little more than [`Handle::push`](crate::Handle::push). If the handle is in use, because user code
    /// that a call runs uses the queue in turn, or the thread is being destroyed, the call uses another one, and takes a
    /// lock for it.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// assert_eq!((queue.pop()?, queue.pop()?), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded and had no room at some point during the call,
    /// [`PushError::Closed`] if it is closed. The item comes back with the error.
    #[doc(alias("send", "enqueue", "try_send"))]
    #[inline(always)] // beyond the compiler's estimate: most of it is never executed
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        // As `Queue::call`, but inlined.
        match self.pool.own() {
            Some(mut own) => own.push(item),
            None => self.check_out().push_slowly(item),
        }
    }

    /// Pops an item without a handle; the pop is committed at once. It uses the handle of the current thread, as
    /// [`Queue::push`] does, with the progress of [`Handle::pop`](crate::Handle::pop).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// assert_eq!(queue.pop()?, "job");
    /// assert!(queue.pop().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if nothing was ready at some point during the call, or nothing [may be
    /// taken](PopError::Empty) now; [`PopError::Closed`] if nothing can become ready any more.
    #[doc(alias("recv", "receive", "dequeue", "try_recv", "take"))]
    #[inline(always)] // as above
    pub fn pop(&self) -> Result<T, PopError> {
        match self.pool.own() {
            Some(mut own) => own.pop(),
            None => self.check_out().pop_slowly(),
        }
    }

    verb! {
        push(&self, item: T) -> Result<(), PushError<T>>, |wait| self.call(|cell| {
        let local = cell.settled();
        local.put_waiting(item, Put::Publish, wait, (Default::default(), ()))
    });
        blocking:
        /// Pushes an item, and waits for room if there is none. Waiters are served in FIFO order.
        ///
        /// The item joins the FIFO of [`Queue::push`].
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(1);
        /// queue.push_blocking(1)?;
        /// std::thread::scope(|scope| {
        ///     scope.spawn(|| queue.push_blocking(2));
        ///     assert_eq!(queue.pop_blocking(), Ok(1));
        ///     assert_eq!(queue.pop_blocking(), Ok(2));
        /// });
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Closed`] with the item, if the queue is closed; [`PushError::Full`] at once, if its key is at its
        /// [limit](crate::Builder::key_capacity).
        timed: "Pushes an item", "room",
        /// let queue = requeue::Queue::bounded(1);
        /// queue.push(1)?;
        refused = queue(2);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] with the item, if there was no room in time; [`PushError::Closed`] with the item, if
        /// the queue is closed.
        async(&self, item: T) -> OwnedPush<T, O> { OwnedPush::new(OwnedPushing::new(self.pool(), item, Default::default())) }
        /// A future that pushes the item when there is room. It borrows nothing, so it can be spawned. Its output is that
        /// of [`Queue::push_blocking`].
        ///
        /// Cancel safe: if it is dropped before it is ready, the item is dropped with it and was not pushed, and the
        /// future leaves the wait queue.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(1);
        /// queue.push_async("job").await?;
        /// assert_eq!(queue.pop_async().await?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    verb! {
        push_batch(&self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
            |wait| self.call(|cell| cell.settled().push_batch(items, Put::Publish, wait));
        now:
        /// Pushes all items in one transaction, and returns their number: they become ready all at once. If the iterator
        /// panics, none is pushed.
        ///
        /// The items of a batch are popped in their order. The order between a batch and other pushes or batches is
        /// unspecified; push through one [`Handle`](crate::Handle) if you need it.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(3);
        /// assert_eq!(queue.push_batch(1..=2)?, 2);
        /// let refused = queue.push_batch(3..=4).unwrap_err();
        /// assert_eq!(refused.into_inner(), [3, 4]); // there was room for only one of them
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] if the queue is bounded and had no room for all of them, [`PushError::Closed`] if it is
        /// closed. All items come back in their order.
        blocking:
        /// Pushes all items in one transaction, and waits until there is room for all of them. Order as for
        /// [`Queue::push_batch`].
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(2);
        /// assert_eq!(queue.push_batch_blocking([1, 2])?, 2);
        /// assert!(queue.push_batch_blocking([3, 4, 5]).unwrap_err().is_full()); // can never fit
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] at once, without a wait, if there are more items than the queue's capacity: such a batch can never
        /// fit, so push it in parts; or if the items do not fit their [keys](crate::Builder::key_capacity) now.
        /// [`PushError::Closed`] if the queue is closed. All items come back in their order.
        timed: "Pushes all items in one transaction", "room for all of them",
        /// let queue = requeue::Queue::bounded(1);
        /// queue.push(1)?;
        refused = queue([2]);
        /// assert_eq!(refused.unwrap_err().into_inner(), [2]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Handle::push_batch_timeout`](crate::Handle::push_batch_timeout).
        async(&self, items: impl IntoIterator<Item = T>) -> OwnedPushBatch<T, O> {
            OwnedPushBatch::new(OwnedPushing::new(self.pool(), items.into_iter().collect(), Default::default()))
        }
        /// A future that pushes all items in one transaction when there is room for all of them. It borrows nothing, so
        /// it can be spawned. Its output is that of [`Queue::push_batch_blocking`].
        ///
        /// Cancel safe: if it is dropped before it is ready, the items are dropped with it and were not pushed, and the
        /// future leaves the wait queue.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(2);
        /// assert_eq!(queue.push_batch_async([1, 2]).await?, 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    verb! {
        pop(&self) -> Result<T, PopError>, |wait| self.call(|cell| cell.settled().pop_waiting(wait));
        blocking:
        /// Pops an item, and waits for one if there is none. Waiters are served in FIFO order.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// std::thread::scope(|scope| {
        ///     let popped = scope.spawn(|| queue.pop_blocking());
        ///     queue.push("job").unwrap();
        ///     assert_eq!(popped.join().unwrap(), Ok("job"));
        /// });
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Closed`] if nothing can become ready any more.
        timed: "Pops an item", "one",
        /// let queue = requeue::Queue::<u32>::unbounded();
        popped = queue();
        /// assert_eq!(popped, Err(requeue::PopError::Empty));
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] on timeout; [`PopError::Closed`] if nothing can become ready any more.
        async(&self) -> OwnedPop<T, O> { OwnedPop::new(OwnedPopping::new(self.pool())) }
        /// A future that pops an item when there is one. It borrows nothing, so it can be spawned. Its output is that of
        /// [`Queue::pop_blocking`].
        ///
        /// Cancel safe: it pops only when it completes, and leaves the wait queue when it is dropped. Poll it or drop it:
        /// a future that is woken and then neither polled nor dropped [keeps its wake-up](crate::guide::waiting#cancel-safety).
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push("job")?;
        /// assert_eq!(queue.pop_async().await?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }
}
