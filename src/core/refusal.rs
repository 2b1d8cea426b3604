//! Refusals of pushes.

use crate::PushError;

/// The reason why a push is refused for good: waiting would not help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The queue is closed.
    Closed,
    /// A key is at its limit, or only the end of a transaction that itself waits for this push could make room.
    Full,
}

impl Refusal {
    /// The error that returns the refused items.
    pub(crate) fn of<I>(self, items: I) -> PushError<I> {
        match self {
            Self::Closed => PushError::Closed(items),
            Self::Full => PushError::Full(items),
        }
    }
}

/// The result of an admission check. `None`: there is no room now, but waiting may help.
pub(crate) type Admission<L = ()> = Option<Result<L, Refusal>>;
