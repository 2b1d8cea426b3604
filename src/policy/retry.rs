//! The rules for failed deliveries whose items do not just return to the head.
//!
//! An item that was delivered too often becomes a dead letter; one that is to be retried later is
//! delayed until it is due. Both are put into an inbox first, so that an abort neither blocks nor allocates:
//! the envelopes were allocated when the items were taken.

use super::dead::Letters;
use super::delay::Delayed;
use super::failed::Cause;
use crate::raw::{DeliveryMeta, Stored};
use crate::time::Backoff;
use std::num::NonZeroU32;
use std::time::Duration;

/// The destination of an item whose delivery failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disposition {
    /// Back to the head.
    Head,
    /// To the tail.
    Tail,
    /// Delayed for this duration.
    Delay(Duration),
    /// To the dead letters, where a place is reserved for it.
    Death,
    /// It is discarded.
    Discard,
}

impl Disposition {
    /// Whether the item is not in the queue any more.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, Self::Death | Self::Discard)
    }
}

/// Where the item of a failed delivery goes back to: see [`Builder::on_failure`](crate::Builder::on_failure).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReturnTo {
    /// Ahead of the items that were not delivered yet.
    #[default]
    Head,
    /// Behind the items that are ready.
    Tail,
}

impl From<ReturnTo> for Disposition {
    fn from(to: ReturnTo) -> Self {
        match to {
            ReturnTo::Head => Self::Head,
            ReturnTo::Tail => Self::Tail,
        }
    }
}

/// The rules of a queue for failed deliveries, with the delayed items and dead letters.
pub(crate) struct Failures<T, M> {
    pub(super) max_attempts: Option<NonZeroU32>,
    pub(super) backoff: Option<Backoff>,
    pub(super) return_to: ReturnTo,
    pub(crate) delayed: Delayed<Stored<T, M>>,
    pub(crate) letters: Letters<T, M>,
}

impl<T, M> Failures<T, M> {
    /// Whether an item that fails can go elsewhere than to the head.
    #[inline]
    pub(crate) fn has_rules(&self) -> bool {
        self.max_attempts.is_some() || self.backoff.is_some()
    }

    /// Whether an item that fails with this cause can go elsewhere than to the head.
    #[inline]
    pub(crate) fn may_reroute(&self, cause: &Cause) -> bool {
        self.has_rules() || cause.backoff.is_some() || self.return_to != ReturnTo::Head
    }

    /// Whether items that fail with this cause are delayed.
    pub(crate) fn may_delay(&self, cause: &Cause) -> bool {
        self.backoff.or(cause.backoff).is_some()
    }

    /// The destination of an item whose delivery failed. If that is [`Disposition::Death`], a place is reserved for it.
    pub(crate) fn disposition(&self, delivery: DeliveryMeta, cause: &Cause) -> Disposition {
        let backoff = self.backoff.or(cause.backoff);
        let delay = backoff.map(|backoff| backoff.delay(delivery.attempts));
        self.disposition_after(delivery, delay.unwrap_or_default())
    }

    /// As [`Failures::disposition`], with a given delay before a retry.
    pub(crate) fn disposition_after(&self, delivery: DeliveryMeta, delay: Duration) -> Disposition {
        if delay.is_zero() {
            return self.disposition_to(delivery, self.return_to);
        }
        self.unless_last(delivery, Disposition::Delay(delay))
    }

    /// As [`Failures::disposition`], with a given place where the item returns at once.
    pub(crate) fn disposition_to(&self, delivery: DeliveryMeta, to: ReturnTo) -> Disposition {
        self.unless_last(delivery, to.into())
    }

    fn unless_last(&self, delivery: DeliveryMeta, otherwise: Disposition) -> Disposition {
        let is_last = |max: NonZeroU32| delivery.attempts >= max.get();
        if self.max_attempts.is_some_and(is_last) && self.letters.reserve() {
            Disposition::Death
        } else {
            otherwise
        }
    }
}
