//! What becomes of items whose delivery failed, where they do not just go back to the head.
//!
//! An item that was delivered too often becomes a dead letter; one that is to be retried later is
//! delayed until it is due. Both lie in an inbox first, so that an abort neither waits nor allocates:
//! the envelopes were set aside when the items were taken.

use super::dead::Letters;
use super::delay::Delayed;
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::time::{Backoff, NEVER};
use crate::Reason;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Why deliveries failed.
#[derive(Clone)]
pub(crate) struct Cause {
    pub(crate) reason: Reason,
    /// The error of the worker, if it said one.
    pub(crate) error: Option<Arc<str>>,
    /// How long the items are out of the way where the queue does not say.
    pub(crate) backoff: Option<Backoff>,
}

impl From<Reason> for Cause {
    #[inline]
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            error: None,
            backoff: None,
        }
    }
}

/// An item whose delivery failed.
pub(crate) struct Failed<T> {
    pub(crate) entry: Entry<T>,
    pub(crate) reason: Reason,
    pub(crate) error: Option<Arc<str>>,
    /// When it is due, if it is delayed; when it died, if it is dead.
    pub(crate) due: u64,
    /// The number of the dead letter, if it is one.
    pub(crate) letter: u64,
}

impl<T> Failed<T> {
    pub(crate) fn new(entry: Entry<T>, cause: &Cause) -> Self {
        Self {
            entry,
            reason: cause.reason,
            error: cause.error.clone(),
            due: NEVER,
            letter: 0,
        }
    }
}

/// Where an item goes whose delivery failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Back to where it came from.
    Head,
    /// It is out of the way for a time.
    Delay(Duration),
    /// To the dead letters, where there is a place for it.
    Death,
}

/// The rules of a queue for failed deliveries, and what they have put aside.
pub(crate) struct Failures<T, M> {
    max_attempts: Option<NonZeroU32>,
    backoff: Option<Backoff>,
    pub(crate) delayed: Delayed<Stored<T, M>>,
    pub(crate) letters: Letters<T, M>,
}

impl<T, M> Failures<T, M> {
    pub(crate) fn new(
        max_attempts: Option<NonZeroU32>,
        backoff: Option<Backoff>,
        letters: Letters<T, M>,
    ) -> Self {
        Self {
            max_attempts,
            backoff,
            delayed: Delayed::new(),
            letters,
        }
    }

    /// Whether any item may go elsewhere than to the head.
    #[inline]
    pub(crate) fn has_rules(&self) -> bool {
        self.max_attempts.is_some() || self.backoff.is_some()
    }

    /// Whether any item that fails by this cause may go elsewhere than to the head.
    #[inline]
    pub(crate) fn may_reroute(&self, cause: &Cause) -> bool {
        self.has_rules() || cause.backoff.is_some()
    }

    /// Whether what fails by this cause is delayed.
    pub(crate) fn may_delay(&self, cause: &Cause) -> bool {
        self.backoff.or(cause.backoff).is_some()
    }

    /// Where an item goes whose delivery failed, by these rules. If that is [`Fate::Death`] a place is taken
    /// for it.
    pub(crate) fn fate(&self, delivery: DeliveryMeta, cause: &Cause) -> Fate {
        let backoff = self.backoff.or(cause.backoff);
        let delay = backoff.map(|backoff| backoff.delay(delivery.attempts));
        self.fate_after(delivery, delay.unwrap_or_default())
    }

    /// As [`Failures::fate`], with this delay if it is to be retried.
    pub(crate) fn fate_after(&self, delivery: DeliveryMeta, delay: Duration) -> Fate {
        let is_last = |max: NonZeroU32| delivery.attempts >= max.get();
        if self.max_attempts.is_some_and(is_last) && self.letters.reserve() {
            Fate::Death
        } else if delay.is_zero() {
            Fate::Head
        } else {
            Fate::Delay(delay)
        }
    }
}
