//! What only queues with leases have.

use super::Queue;
use crate::order::Order;
use crate::{Leased, Unleased};
use std::time::Instant;

/// Only for a queue that [leases](crate::Builder::leased) its items.
impl<T: Clone, O: Order<T> + Unleased> Queue<T, Leased<O>> {
    /// Takes back the items that open transactions of handles with this name took before the given time, and returns
    /// how many became ready.
    ///
    /// Others receive copies. The late transactions cannot commit any more, and the deliveries count as failed.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .leased(Duration::from_secs(3600))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let mut stuck = queue.named_handle("stuck");
    /// let tx = stuck.begin();
    /// let _job = tx.pop()?;
    ///
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.recover("another", queue.now()), 0);
    /// assert_eq!(queue.recover("stuck", queue.now()), 1);
    /// assert_eq!(queue.pop()?, "job");
    /// assert!(tx.try_commit().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(&self, worker: &str, before: Instant) -> usize {
        self.shared.recover(worker, before)
    }
}
