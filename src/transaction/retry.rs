//! What leaves a transaction before its end.

use super::Transaction;
use crate::core::failed::NoRoom;
use crate::order::Order;
use crate::{Item, PushError};
use std::fmt;
use std::time::Duration;

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// Gives a held item back, to be delivered again after a time: as long as the queue's
    /// [`Backoff`](crate::Backoff) says, or at once if it has none.
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
    /// If the item is of another transaction, or this one [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn retry(&self, item: Item<'_, T>) -> Result<(), PushError<()>> {
        self.give_back_later(item, None)
    }

    /// Gives a held item back, to be delivered again after `delay`. Until then it is out of the way;
    /// then it is at the head of the queue.
    ///
    /// It leaves the transaction at once and for good, however that ends: what else the transaction
    /// holds or has staged is not touched. This counts as a failed delivery: an item that was delivered
    /// as often as it may be [dies](crate::Builder::max_attempts) instead. A delay that is longer than a
    /// clock can say lasts for some centuries.
    ///
    /// A closed queue waits for delayed items, as for those that are held.
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
    /// [`PushError::Full`] if the queue is bounded, this transaction has staged as many items as it holds,
    /// and there is no room: the item may not give its place both to a staged item and to itself. It is
    /// still held then, and goes back if the transaction is aborted.
    ///
    /// # Panics
    ///
    /// If the item is of another transaction, or this one [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn retry_after(&self, item: Item<'_, T>, delay: Duration) -> Result<(), PushError<()>> {
        self.give_back_later(item, Some(delay))
    }

    /// Gives a held item up: it is not delivered again, but a [dead letter](crate::Queue::dead_letters) now,
    /// with this error.
    ///
    /// As with [`Transaction::retry_after`] it leaves the transaction at once and for good. Where there is no
    /// [place](crate::Builder::max_dead_letters) for another dead letter it is [retried](Self::retry) instead.
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
    /// As for [`Transaction::retry`], and only where there is no place for another dead letter.
    ///
    /// # Panics
    ///
    /// If the item is of another transaction, or this one [is borrowed](Transaction#borrowing), and if `error`
    /// panics when it is formatted. The item is still held then.
    #[track_caller]
    pub fn fail(&self, item: Item<'_, T>, error: impl fmt::Display) -> Result<(), PushError<()>> {
        let error = error.to_string().into();
        let failed = self.local().fail(item.reference, error);
        failed.map(drop).map_err(|NoRoom| PushError::Full(()))
    }

    #[track_caller]
    fn give_back_later(
        &self,
        item: Item<'_, T>,
        delay: Option<Duration>,
    ) -> Result<(), PushError<()>> {
        let retried = self.local().retry(item.reference, delay);
        retried.map(drop).map_err(|NoRoom| PushError::Full(()))
    }
}
