//! The methods of a handle, without one.

use super::Queue;
use crate::core::admit::Unpushed;
use crate::core::{wait, Local};
use crate::future::{pop_unless_empty, push_unless_full, unless_pushed};
use crate::future::{OwnedPop, OwnedPush, OwnedPushBatch};
use crate::order::Order;
use crate::wait::WaitKind;
use crate::{PopError, PushError};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

/// Pushes and pops without a handle. A thread or task that pushes or pops often is faster with a
/// [`Handle`](crate::Handle) of its own.
impl<T, O: Order<T>> Queue<T, O> {
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
    pub fn push_blocking(&self, item: T) -> Result<(), PushError<T>> {
        self.push_waiting(item, None, |item| self.shared().push(item))
    }

    /// Pushes an item, and waits up to `timeout` for room. Zero tries once; [`Duration::MAX`] waits forever.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::bounded(1);
    /// queue.push(1)?;
    /// let refused = queue.push_timeout(2, Duration::from_millis(1)).unwrap_err();
    /// assert!(refused.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] with the item, if there was no room in time; [`PushError::Closed`] with the item, if
    /// the queue is closed.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.push_waiting(item, Some(timeout), |item| self.shared().push(item))
    }

    /// Pushes an item by `push` when there is room; without a timeout, waits forever.
    pub(super) fn push_waiting(
        &self,
        item: T,
        timeout: Option<Duration>,
        push: impl Fn(T) -> Result<(), Unpushed<T>>,
    ) -> Result<(), PushError<T>> {
        let mut local = self.wake_target();
        let worth = local.is_worth_waiting(slice::from_ref(&item));
        let mut item = Some(item);
        let admission = wait::for_room(&mut &mut local, WaitKind::One, worth, timeout, |_| {
            push_unless_full(&mut item, &push)
        });
        unless_pushed(admission, item)
    }

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
    pub fn push_async(&self, item: T) -> OwnedPush<T, O> {
        OwnedPush::new(self.shared(), item)
    }

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
    pub fn push_batch(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.handle().push_batch(items)
    }

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
    /// [`PushError::Full`] at once, if the items exceed the queue's capacity or the room of their keys;
    /// [`PushError::Closed`] if it is closed. All items come back in their order.
    pub fn push_batch_blocking(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.handle().push_batch_blocking(items)
    }

    /// Pushes all items in one transaction, and waits up to `timeout` until there is room for all of them. Order as
    /// for [`Queue::push_batch`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::bounded(1);
    /// queue.push(1)?;
    /// let refused = queue.push_batch_timeout([2], Duration::from_millis(1));
    /// assert_eq!(refused.unwrap_err().into_inner(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::push_batch_timeout`](crate::Handle::push_batch_timeout).
    pub fn push_batch_timeout(
        &self,
        items: impl IntoIterator<Item = T>,
        timeout: Duration,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.handle().push_batch_timeout(items, timeout)
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
    pub fn push_batch_async(&self, items: impl IntoIterator<Item = T>) -> OwnedPushBatch<T, O> {
        OwnedPushBatch::new(self.shared(), items.into_iter().collect())
    }

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
    pub fn pop_blocking(&self) -> Result<T, PopError> {
        self.pop_waiting(None)
    }

    /// Pops an item, and waits up to `timeout` for one. Zero tries once; [`Duration::MAX`] waits forever.
    ///
    /// ```
    /// use requeue::PopError;
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert_eq!(queue.pop_timeout(Duration::from_millis(1)), Err(PopError::Empty));
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout; [`PopError::Closed`] if nothing can become ready any more.
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, PopError> {
        self.pop_waiting(Some(timeout))
    }

    fn pop_waiting(&self, timeout: Option<Duration>) -> Result<T, PopError> {
        let mut local = self.wake_target();
        let popped = wait::for_item(&mut &mut local, timeout, |_| {
            pop_unless_empty(self.shared())
        });
        popped.unwrap_or(Err(PopError::Empty))
    }

    /// A future that pops an item when there is one. It borrows nothing, so it can be spawned. Its output is that of
    /// [`Queue::pop_blocking`].
    ///
    /// Cancel safe: it pops only when it completes, and leaves the wait queue when it is dropped. Poll it or drop it:
    /// a future that is woken and then neither polled nor dropped [keeps its wake-up](crate#waiting-cancel-safety).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// assert_eq!(queue.pop_async().await?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn pop_async(&self) -> OwnedPop<T, O> {
        OwnedPop::new(self.shared())
    }

    /// The local state with which a call without a handle waits.
    fn wake_target(&self) -> Local<T, O> {
        Local::new(Arc::clone(self.shared()), None)
    }
}
