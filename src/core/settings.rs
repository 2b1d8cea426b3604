//! The settings of a queue.

use crate::policy::retry::Failures;
use crate::time::Time;
use crate::Pace;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a queue.
pub(crate) struct Settings<T, M> {
    pub(crate) capacity: Option<usize>,
    pub(crate) failures: Failures<T, M>,
    pub(crate) time: Time,
    pub(crate) timed: bool,
    /// The term of leases, if items are leased.
    pub(crate) lease: Option<Duration>,
    pub(crate) pace: Pace,
    pub(crate) max_held: Option<usize>,
    pub(crate) name: Option<Arc<str>>,
    /// How many items a consumer takes from a shard before it compares shards again.
    pub(crate) stickiness: u32,
}

impl<T, M> Settings<T, M> {
    /// Whether pops check more than the source of items.
    pub(crate) fn slows_pops(&self) -> bool {
        self.failures.has_rules()
            || self.lease.is_some()
            || !self.pace.is_unlimited()
            || self.max_held.is_some()
            || self.name.is_some()
    }
}
