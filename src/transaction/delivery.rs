//! Deliveries that become transactions.

use super::OwnedTransaction;
use crate::order::Order;
use crate::Delivery;

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
    pub fn into_transaction(self) -> OwnedTransaction<T, O> {
        let mut tx = OwnedTransaction::begin(self.0.make_handle());
        self.0.move_to(tx.cell().get_mut());
        tx
    }
}
