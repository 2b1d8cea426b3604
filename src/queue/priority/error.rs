//! Errors of pushes with a priority.

use crate::PushError;
use std::error::Error;
use std::fmt;

/// A push with a priority was refused; it gives the item back.
///
/// ```
/// use requeue::{PriorityError, PriorityQueue};
///
/// let queue = PriorityQueue::by_priority();
/// let refused = queue.priority(0).push("job").unwrap_err();
/// assert_eq!(refused, PriorityError::OutOfRange("job"));
/// assert_eq!(refused.into_inner(), "job");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PriorityError<T> {
    /// There was no room.
    Full(T),
    /// The queue is closed.
    Closed(T),
    /// The priority is out of range.
    OutOfRange(T),
}

impl<T: Send> PriorityError<T> {
    /// Returns the item that was not pushed.
    ///
    /// ```
    /// assert_eq!(requeue::PriorityError::Closed(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(item) | Self::Closed(item) | Self::OutOfRange(item) => item,
        }
    }

    /// Whether there was no room.
    ///
    /// ```
    /// assert!(requeue::PriorityError::Full(7).is_full());
    /// ```
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Whether the queue is closed.
    ///
    /// ```
    /// assert!(requeue::PriorityError::Closed(7).is_closed());
    /// ```
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether the priority is out of range.
    ///
    /// ```
    /// assert!(requeue::PriorityError::OutOfRange(7).is_out_of_range());
    /// ```
    pub const fn is_out_of_range(&self) -> bool {
        matches!(self, Self::OutOfRange(_))
    }
}

impl<T: Send> From<PushError<T>> for PriorityError<T> {
    fn from(refused: PushError<T>) -> Self {
        match refused {
            PushError::Full(item) => Self::Full(item),
            PushError::Closed(item) => Self::Closed(item),
        }
    }
}

impl<T: Send> fmt::Debug for PriorityError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
            Self::OutOfRange(_) => "OutOfRange(..)",
        })
    }
}

impl<T: Send> fmt::Display for PriorityError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => PushError::Full(()).fmt(f),
            Self::Closed(_) => PushError::Closed(()).fmt(f),
            Self::OutOfRange(_) => OutOfRange.fmt(f),
        }
    }
}

impl<T: Send> Error for PriorityError<T> {}

/// The priority is out of range.
///
/// ```
/// use requeue::{OutOfRange, PriorityQueue};
///
/// let queue = PriorityQueue::by_priority();
/// let ticket = queue.priority(1).push("job")?;
/// assert_eq!(queue.reprioritize(ticket, 10_000), Err(OutOfRange));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

error_text!([] OutOfRange, |_| "a priority is a number from 1 to 9999");
