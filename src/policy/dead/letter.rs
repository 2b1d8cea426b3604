//! A dead letter, as users see it.

use crate::policy::failed::Failed;
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::time::Time;
use crate::Reason;
use std::sync::Arc;
use std::time::Instant;

/// An item that was delivered [`max_attempts`](crate::Builder::max_attempts) times without a commit, or was
/// [failed](crate::Transaction::fail) for good.
///
/// ```
/// use requeue::Reason;
///
/// let queue = requeue::Queue::builder().max_attempts(1).build();
/// queue.push("poison")?;
/// let _ = queue.handle().transact(|tx| tx.pop().map(drop).and(Err::<(), _>(requeue::PopError::Empty)));
/// let letter = queue.dead_letters().next().unwrap();
/// assert_eq!((letter.item, letter.attempts), ("poison", 1));
/// assert_eq!(letter.reason, Reason::Aborted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The item, including the changes that its workers made.
    pub item: T,
    /// How often it was delivered.
    pub attempts: u32,
    /// Why its last delivery failed.
    pub reason: Reason,
    /// When it was first pushed, if the queue keeps [timestamps](crate::Builder::timestamps).
    pub pushed_at: Option<Instant>,
    /// When its last delivery failed; `None` if the clock of the queue panicked then.
    pub died_at: Option<Instant>,
    id: u64,
    error: Option<Arc<str>>,
}

impl<T> DeadLetter<T> {
    pub(crate) fn new<M>(failed: Failed<Stored<T, M>>, time: &Time) -> Self {
        let Entry { item, delivery } = failed.entry;
        Self {
            item: item.item,
            attempts: delivery.attempts,
            reason: failed.reason,
            pushed_at: time.stamped(delivery.since),
            died_at: time.instant(failed.due),
            id: failed.letter,
            error: failed.error,
        }
    }

    /// The letter as the queue keeps it, with its internal metadata.
    pub(crate) fn into_failed<M>(
        self,
        meta: M,
        delivery: DeliveryMeta,
        due: u64,
    ) -> Failed<Stored<T, M>> {
        let item = Stored {
            item: self.item,
            meta,
        };
        Failed {
            entry: Entry { item, delivery },
            reason: self.reason,
            error: self.error,
            due,
            letter: self.id,
        }
    }

    /// The number that identifies the letter in [`DeadLetters::requeue`](crate::DeadLetters::requeue). It is unique in
    /// the queue, and greater than those of earlier letters. An item that becomes a dead letter again gets a new one.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push_batch(["a", "b"])?;
    /// let mut worker = queue.handle();
    /// for _ in 0..2 {
    ///     drop(worker.begin().pop()?);
    /// }
    /// let mut letters = queue.dead_letters();
    /// let (a, b) = (letters.next().unwrap(), letters.next().unwrap());
    /// assert!(a.id() < b.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The error of its last delivery, if any: the `Debug` text of the error that a run of
    /// [`Workers`](crate::Workers) returned, its panic message, or the `Display` text of what was passed to
    /// [`Transaction::fail`](crate::Transaction::fail).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("404.html")?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// tx.fail(tx.pop()?, "not found")?;
    /// tx.commit();
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.error()), ("404.html", Some("not found")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}
