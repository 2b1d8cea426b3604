//! Failed deliveries.

use crate::raw::Entry;
use crate::time::{Backoff, NEVER};
use crate::Reason;
use std::sync::Arc;

/// The cause of failed deliveries.
#[derive(Clone)]
pub(crate) struct Cause {
    pub(crate) reason: Reason,
    /// The error that the worker reported, if any.
    pub(crate) error: Option<Arc<str>>,
    /// The backoff of the items if the queue has none.
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
    /// When it is due, if it is delayed; when it became a dead letter, if it is one.
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
