//! The settings of a queue.

use crate::policy::dead::{Letters, Overflow};
use crate::policy::retry::Failures;
use crate::time::{Backoff, Clock, Time};
use crate::Pace;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// How many items a consumer takes from a shard before it compares shards again, unless it is set.
const STICKINESS: u32 = 64;

/// The settings of a queue of any order, with a function for dead letters beyond their limit.
#[derive(Clone)]
pub(crate) struct Settings<F> {
    pub(crate) capacity: Option<usize>,
    pub(crate) max_attempts: Option<NonZeroU32>,
    pub(crate) max_dead_letters: usize,
    pub(crate) on_dead_overflow: Option<F>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) timestamps: bool,
    /// The term of leases, if items are leased.
    pub(crate) lease: Option<Duration>,
    pub(crate) pace: Pace,
    pub(crate) max_held: Option<usize>,
    pub(crate) paused: bool,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) stickiness: u32,
}

impl<F> Settings<F> {
    pub(crate) fn new() -> Self {
        Self {
            capacity: None,
            max_attempts: None,
            max_dead_letters: usize::MAX,
            on_dead_overflow: None,
            backoff: None,
            clock: None,
            timestamps: false,
            lease: None,
            pace: Pace::unlimited(),
            max_held: None,
            paused: false,
            name: None,
            stickiness: STICKINESS,
        }
    }

    /// Whether pops check more than the source of items.
    pub(crate) fn slows_pops(&self) -> bool {
        self.max_attempts.is_some()
            || self.backoff.is_some()
            || self.lease.is_some()
            || !self.pace.is_unlimited()
            || self.max_held.is_some()
            || self.name.is_some()
    }

    pub(crate) fn time(&self) -> Time {
        let clock = self.clock.clone();
        clock.map_or_else(Time::system, Time::of)
    }
}

impl<T> Settings<Overflow<T>> {
    pub(crate) fn failures<M>(&self) -> Failures<T, M> {
        let letters = Letters::new(self.max_dead_letters, self.on_dead_overflow.clone());
        Failures::new(self.max_attempts, self.backoff, letters)
    }
}
