//! The state shared by the clones of a pace.

use super::gcra::Gcra;
use super::Limiter;
use crate::sync::{lock, Mutex};
use crate::wait::DueTimer;
use std::ops::Deref;
use std::sync::{Arc, Weak};

/// A limiter, and the wait queues of the queues that use it.
pub(super) struct SharedLimiter {
    pub(super) wait_queues: WaitQueues,
    pub(super) kind: LimiterKind,
}

/// A reference to the state of a pace. Without the feature `rate` this type has no values, and the compiler leaves out all
/// that would use one.
#[derive(Clone)]
pub(super) enum LimiterRef {
    #[cfg(feature = "rate")]
    Shared(Arc<SharedLimiter>),
}

impl Deref for LimiterRef {
    type Target = Arc<SharedLimiter>;

    fn deref(&self) -> &Arc<SharedLimiter> {
        match *self {
            #[cfg(feature = "rate")]
            Self::Shared(ref shared) => shared,
        }
    }
}

/// Whether both are references to the same state.
impl PartialEq for LimiterRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl SharedLimiter {
    pub(super) fn limiter(&self) -> &dyn Limiter {
        match &self.kind {
            LimiterKind::Gcra(gcra) => gcra,
            LimiterKind::Other(limiter) => &**limiter,
        }
    }
}

pub(super) enum LimiterKind {
    Gcra(Gcra),
    Other(Box<dyn Limiter>),
}

/// The wait queues of the queues that use a pace, each as often as the pace was set on its queue.
#[derive(Default)]
pub(super) struct WaitQueues(Mutex<Vec<Weak<DueTimer>>>);

impl WaitQueues {
    pub(super) fn join(&self, wait_queue: &Arc<DueTimer>) {
        let mut wait_queues = lock(&self.0);
        if wait_queues.len() == wait_queues.capacity() {
            wait_queues.retain(is_alive);
            // Amortized: the next search for dropped queues is as many joins away.
            let living = wait_queues.len();
            wait_queues.reserve(living + 1);
        }
        wait_queues.push(Arc::downgrade(wait_queue));
    }

    pub(super) fn leave(&self, wait_queue: &Arc<DueTimer>) {
        let mut wait_queues = lock(&self.0);
        let index = wait_queues
            .iter()
            .position(|other| other.as_ptr() == Arc::as_ptr(wait_queue));
        if let Some(index) = index {
            wait_queues.swap_remove(index);
        }
    }

    /// Wakes all waiters.
    pub(super) fn wake(&self) {
        let wait_queues: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for wait_queue in wait_queues {
            wait_queue.wait_queue().wake_all_waiting();
        }
    }
}

fn is_alive(wait_queue: &Weak<DueTimer>) -> bool {
    wait_queue.strong_count() > 0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::time::Time;
    use crate::wait::{WaitQueue, WaitWord};

    fn wait_queue() -> Arc<DueTimer> {
        let wait_queue = WaitQueue::new(WaitWord::default(), false);
        DueTimer::new(Time::new(None), wait_queue, None)
    }

    #[test]
    fn dropped_queues_are_removed() {
        let (wait_queues, lasting) = (WaitQueues::default(), wait_queue());
        wait_queues.join(&lasting);
        for _ in 0..10_000 {
            wait_queues.join(&wait_queue());
            assert!(lock(&wait_queues.0).len() < 16);
        }
        wait_queues.leave(&lasting);
        assert!(!lock(&wait_queues.0).iter().any(is_alive));
    }

    #[test]
    fn a_queue_stays_until_it_has_left_as_often_as_it_joined() {
        let (wait_queues, wait_queue) = (WaitQueues::default(), wait_queue());
        for _ in 0..2 {
            wait_queues.join(&wait_queue);
        }
        wait_queues.leave(&wait_queue);
        assert_eq!(lock(&wait_queues.0).len(), 1);
        wait_queues.leave(&wait_queue);
        wait_queues.leave(&wait_queue);
        assert!(lock(&wait_queues.0).is_empty());
    }
}
