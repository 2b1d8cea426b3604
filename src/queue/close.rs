//! Closes a queue.

use super::Queue;
use crate::order::Order;

impl<T, O: Order<T>> Queue<T, O> {
    /// Closes the queue. Returns `true` if it was open.
    ///
    /// From then on pushes fail with [`PushError::Closed`](crate::PushError::Closed), except those of a transaction that holds at least one
    /// item of this queue: the follow-ups of accepted work are accepted. Items staged before are still committed.
    /// Pops take the remaining items, those aborted later included, and return [`PopError::Closed`](crate::PopError::Closed) once nothing is
    /// ready or delayed and no transaction holds or has staged anything. Until then waiting pops go on waiting. Every
    /// waiter is woken when its call can return.
    ///
    /// So a graph of jobs terminates: push the first items, close, and work until `Closed`. In a pipeline, close the
    /// next queue when the one before returns `Closed`.
    ///
    /// A push that races with the close either returns `Ok`, and the item can be popped, or `Closed`, and it cannot.
    ///
    /// Pops also wait for items that are delayed or scheduled; [`Queue::close_now`] drops these.
    ///
    /// ```
    /// use requeue::PopError;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// assert!(queue.close());
    /// assert!(!queue.close());
    /// assert!(queue.push(2).unwrap_err().is_closed());
    /// assert_eq!(queue.pop(), Ok(1));
    /// assert_eq!(queue.pop(), Err(PopError::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A tree of jobs:
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(3)?;
    /// queue.close();
    /// let (mut worker, mut done) = (queue.handle(), 0);
    /// loop {
    ///     let tx = worker.begin();
    ///     let Ok(depth) = tx.pop_blocking() else { break };
    ///     for _ in 0..*depth {
    ///         tx.push(*depth - 1)?; // it holds a job
    ///     }
    ///     tx.commit();
    ///     done += 1;
    /// }
    /// assert_eq!(done, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> bool {
        self.shared.close()
    }

    /// Returns `true` if the queue was closed. It may still contain items.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(!queue.is_closed());
    /// queue.close();
    /// assert!(queue.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.word().is_closed()
    }
}
