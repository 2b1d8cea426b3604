//! A reference to a pace that does not keep its limiter alive.

use super::shared_limiter::{LimiterRef, SharedLimiter};
use super::Pace;
use std::sync::{Arc, Weak};

/// A reference to a [`Pace`] that does not keep its limiter alive, from [`Pace::downgrade`].
///
/// For the task or thread behind a [shared](Pace::shared) limiter: it [wakes waiters](Pace::wake_waiters), and ends when the
/// last pace is dropped.
#[derive(Clone)]
pub struct WeakPace {
    /// `None`: unlimited.
    shared: Option<Weak<SharedLimiter>>,
}

impl Pace {
    /// Creates a reference to this pace that does not keep its limiter alive.
    ///
    /// ```
    /// use requeue::Pace;
    /// use std::time::Duration;
    ///
    /// let pace = Pace::every(Duration::from_secs(1));
    /// let weak = pace.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(pace);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn downgrade(&self) -> WeakPace {
        let shared = self.shared.as_deref().map(Arc::downgrade);
        WeakPace { shared }
    }
}

impl WeakPace {
    /// Returns the pace, unless its last clone was dropped. An [unlimited](Pace::unlimited) pace has no limiter to drop.
    ///
    /// ```
    /// let weak = requeue::Pace::unlimited().downgrade();
    /// assert!(weak.upgrade().is_some());
    /// ```
    pub fn upgrade(&self) -> Option<Pace> {
        let shared = match &self.shared {
            Some(shared) => Some(LimiterRef::Shared(shared.upgrade()?)),
            None => None,
        };
        Some(Pace { shared })
    }
}

debug_struct!([] WeakPace);
