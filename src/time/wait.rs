//! How long a call waits.

use std::time::Duration;

/// How long a call waits for an item, for room, or for the queue to be idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// One attempt.
    Never,
    /// By the clock of the queue; one attempt if it is zero.
    For(Duration),
    Forever,
}

impl Wait {
    /// Whether one attempt is all.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Never | Self::For(Duration::ZERO))
    }
}
