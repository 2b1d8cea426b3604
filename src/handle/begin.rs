//! Begins transactions.

use super::Handle;
use crate::order::Order;
use crate::raw::Open;
use crate::{Expired, OwnedTransaction, PopError, Transaction, Unleased};

impl<T, O: Order<T>> Handle<T, O> {
    /// Begins a transaction.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// assert!(queue.is_empty());
    /// tx.commit();
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_, T, O> {
        Transaction::new(Open::new(self.cell()))
    }

    /// Begins a transaction that owns this handle, and may be stored, sent, and committed or aborted elsewhere. The
    /// handle is dropped with it; [`Queue::begin_owned`](crate::Queue::begin_owned) reuses handles.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let delivery = queue.named_handle("consumer 7").begin_owned();
    /// delivery.pop()?;
    /// assert_eq!(queue.held()[0].worker.as_deref(), Some("consumer 7"));
    /// std::thread::spawn(|| delivery.commit()).join().unwrap();
    /// assert!(queue.held().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_owned(self) -> OwnedTransaction<T, O> {
        OwnedTransaction::begin(self.check_out())
    }

    /// Runs `work` in a transaction: `Ok` commits and drops the held items, `Err` and a panic abort.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push(6)?;
    ///
    /// let failed: Result<(), &str> = handle.transact(|tx| {
    ///     let _job = tx.pop().map_err(|_| "nothing to do")?;
    ///     Err("cannot be done now")
    /// });
    /// assert!(failed.is_err());
    ///
    /// let done = handle.transact(|tx| tx.pop().map(|job| *job * 7));
    /// assert_eq!(done, Ok(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `work`.
    ///
    /// A queue that [leases](crate::Builder::leased) its items has [`try_transact`](Self::try_transact) instead.
    pub fn transact<R, E>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        O: Unleased,
    {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.commit();
        Ok(result)
    }

    /// Runs `work` in a transaction, as [`transact`](Self::transact) does, and commits unless an item that `work`
    /// took was taken back.
    ///
    /// ```
    /// use std::error::Error;
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder().leased(Duration::from_secs(60)).build();
    /// queue.push(6)?;
    /// let done = queue.handle().try_transact(|tx| Ok::<_, Box<dyn Error>>(*tx.pop()? * 7))?;
    /// assert_eq!(done, 42);
    /// # Ok::<(), Box<dyn Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `work`, or [`Expired`] if an item was taken back; then the transaction is aborted.
    pub fn try_transact<R, E: From<Expired>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    ) -> Result<R, E> {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.try_commit()?;
        Ok(result)
    }

    /// Calls `inspect` with the item that a pop would return, and puts the item back in its place. No delivery is
    /// counted. While `inspect` runs the item is held, as by a transaction: pops pass over it, and find the next ones.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(String::from("job"))?;
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.peek_with(|job| job.len())?, 3);
    /// assert_eq!(handle.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::pop`].
    pub fn peek_with<R>(&mut self, inspect: impl FnOnce(&T) -> R) -> Result<R, PopError> {
        let tx = self.begin();
        let peeked = tx.peek()?;
        Ok(inspect(&peeked))
    }
}
