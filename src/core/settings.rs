//! What a queue is made from.

use crate::policy::retry::Failures;
use crate::time::Time;
use crate::Pace;
use std::sync::Arc;
use std::time::Duration;

/// What a queue is made from.
pub(crate) struct Settings<T, M> {
    pub(crate) capacity: Option<usize>,
    pub(crate) failures: Failures<T, M>,
    pub(crate) time: Time,
    pub(crate) timed: bool,
    /// How long items are leased, if they are.
    pub(crate) lease: Option<Duration>,
    pub(crate) pace: Pace,
    pub(crate) max_held: Option<usize>,
    pub(crate) name: Option<Arc<str>>,
}

impl<T, M> Settings<T, M> {
    /// Whether pops have to look at more than where items are taken from.
    pub(crate) fn slows_pops(&self) -> bool {
        self.failures.has_rules()
            || self.lease.is_some()
            || !self.pace.is_unlimited()
            || self.max_held.is_some()
            || self.name.is_some()
    }
}
