//! What a queue is made from.

use crate::policy::lease::Lease;
use crate::policy::retry::Failures;
use crate::time::Time;
use crate::Pace;
use std::sync::Arc;

/// What a queue is made from.
pub(crate) struct Settings<T> {
    pub(crate) capacity: Option<usize>,
    pub(crate) failures: Failures<T>,
    pub(crate) time: Time,
    pub(crate) timed: bool,
    pub(crate) lease: Option<Lease<T>>,
    /// Whether a discipline says which item is next.
    pub(crate) ordered: bool,
    pub(crate) pace: Pace,
    pub(crate) max_held: Option<usize>,
    pub(crate) name: Option<Arc<str>>,
}

impl<T> Settings<T> {
    /// Whether pops have to look at more than the lanes.
    pub(crate) fn is_attended(&self) -> bool {
        self.failures.has_rules()
            || self.timed
            || self.ordered
            || self.lease.is_some()
            || !self.pace.is_unlimited()
            || self.max_held.is_some()
            || self.name.is_some()
    }
}
