//! Errors of pushes, pops and commits, and reasons of failed deliveries. Errors of pushes give the items back.

use std::error::Error;
use std::fmt;

/// A push was refused; it gives the item back.
///
/// An unbounded queue that is never closed refuses nothing.
///
/// ```
/// use requeue::PushError;
///
/// let refused = PushError::Full("job");
/// assert!(refused.is_full());
/// assert_eq!(refused.into_inner(), "job");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PushError<T> {
    /// There was no room. Forms that wait return it on timeout, or at once if waiting would not help: for a batch
    /// larger than the [capacity](crate::Queue::capacity), which can never fit, and for an item whose key is at its
    /// [limit](crate::Builder::key_capacity).
    Full(T),
    /// The queue is closed, and the push was not made by a transaction that holds one of its items.
    Closed(T),
    /// The item, or one of the batch, has a [weight](crate::Builder::weigh) above the [capacity](crate::Queue::capacity), so it
    /// can never fit. Forms that wait return it at once.
    TooHeavy(T),
    /// Another item has the same [unique key](crate::Builder::unique_by). Forms that wait return it at once, unless that
    /// item is staged, or on timeout.
    Duplicate(T, DuplicateOf),
}

/// What the item is of which another one with the same [unique key](crate::Builder::unique_by) is a duplicate.
///
/// ```
/// use requeue::{DuplicateOf, PushError, Queue};
///
/// let queue = Queue::builder().unique_by(|job: &&str| job.len()).build();
/// queue.push("one")?;
/// assert_eq!(queue.push("two"), Err(PushError::Duplicate("two", DuplicateOf::Queued)));
/// let job = queue.take()?;
/// assert_eq!(queue.push("two"), Err(PushError::Duplicate("two", DuplicateOf::Held)));
/// job.ack();
/// queue.push("two")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum DuplicateOf {
    /// One that is ready, delayed or scheduled.
    Queued,
    /// One that is held by a transaction, or out for delivery.
    Held,
    /// One that is staged by another transaction, which may still abort.
    Staged,
    /// One that was committed less than [`unique_for`](crate::Builder::unique_for) ago.
    Recent,
    /// Another one of the same batch, or one that is staged by the same transaction.
    SameTransaction,
}

error_text!([] DuplicateOf, |of| match of {
    Self::Queued => "an item with this key is in the queue",
    Self::Held => "an item with this key is held",
    Self::Staged => "an item with this key is staged by another transaction",
    Self::Recent => "an item with this key was committed a short time ago",
    Self::SameTransaction => "another item of the same batch or transaction has this key",
});

impl<T> PushError<T> {
    /// Returns the item that was not pushed.
    ///
    /// ```
    /// assert_eq!(requeue::PushError::Closed(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(item)
            | Self::Closed(item)
            | Self::TooHeavy(item)
            | Self::Duplicate(item, _) => item,
        }
    }

    /// Whether there was no room.
    ///
    /// ```
    /// assert!(requeue::PushError::Full(7).is_full());
    /// ```
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Whether the queue is closed.
    ///
    /// ```
    /// assert!(requeue::PushError::Closed(7).is_closed());
    /// ```
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether an item is heavier than the capacity of the queue.
    ///
    /// ```
    /// assert!(requeue::PushError::TooHeavy(7).is_too_heavy());
    /// ```
    pub const fn is_too_heavy(&self) -> bool {
        matches!(self, Self::TooHeavy(_))
    }

    /// Whether another item has the same key.
    ///
    /// ```
    /// use requeue::{DuplicateOf, PushError};
    ///
    /// assert!(PushError::Duplicate(7, DuplicateOf::Held).is_duplicate());
    /// ```
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(..))
    }
}

impl<T> PushError<T> {
    /// The same error with what `f` makes of the items.
    pub(crate) fn map<I>(self, f: impl FnOnce(T) -> I) -> PushError<I> {
        match self {
            Self::Full(items) => PushError::Full(f(items)),
            Self::Closed(items) => PushError::Closed(f(items)),
            Self::TooHeavy(items) => PushError::TooHeavy(f(items)),
            Self::Duplicate(items, of) => PushError::Duplicate(f(items), of),
        }
    }
}

