//! When something becomes ready by itself, and who sleeps until then.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `next` | who plans, by a minimum; who has the releases | nothing becomes ready earlier |
//! | `alarm` | a waiter that goes to sleep, or has woken | some waiter is awake by then |
//!
//! Who plans treats it as a publication: it looks whether somebody waits, behind the same barrier as
//! one who pushes. So a waiter either sees the plan before it sleeps, or is woken for it.

use crate::sync::{AtomicU64, Ordering};
use crate::time::NEVER;

/// What will be due in one queue.
pub(crate) struct Agenda {
    next: AtomicU64,
    alarm: AtomicU64,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicU64::new(NEVER),
            alarm: AtomicU64::new(NEVER),
        }
    }

    /// Nothing is due before.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // ORDERING: Relaxed; who waits has a barrier before it that pairs with the one of who plans.
        // What is due is reached under a lock.
        self.next.load(Ordering::Relaxed)
    }

    /// Says that something will be due: true if nothing is due earlier. The caller then looks whether
    /// somebody waits.
    pub(crate) fn plan(&self, at: u64) -> bool {
        // ORDERING: Release; pairs with the Acquire in `clear`: what is due was put down before. Without a
        // look first: it might find what another thread has just cleared that did not see this.
        at < self.next.fetch_min(at, Ordering::Release)
    }

    /// Forgets what was planned. The caller then looks at all there is, and plans anew.
    pub(crate) fn clear(&self) {
        // ORDERING: Acquire; pairs with the Release in `plan`: what was planned before is found.
        self.next.swap(NEVER, Ordering::Acquire);
    }

    /// Until when some waiter sleeps at most.
    pub(crate) fn alarm(&self) -> u64 {
        // ORDERING: Relaxed; a waiter that leaves has a full fence after it has cleared this, and looks
        // for others; a waiter that enters has one before it looks here.
        self.alarm.load(Ordering::Relaxed)
    }

    /// Says until when a waiter sleeps; [`NEVER`]: that it does not any more.
    pub(crate) fn set_alarm(&self, at: u64) {
        // ORDERING: Relaxed; as in `alarm`.
        self.alarm.store(at, Ordering::Relaxed);
    }
}
