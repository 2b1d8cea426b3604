//! A reference to a pace that does not keep its limiter alive.

use super::gcra::Gcra;
use super::shared_limiter::SharedLimiter;
use super::{Limiter, Pace, PaceKind};
use std::fmt;
use std::sync::{Arc, Weak};

/// A reference to a [`Pace`] that does not keep its limiter alive, from [`Pace::downgrade`].
///
/// For the task or thread behind a [shared](Pace::shared) limiter: it [wakes waiters](Pace::wake_waiters), and ends when the
/// last pace is dropped.
#[derive(Clone)]
pub struct WeakPace {
    kind: WeakKind,
}

#[derive(Clone)]
enum WeakKind {
    Unlimited,
    Gcra(Weak<SharedLimiter<Gcra>>),
    Shared(Weak<SharedLimiter<dyn Limiter>>),
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
        let kind = match &self.kind {
            PaceKind::Unlimited => WeakKind::Unlimited,
            PaceKind::Gcra(shared) => WeakKind::Gcra(Arc::downgrade(shared)),
            PaceKind::Shared(shared) => WeakKind::Shared(Arc::downgrade(shared)),
        };
        WeakPace { kind }
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
        let kind = match &self.kind {
            WeakKind::Unlimited => PaceKind::Unlimited,
            WeakKind::Gcra(shared) => PaceKind::Gcra(shared.upgrade()?),
            WeakKind::Shared(shared) => PaceKind::Shared(shared.upgrade()?),
        };
        Some(Pace { kind })
    }
}

impl fmt::Debug for WeakPace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakPace(..)")
    }
}
