//! How a transaction ends.

use super::commit_all::sealed::Member;
use super::Transaction;
use crate::core::end::Ended;
use crate::core::CellOf;
use crate::order::Order;
use crate::raw::Party;
use crate::{Expired, Taken, Unleased};

impl<'h, T, O: Order<T>> Transaction<'h, T, O> {
    /// Commits: the pushes become visible all at once, the pops final. It never fails, and does not wait for room. It
    /// costs one store, however many items were pushed, and waking the waiters. Some options add [a
    /// lock](crate::guide::performance#progress).
    ///
    /// The held items are returned by value; those not taken are dropped with the iterator.
    ///
    /// A queue that [leases](crate::Builder::leased) its items has [`try_commit`](Self::try_commit) instead.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job".to_string())?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.pop()?.push_str(" done");
    /// let done: Vec<String> = tx.commit().collect();
    /// assert_eq!(done, ["job done"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("ack", "acknowledge"))]
    #[inline(always)] // a few stores
    pub fn commit(self) -> Taken<'h, T, O>
    where
        O: Unleased,
    {
        self.conclude()
    }

    /// Commits, unless the queue [leases](crate::Builder::leased) its items and an item of this transaction was taken
    /// back.
    ///
    /// As [`Transaction::commit`] otherwise.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().leased(std::time::Duration::from_secs(60)).build();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// assert_eq!(tx.try_commit()?.next(), Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if an item was taken back. Then this transaction is aborted: items taken back belong to others,
    /// and the rest goes back to the head.
    #[doc(alias("ack", "acknowledge"))]
    #[inline]
    pub fn try_commit(mut self) -> Result<Taken<'h, T, O>, Expired> {
        self.close_leases()?;
        Ok(self.conclude())
    }

    /// Commits, when nothing can be taken back any more.
    #[inline(always)] // as above
    fn conclude(mut self) -> Taken<'h, T, O> {
        let local = self.open.cell_mut().get_mut();
        if local.deliveries().are_guarded() {
            return self.conclude_guarded();
        }
        let cell = self.open.close();
        let taken = cell.commit_unguarded();
        Taken::new(cell, taken)
    }

    #[cold]
    fn conclude_guarded(self) -> Taken<'h, T, O> {
        let (taken, _remains) = self.end_by(CellOf::commit);
        taken
    }

    /// Returns the items, and what is to be dropped afterwards.
    fn end_by(
        self,
        end: impl FnOnce(&mut CellOf<T, O>) -> Ended<T, O>,
    ) -> (Taken<'h, T, O>, impl Sized) {
        let cell = self.open.close();
        let (taken, remains) = end(cell);
        (Taken::new(cell, taken), remains)
    }

    /// Ensures that nothing is taken back any more.
    #[inline]
    pub(crate) fn close_leases(&mut self) -> Result<(), Expired> {
        let local = self.open.cell_mut().get_mut();
        local.deliveries().close_leases()
    }

    /// Restarts the terms of the leases of all held items, if the queue [leases](crate::Builder::leased) its items.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder()
    ///     .leased(Duration::from_secs(10))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("long job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// for _ in 0..3 {
    ///     clock.advance(Duration::from_secs(9));
    ///     tx.renew()?;
    /// }
    /// assert!(queue.is_empty());
    /// assert!(tx.try_commit().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if an item was taken back: this transaction cannot commit any more.
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[doc(alias("extend", "heartbeat", "visibility timeout"))]
    #[track_caller]
    pub fn renew(&self) -> Result<(), Expired> {
        let local = self.local();
        local.deliveries().renew(local.shared())
    }

    /// Aborts: held items go back to the head of the queue, in their order; staged ones are dropped.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let _job = tx.pop()?;
    /// tx.abort();
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("nack", "rollback", "reject"))]
    pub fn abort(self) {
        drop(self);
    }
}

impl<T, O: Order<T> + Unleased> Unleased for Transaction<'_, T, O> {}

impl<'h, T: 'h, O: Order<T> + 'h> Member for Transaction<'h, T, O> {
    type Taken = Taken<'h, T, O>;

    fn close_leases(&mut self) -> Result<(), Expired> {
        self.close_leases()
    }

    fn party(&mut self) -> &mut dyn Party {
        let cell = self.open.cell_mut();
        cell.end_forgotten();
        cell
    }

    fn into_taken(self) -> (Self::Taken, impl Sized) {
        self.end_by(CellOf::end_concluded)
    }
}
