//! Backoff: the delay before another attempt.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// The number of doublings that take a nanosecond beyond [`Duration::MAX`].
const DOUBLINGS: u32 = 94;

/// The delay before a failed item is delivered again.
///
/// ```
/// use requeue::Backoff;
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let backoff = Backoff::exponential(second, 10 * second);
/// let delays = [1, 2, 3, 4, 5].map(|failures| backoff.delay(failures).as_secs());
/// assert_eq!(delays, [1, 2, 4, 8, 10]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a backoff does nothing unless it is used"]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    jitter: bool,
}

impl Backoff {
    /// Creates a backoff with the same delay after each failure.
    ///
    /// ```
    /// use requeue::Backoff;
    /// use std::time::Duration;
    ///
    /// let backoff = Backoff::fixed(Duration::from_secs(5));
    /// assert_eq!(backoff.delay(1), Duration::from_secs(5));
    /// assert_eq!(backoff.delay(100), Duration::from_secs(5));
    /// ```
    pub const fn fixed(delay: Duration) -> Self {
        Self::exponential(delay, delay)
    }

    /// Creates a backoff whose delay doubles with each failure, up to `cap`.
    ///
    /// ```
    /// use requeue::Backoff;
    /// use std::time::Duration;
    ///
    /// let (first, cap) = (Duration::from_millis(100), Duration::from_secs(60));
    /// let backoff = Backoff::exponential(first, cap);
    /// assert_eq!(backoff.delay(4), 8 * first);
    /// assert_eq!(backoff.delay(u32::MAX), cap);
    /// ```
    pub const fn exponential(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap,
            jitter: false,
        }
    }

    /// Shortens each delay at random by up to half, so that items that failed together are not retried
    /// together.
    ///
    /// This is the "equal jitter" of Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
    /// 2015. The "full jitter" of that article can remove the whole delay, which spreads retries even better; but
    /// then some items are retried at once, and use up their attempts before the cause of the failure can recover.
    ///
    /// ```
    /// use requeue::Backoff;
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff = Backoff::fixed(second).with_jitter();
    /// assert!((second / 2..=second).contains(&backoff.delay(1)));
    /// ```
    pub const fn with_jitter(mut self) -> Self {
        self.jitter = true;
        self
    }

    /// Returns the delay after `failures` failures in a row; 0 failures count as one.
    ///
    /// ```
    /// use requeue::Backoff;
    /// use std::time::Duration;
    ///
    /// let millisecond = Duration::from_millis(1);
    /// let backoff = Backoff::exponential(millisecond, Duration::MAX);
    /// assert_eq!(backoff.delay(1), millisecond);
    /// assert_eq!(backoff.delay(11), 1024 * millisecond);
    /// ```
    pub fn delay(&self, failures: u32) -> Duration {
        if self.jitter {
            self.delay_with(failures, random())
        } else {
            self.longest(failures)
        }
    }

    /// The delay without jitter.
    fn longest(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(DOUBLINGS);
        let delay = (0..doublings).fold(self.first, |delay, _| delay.saturating_mul(2));
        delay.min(self.cap)
    }

    /// The delay with jitter: from half of the delay, if `random` is 0, to all of it, if `random` is `u32::MAX`.
    pub(super) fn delay_with(&self, failures: u32, random: u32) -> Duration {
        let longest = self.longest(failures);
        let half = longest / 2;
        let part = half.mul_f64(f64::from(random) / f64::from(u32::MAX));
        let rest = longest.saturating_sub(half);
        rest.saturating_add(part).min(longest)
    }
}

/// A random number: the standard library seeds each [`RandomState`] differently.
fn random() -> u32 {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}