impl PushError<()> {
    /// The error that returns the refused items.
    pub(crate) fn of<I>(self, items: I) -> PushError<I> {
        self.map(|()| items)
    }
}

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::TooHeavy(_) => f.write_str("TooHeavy(..)"),
            Self::Duplicate(_, of) => write!(f, "Duplicate(.., {of:?})"),
        }
    }
}

error_text!([T] PushError<T>, |refused| match refused {
    Self::Full(_) =>
        &"no room: the queue or the item's key is at its limit, or a batch exceeds it" as &dyn fmt::Display,
    Self::Closed(_) => &"the queue is closed",
    Self::TooHeavy(_) => &"an item is heavier than the capacity of the queue",
    Self::Duplicate(_, of) => of,
});

/// A transaction cannot commit: an item that it held was taken back, because its [lease](crate::Builder::leased)
/// expired or by [`Queue::recover`](crate::Queue::recover).
///
/// ```
/// assert_eq!(requeue::Expired.to_string(), "an item was taken back");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired;

error_text!([] Expired, |_| "an item was taken back");

/// A pop found nothing.
///
/// ```
/// use requeue::{PopError, Queue};
///
/// let queue = Queue::<u32>::unbounded();
/// assert_eq!(queue.pop(), Err(PopError::Empty));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// Nothing was ready at some point during the call (linearizable), or no item may be taken now: the queue is
    /// [paused](crate::Queue::pause), its [pace](crate::Builder::pace) allows no start yet, or
    /// [`max_held`](crate::Builder::max_held) items are in flight.
    Empty,
    /// The queue is closed, and no item can become ready any more.
    Closed,
}

impl PopError {
    /// Whether nothing was ready.
    ///
    /// ```
    /// assert!(requeue::PopError::Empty.is_empty());
    /// ```
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Whether the queue is closed and drained.
    ///
    /// ```
    /// assert!(requeue::PopError::Closed.is_closed());
    /// ```
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

error_text!([] PopError, |error| match error {
    Self::Empty => "nothing to pop: the queue is empty, paused or rate limited",
    Self::Closed => "the queue is closed and drained",
});

/// The error of a transaction of a queue in memory, as one of a [`Backend`](crate::backend::Backend).
///
/// ```
/// # futures::executor::block_on(async {
/// use requeue::backend::Tx;
/// use requeue::error::TransactionError;
/// use requeue::{PushError, Wait};
///
/// let queue = requeue::Queue::bounded(1);
/// let tx = queue.begin_owned();
/// Tx::push(&tx, 1, Wait::Never).await.unwrap();
/// let refused = Tx::push(&tx, 2, Wait::Never).await;
/// assert_eq!(refused, Err(TransactionError::Push(PushError::Full(2))));
/// # });
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TransactionError<T> {
    /// A push was refused; it gives the item back.
    Push(PushError<T>),
    /// The commit failed, and the transaction was aborted: an item that it held was taken back.
    Commit(Expired),
    /// There was no room to treat an item apart from the others.
    NoRoom,
}

impl<T> From<PushError<()>> for TransactionError<T> {
    fn from(_: PushError<()>) -> Self {
        Self::NoRoom
    }
}

impl<T> fmt::Debug for TransactionError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push(refused) => fmt::Debug::fmt(refused, f),
            Self::Commit(expired) => fmt::Debug::fmt(expired, f),
            Self::NoRoom => f.write_str("NoRoom"),
        }
    }
}

impl<T> fmt::Display for TransactionError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push(refused) => fmt::Display::fmt(refused, f),
            Self::Commit(expired) => fmt::Display::fmt(expired, f),
            Self::NoRoom => f.write_str("no room to treat an item apart from the others"),
        }
    }
}

impl<T> Error for TransactionError<T> {}

/// The reason why a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Its transaction was aborted or dropped.
    Aborted,
    /// Its transaction was dropped by a panic.
    Panicked,
    /// Its worker gave it back, by [`Transaction::retry`](crate::Transaction::retry) or
    /// [`Transaction::retry_after`](crate::Transaction::retry_after).
    Retried,
    /// Its transaction was forgotten, and ended when its handle was used again or dropped.
    Forgotten,
    /// Its run returned an error, or gave it up by [`Transaction::fail`](crate::Transaction::fail).
    Failed,
    /// It was held for longer than its [lease](crate::Builder::leased), or
    /// [recovered](crate::Queue::recover).
    Expired,
    /// Its [time to live](crate::Builder::ttl) was over before it was delivered once more.
    TimedOut,
}
