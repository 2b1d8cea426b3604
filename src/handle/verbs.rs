//! Pushes and pops that are committed at once.

use super::Handle;
use crate::core::put::Put;
use crate::future::{PushAsync, Pushing, TakeAsync, User};
use crate::order::Order;
use crate::{PopError, PushError};

impl<T, O: Order<T>> Handle<T, O> {
    /// Pushes an item; it is ready at once. Lock-free if the queue has no options but a capacity, and no waiters; without
    /// a capacity most pushes are wait-free: see [Progress](crate::guide::performance#progress).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push(1)?;
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded and had no room at some point during the call,
    /// [`PushError::Closed`] if it is closed. The item comes back with the error.
    #[doc(alias("send", "enqueue", "try_send"))]
    #[inline(always)] // a few stores, beyond the compiler's estimate
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        self.cell().push(item)
    }

    verb! {
        push(&mut self, item: T) -> Result<(), PushError<T>>,
            |wait| self.local().put_waiting(item, Put::Publish, wait, (Default::default(), ()));
        blocking:
        /// Pushes an item, and waits for room if there is none. Waiters are served in FIFO order.
        ///
        /// ```
        /// let queue = requeue::Queue::bounded(1);
        /// let mut handle = queue.handle();
        /// handle.push_blocking(1)?;
        /// std::thread::scope(|scope| {
        ///     scope.spawn(|| handle.push_blocking(2));
        ///     assert_eq!(queue.pop(), Ok(1));
        /// });
        /// assert_eq!(queue.pop(), Ok(2));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Closed`] with the item, if the queue is closed; [`PushError::Full`] at once, if its key is at its
        /// [limit](crate::Builder::key_capacity).
        timed: "Pushes an item", "room",
        /// let mut handle = requeue::Queue::bounded(1).handle();
        /// handle.push(1)?;
        refused = handle(2);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] with the item, on timeout; [`PushError::Closed`] with the item, if the queue is closed.
        async(&mut self, item: T) -> PushAsync<'_, T, O> { PushAsync::new(Pushing::new(User::handle(self.cell()), item, Default::default())) }
        /// A future that pushes the item when there is room. Cancel safe: if it is dropped before it is
        /// ready, the item is dropped with it and was not pushed.
        ///
        /// Its output is that of [`Handle::push_blocking`].
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::bounded(1);
        /// queue.handle().push_async("job").await?;
        /// assert_eq!(queue.pop()?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    /// Pops an item; the pop is committed at once. Lock-free if the queue has no options except a bound, and no
    /// waiters for room: see [Progress](crate::guide::performance#progress).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push(1)?;
    /// assert_eq!(handle.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if nothing was ready at some point during the call, or nothing [may be
    /// taken](PopError::Empty) now; [`PopError::Closed`] if nothing can become ready any more.
    #[doc(alias("recv", "receive", "dequeue", "try_recv", "take"))]
    #[inline]
    pub fn pop(&mut self) -> Result<T, PopError> {
        self.cell().pop()
    }

    verb! {
        pop(&mut self) -> Result<T, PopError>, |wait| self.local().pop_waiting(wait);
        blocking:
        /// Pops an item, and waits for one if there is none.
        ///
        /// ```
        /// let queue = requeue::Queue::unbounded();
        /// let mut handle = queue.handle();
        /// std::thread::scope(|scope| {
        ///     let popped = scope.spawn(|| handle.pop_blocking());
        ///     queue.push("job").unwrap();
        ///     assert_eq!(popped.join().unwrap(), Ok("job"));
        /// });
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Closed`] if nothing can become ready any more.
        timed: "Pops an item", "one",
        /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
        popped = handle();
        /// assert_eq!(popped, Err(requeue::PopError::Empty));
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] on timeout; [`PopError::Closed`] if nothing can become ready any more.
        async(&mut self) -> TakeAsync<'_, T, O> { TakeAsync::new(self.cell()) }
        /// A future that pops an item when there is one. Cancel safe: it pops only when it completes.
        ///
        /// Its output is that of [`Handle::pop_blocking`].
        ///
        /// Poll it or drop it: a future that is woken and then neither polled nor dropped [keeps its
        /// wake-up](crate::guide::waiting#cancel-safety).
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push("job")?;
        /// assert_eq!(queue.handle().pop_async().await?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }
}
