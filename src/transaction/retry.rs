//! Giving single items back before the end of a transaction.

use super::Transaction;
use crate::core::failed::Settlement;
use crate::order::Order;
use crate::{Item, PushError};
use std::fmt;
use std::time::Duration;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Gives a held item back, to be delivered again after the delay of the queue's [`Backoff`](crate::Backoff), or
    /// at once if it has none.
    ///
    /// As [`Transaction::retry_after`] otherwise.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.retry(tx.pop()?)?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry_after`].
    ///
    /// # Panics
    ///
    /// If the item belongs to another transaction, or this one [is borrowed](Transaction#borrowing).
    #[doc(alias("nack", "requeue"))]
    #[track_caller]
    pub fn retry(&self, item: Item<'_, T>) -> Result<(), PushError<()>> {
        self.release(item, &Settlement::retry())
    }

    /// Gives a held item back, to be delivered again after `delay`. Until then it is delayed; then it goes to the
    /// head of the queue.
    ///
    /// It is removed from the transaction at once, whether that commits or aborts; other items are not affected. This
    /// counts as a failed delivery: after [`max_attempts`](crate::Builder::max_attempts) deliveries the item becomes
    /// a dead letter instead. A delay beyond the clock's range is clamped to some centuries.
    ///
    /// A closed queue is not drained while items are delayed or held.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// let mut handle = queue.handle();
    /// handle.push_batch(["fails", "works"])?;
    ///
    /// let tx = handle.begin();
    /// let (first, second) = (tx.pop()?, tx.pop()?);
    /// tx.retry_after(first, Duration::from_secs(60))?;
    /// assert_eq!(*second, "works");
    /// tx.commit();
    /// assert!(queue.is_empty());
    ///
    /// clock.advance(Duration::from_secs(60));
    /// let tx = handle.begin();
    /// let again = tx.pop()?;
    /// assert_eq!((*again, again.attempts()), ("fails", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if the queue is bounded, this transaction has staged as many items as it holds, and there
    /// is no room: the permit of the item cannot serve both a staged item and itself. The item is still held then,
    /// and goes back if the transaction is aborted. An item that becomes a dead letter needs no room.
    ///
    /// # Panics
    ///
    /// If the item belongs to another transaction, or this one [is borrowed](Transaction#borrowing).
    #[doc(alias("nack", "delay", "defer", "retry_at"))]
    #[track_caller]
    pub fn retry_after(&self, item: Item<'_, T>, delay: Duration) -> Result<(), PushError<()>> {
        self.release(item, &Settlement::After(delay))
    }

    /// Fails a held item: it is not delivered again, but becomes a [dead letter](crate::Queue::dead_letters) with
    /// this error.
    ///
    /// As with [`Transaction::retry_after`] it is removed from the transaction at once. If the dead letters are at
    /// their [limit](crate::Builder::max_dead_letters), it is [retried](Self::retry) instead.
    ///
    /// ```
    /// use requeue::Reason;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("seven")?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let job = tx.pop()?;
    /// if let Err(error) = job.parse::<u32>() {
    ///     tx.fail(job, error)?; // it will never be a number
    /// }
    /// tx.commit();
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.reason), ("seven", Reason::Failed));
    /// assert_eq!(letter.error(), Some("invalid digit found in string"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry`], and only if the dead letters are at their limit.
    ///
    /// # Panics
    ///
    /// If the item belongs to another transaction, or this one [is borrowed](Transaction#borrowing), and if `error`
    /// panics when it is formatted. The item is still held then.
    #[doc(alias("reject", "dead letter"))]
    #[track_caller]
    pub fn fail(&self, item: Item<'_, T>, error: impl fmt::Display) -> Result<(), PushError<()>> {
        self.release(item, &Settlement::fail(error))
    }

    /// Gives a held item back to the head, as if it had not been delivered: for crates that keep queues elsewhere too.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::retry`].
    #[doc(hidden)]
    #[track_caller]
    pub fn put_back(&self, item: Item<'_, T>) -> Result<(), PushError<()>> {
        self.release(item, &Settlement::Released)
    }

    /// How many items of the queue ever became dead letters: for crates that keep queues elsewhere too.
    #[doc(hidden)]
    #[track_caller]
    pub fn died(&self) -> u64 {
        self.local().shared().failures.letters.died()
    }

    #[track_caller]
    fn release(&self, item: Item<'_, T>, settlement: &Settlement) -> Result<(), PushError<()>> {
        let released = self.local().release_item(item.reference, settlement, None);
        released.map(drop)
    }
}
