//! How long a call waits.

use super::Time;
use std::time::{Duration, Instant};

/// How long a call waits for an item, for room, or until a queue is idle.
///
/// Each value is a form of the verbs that wait: `pop` waits [`Never`](Self::Never), `pop_blocking`
/// [`Forever`](Self::Forever), `pop_timeout` [`For`](Self::For) a duration, and `pop_deadline` [`Until`](Self::Until) an
/// instant. As a value it is a parameter of code that does not choose the form itself.
///
/// ```
/// use requeue::Wait;
/// use std::time::Duration;
///
/// let limit_from_settings: Option<Duration> = None;
/// let wait = limit_from_settings.map_or(Wait::Forever, Wait::For);
/// assert_eq!(wait, Wait::Forever);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wait {
    /// One attempt.
    Never,
    /// By the clock of the queue, from the call on. Zero is one attempt.
    For(Duration),
    /// Until this instant of the clock of the queue. One attempt if it is past.
    Until(Instant),
    /// Until there is a result.
    Forever,
}

impl Wait {
    /// The instant at which a wait ends that begins `now`; `None` if it never does.
    ///
    /// ```
    /// use requeue::Wait;
    /// use std::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Wait::For(second).deadline(now), Some(now + second));
    /// assert_eq!(Wait::Forever.deadline(now), None);
    /// ```
    pub fn deadline(self, now: Instant) -> Option<Instant> {
        match self {
            Self::Never => Some(now),
            Self::For(timeout) => now.checked_add(timeout),
            Self::Until(deadline) => Some(deadline),
            Self::Forever => None,
        }
    }

    /// Whether one attempt is all. Reads the clock only for an instant.
    #[inline]
    pub(crate) fn is_over(self, time: &Time) -> bool {
        match self {
            Self::Never | Self::For(Duration::ZERO) => true,
            Self::Until(deadline) => time.now() >= time.nanos(deadline),
            Self::For(_) | Self::Forever => false,
        }
    }

    /// The time at which a wait that begins now ends, if it ever does.
    pub(crate) fn end(self, time: &Time) -> Option<u64> {
        match self {
            Self::Never => Some(0),
            Self::For(timeout) => Some(time.after(timeout)),
            Self::Until(deadline) => Some(time.nanos(deadline)),
            Self::Forever => None,
        }
    }
}
