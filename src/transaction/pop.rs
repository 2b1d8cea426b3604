//! What a transaction takes and holds, and looks at.

use super::Transaction;
use crate::future::PopAsync;
use crate::order::Order;
use crate::{DeliveryId, Item, Peek, PopError};
use std::future::Future;
use std::time::Duration;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Takes an item and holds it. Its progress is that of a [pop](crate#progress).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let (first, second) = (tx.pop()?, tx.pop()?);
    /// assert_eq!((*first, *second), (1, 2));
    /// tx.abort();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if at some instant during the call nothing was ready, or nothing
    /// [may be taken](PopError::Empty) now. What this transaction holds or has staged is not ready.
    /// [`PopError::Closed`] if nothing can become ready any more.
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[inline]
    #[track_caller]
    pub fn pop(&self) -> Result<Item<'_, T>, PopError> {
        self.local().pop().map(Item::new)
    }

    /// Takes an item and holds it, and waits for one if there is none.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         let tx = handle.begin();
    ///         let job = tx.pop_blocking().unwrap();
    ///         assert_eq!(*job, "job");
    ///         tx.commit();
    ///     });
    ///     queue.push("job").unwrap();
    /// });
    /// assert_eq!(queue.stats().committed, 1);
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if nothing can become ready any more. [`PopError::Empty`] if the queue is
    /// closed, nothing is ready or may be taken, and this transaction holds or has staged something: it must not wait
    /// for another one that waits for it.
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn pop_blocking(&self) -> Result<Item<'_, T>, PopError> {
        self.local().pop_waiting(None).map(Item::new)
    }

    /// Takes an item and holds it, and waits up to `timeout` for one.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
    /// let tx = handle.begin();
    /// assert!(tx.pop_timeout(Duration::from_millis(1)).unwrap_err().is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if the time is over, and as for [`Transaction::pop_blocking`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn pop_timeout(&self, timeout: Duration) -> Result<Item<'_, T>, PopError> {
        self.local().pop_waiting(Some(timeout)).map(Item::new)
    }

    /// A future that takes an item when there is one, and holds it. The transaction is lent to it
    /// meanwhile.
    ///
    /// Its output is that of [`Transaction::pop_blocking`]. Cancel safe: it takes an item only when it is
    /// ready, and that item is the transaction's.
    ///
    /// Poll it or drop it: a future that is woken and then left alone [keeps its wake-up](crate#waiting-cancel-safety).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// assert_eq!(*tx.pop_async().await?, "job");
    /// tx.commit();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn pop_async(&self) -> PopAsync<'_, T, O> {
        PopAsync::new(self.local())
    }

    /// Looks at the item that a pop would give, without taking it.
    ///
    /// The transaction is lent to what this returns, and nobody else is given the item meanwhile. When
    /// it is dropped the item is back at its place; no delivery is counted.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(7)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let peeked = tx.peek()?;
    /// if *peeked > 5 {
    ///     assert_eq!(peeked.take().attempts(), 1);
    /// }
    /// assert_eq!(tx.held(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::pop`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn peek(&self) -> Result<Peek<'_, T, O>, PopError> {
        Peek::waiting(self.local(), Some(Duration::ZERO))
    }

    /// Looks at the item that a pop would give, and waits for one if there is none.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(*handle.begin().peek_blocking().unwrap(), 7));
    ///     queue.push(7).unwrap();
    /// });
    /// assert_eq!(queue.len(), 1);
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::pop_blocking`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn peek_blocking(&self) -> Result<Peek<'_, T, O>, PopError> {
        Peek::waiting(self.local(), None)
    }

    /// Looks at the item that a pop would give, and waits up to `timeout` for one.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
    /// let tx = handle.begin();
    /// assert!(tx.peek_timeout(Duration::from_millis(1)).unwrap_err().is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::pop_timeout`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn peek_timeout(&self, timeout: Duration) -> Result<Peek<'_, T, O>, PopError> {
        Peek::waiting(self.local(), Some(timeout))
    }

    /// A future that looks at the item that a pop would give, when there is one. The transaction is lent to it
    /// meanwhile, and then to the [`Peek`].
    ///
    /// Its output is that of [`Transaction::peek_blocking`]. Cancel safe: when it is dropped its place in the wait queue is
    /// given up.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(7)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// assert_eq!(*tx.peek_async().await?, 7);
    /// assert_eq!(tx.held(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing); and when it is polled after it was ready.
    #[track_caller]
    pub fn peek_async(&self) -> impl Future<Output = Result<Peek<'_, T, O>, PopError>> + '_ {
        Peek::future(self.local())
    }

    /// How many items are held.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// assert_eq!(tx.held(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn held(&self) -> usize {
        self.local().held()
    }

    /// A number for what is held, by which [`Queue::held`](crate::Queue::held) knows it: that of the oldest delivery.
    ///
    /// It stays the same from the first pop until one of the deliveries ends: with the transaction, or before, by a
    /// [retry](Self::retry), a [failure](Self::fail) or the end of a [lease](crate::Builder::leased). Then the rest
    /// have the numbers that follow.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// assert_eq!(queue.held()[0].id, tx.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn id(&self) -> DeliveryId {
        let holder = self.local().holder();
        DeliveryId::new(holder.counters, holder.ended)
    }
}
