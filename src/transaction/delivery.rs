//! Deliveries that become transactions.

use super::OwnedTransaction;
use crate::core::delivery::LeaseOf;
use crate::order::Order;
use crate::{Delivery, Expired, Unleased};

impl<T, O: Order<T>> Delivery<T, O> {
    /// Moves the item into a transaction of its own, which holds nothing else: what is pushed there becomes visible in the commit
    /// that acknowledges the item.
    ///
    /// If that transaction aborts, the item comes back to the head, but no longer in the [order](Self#order) of deliveries.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(3)?;
    /// let tx = queue.take()?.into_transaction();
    /// tx.push(2)?;
    /// assert!(queue.is_empty());
    /// assert!(tx.commit().eq([3]));
    /// assert_eq!(queue.pop()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_transaction(self) -> OwnedTransaction<T, O>
    where
        O: Unleased,
    {
        self.with_lease(None)
    }

    /// As [`into_transaction`](Self::into_transaction), also for an item that is [leased](crate::Builder::leased): the transaction
    /// takes over its lease.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().leased(std::time::Duration::from_secs(60)).build();
    /// queue.push(3)?;
    /// let tx = queue.take()?.try_into_transaction()?;
    /// tx.push(2)?;
    /// assert!(tx.try_commit()?.eq([3]));
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the item was taken back.
    pub fn try_into_transaction(mut self) -> Result<OwnedTransaction<T, O>, Expired> {
        let lease = self.0.end_lease()?;
        Ok(self.with_lease(lease))
    }

    fn with_lease(self, lease: Option<LeaseOf<T, O>>) -> OwnedTransaction<T, O> {
        let mut tx = OwnedTransaction::begin(self.0.make_handle());
        self.0.move_to(tx.cell().get_mut(), lease);
        tx
    }
}
