//! Pops and peeks of a transaction.

use super::Transaction;
use crate::future::{Borrowing, PopAsync};
use crate::order::Order;
use crate::{DeliveryId, Item, Peek, PopError};
use std::future::Future;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Pops an item and holds it. Its progress is that of a [pop](crate::guide::performance#progress).
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
    /// [`PopError::Empty`] if nothing was ready at some point during the call, or nothing [may be
    /// taken](PopError::Empty) now. Items that this transaction holds or has staged are not ready.
    /// [`PopError::Closed`] if nothing can become ready any more.
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[inline(always)] // the pop of a transaction
    #[track_caller]
    pub fn pop(&self) -> Result<Item<'_, T>, PopError> {
        let cell = self.open.cell();
        match cell.hold_at_once() {
            Some(item) => Ok(Item::new(item)),
            None => cell.hold_slowly().map(Item::new),
        }
    }

    verb! {
        pop(&self) -> Result<Item<'_, T>, PopError>, |wait| {
            let cell = self.open.cell();
            match cell.hold_at_once() {
                Some(item) => Ok(Item::new(item)),
                None => cell.borrow_after_attempt().pop_waiting(wait).map(Item::new),
            }
        };
        blocking:
        /// Pops an item and holds it, and waits for one if there is none.
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
        /// [`PopError::Closed`] if nothing can become ready any more. [`PopError::Empty`] if the queue is closed, nothing
        /// is ready or may be taken, and this transaction holds or has staged something: otherwise two such transactions
        /// could wait for each other.
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        timed: "Pops an item and holds it", "one",
        /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
        /// let tx = handle.begin();
        popped = tx();
        /// assert!(popped.unwrap_err().is_empty());
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] on timeout, and as for [`Transaction::pop_blocking`].
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        async(&self) -> PopAsync<'_, T, O> { PopAsync::new(Borrowing(self.local())) }
        /// A future that pops an item when there is one, and holds it. It borrows the transaction until it is ready or
        /// dropped.
        ///
        /// Its output is that of [`Transaction::pop_blocking`]. Cancel safe: it takes an item only when it completes, and
        /// the transaction holds that item.
        ///
        /// Poll it or drop it: a future that is woken and then neither polled nor dropped [keeps its
        /// wake-up](crate::guide::waiting#cancel-safety).
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
    }

    verb! {
        peek(&self) -> Result<Peek<'_, T, O>, PopError>, |wait| Peek::waiting(self.local(), wait);
        now:
        /// Peeks at the item that a pop would return.
        ///
        /// The returned [`Peek`] borrows the transaction, and keeps the item from being delivered to others. When it is
        /// dropped the item is back in its place; no delivery is counted.
        ///
        /// Until then the item is held, as by a transaction: pops pass over it and deliver the next ones before it, and
        /// return [`PopError::Empty`] if there are none.
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
        blocking:
        /// Peeks at the item that a pop would return, and waits for one if there is none.
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
        timed: "Peeks at the item that a pop would return", "one",
        /// let mut handle = requeue::Queue::<u32>::unbounded().handle();
        /// let tx = handle.begin();
        peeked = tx();
        /// assert!(peeked.unwrap_err().is_empty());
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Transaction::pop_timeout`].
        ///
        /// # Panics
        ///
        /// If the transaction [is borrowed](Transaction#borrowing).
        async(&self) -> impl Future<Output = Result<Peek<'_, T, O>, PopError>> + '_ { Peek::future(self.local()) }
        /// A future that peeks at the item that a pop would return, when there is one. It borrows the transaction, and
        /// then the [`Peek`] does.
        ///
        /// Its output is that of [`Transaction::peek_blocking`]. Cancel safe: when it is dropped it leaves the wait
        /// queue.
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
        /// If the transaction [is borrowed](Transaction#borrowing); and if the future is polled after completion.
    }

    /// The number of held items.
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

    /// The id of the transaction, also reported by [`Queue::held`](crate::Queue::held): that of its oldest delivery.
    ///
    /// It stays the same from the first pop until one of the deliveries ends: with the transaction, or before, by a
    /// [retry](Self::retry), a [failure](Self::fail) or the end of a [lease](crate::Builder::leased). Then the other
    /// deliveries have the ids that follow.
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
