//! When something becomes ready by itself, and who sleeps until then.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `next` | who plans, by a minimum; who has the releases | nothing becomes ready earlier |
//! | `timer` | a waiter that goes to sleep, or has woken; who has the releases; the backup | some waiter is awake by then, if it reacts |
//! | `backup` | who waits or tells of a plan, by a minimum; the backup | the backup is called by then |
//!
//! Who plans treats it as a publication: it looks whether somebody waits, behind the same barrier as
//! one who pushes. So a waiter either sees the plan before it sleeps, or is woken for it.
//!
//! A task that is woken may not be polled for long, or never again. So a queue where tasks wait has a
//! *backup*, a waker of its own, which is called a little after what is planned was due, and wakes all if it
//! still is.

use crate::sync::{planted, step, swallow_panic, weak, AtomicU64, Ordering};
use crate::time::{later, Time, NEVER};
use crate::wait::WaitQueue;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// How late a waiter may be before others are woken in its place.
const GRACE: Duration = Duration::from_millis(100);

/// What the backup's word says where only threads have waited, which always react.
const UNUSED: u64 = 0;

/// What will be due in one queue.
pub(crate) struct DueTimer {
    next: AtomicU64,
    timer: AtomicU64,
    backup: AtomicU64,
    waker: Waker,
    time: Time,
    /// Where those wait who want an item.
    wait_queue: Arc<WaitQueue>,
}

/// Looks whether a waiter is late. It keeps nothing alive, since it may lie in a clock for long.
struct Backup(Weak<DueTimer>);

impl DueTimer {
    pub(crate) fn new(time: Time, wait_queue: Arc<WaitQueue>) -> Arc<Self> {
        Arc::new_cyclic(|due_timer| Self {
            next: AtomicU64::new(NEVER),
            timer: AtomicU64::new(NEVER),
            backup: AtomicU64::new(UNUSED),
            waker: Waker::from(Arc::new(Backup(Weak::clone(due_timer)))),
            time,
            wait_queue,
        })
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
        // ORDERING: Release; pairs with `duetimer.clear`: what is due was put down before. Without a look
        // first: it might find what another thread has just cleared that did not see this.
        (!planted!("duetimer.looks-first") || at < self.next())
            && at < self.next.fetch_min(at, weak!("duetimer.plan", Release))
    }

    /// Forgets what was planned, and the timer for it, since it is due. The caller then looks at all there is,
    /// plans anew, and wakes somebody for that.
    pub(crate) fn clear(&self) {
        self.set_timer(NEVER);
        // ORDERING: Acquire; pairs with `duetimer.plan`: what was planned before is found.
        self.next.swap(NEVER, weak!("duetimer.clear", Acquire));
    }

    /// Until when some waiter sleeps at most.
    pub(crate) fn timer(&self) -> u64 {
        // ORDERING: Relaxed; a waiter that leaves has a full fence after it has cleared this, and looks
        // for others; a waiter that enters has one before it looks here.
        self.timer.load(Ordering::Relaxed)
    }

    /// Says until when a waiter sleeps; [`NEVER`]: that it does not any more.
    pub(crate) fn set_timer(&self, at: u64) {
        // ORDERING: Relaxed; as in `timer`.
        self.timer.store(at, Ordering::Relaxed);
    }
}

/// The backup.
impl DueTimer {
    /// Takes note that a task waits, before it enters the wait queue.
    #[inline]
    pub(crate) fn expect_tasks(&self) {
        // ORDERING: Relaxed; a hint.
        if self.backup.load(Ordering::Relaxed) == UNUSED {
            // ORDERING: Acquire; pairs with `duetimer.call-backup`: whoever was not told by it that tasks wait
            // had planned before, which this task sees. Relaxed, the other; nothing was changed.
            let acquire = weak!("duetimer.expect-tasks", Acquire);
            let _ = self
                .backup
                .compare_exchange(UNUSED, NEVER, acquire, Ordering::Relaxed);
        }
    }

    /// Has the backup called a little after what is planned is due, where tasks wait. A clock that panics is
    /// ignored.
    pub(crate) fn call_backup(&self) {
        let next = self.next();
        if next == NEVER {
            return;
        }
        let at = later(next, GRACE);
        // ORDERING: Release; pairs with `duetimer.look` and `duetimer.expect-tasks`: whoever changes the word
        // next sees what was planned.
        let release = weak!("duetimer.call-backup", Release);
        if at < self.backup.fetch_min(at, release) {
            swallow_panic(|| self.time.wake_at(at, &self.waker));
        }
    }

    /// Wakes all if what is planned is overdue; also if the clock has called too early, so that it is not asked
    /// again and again in vain.
    fn look(&self) {
        // ORDERING: Acquire; pairs with `duetimer.call-backup`.
        let at = self.backup.swap(NEVER, weak!("duetimer.look", Acquire));
        if at == NEVER {
            return;
        }
        let (now, next) = (self.time.now(), self.next());
        if at <= now && now < later(next, GRACE) {
            return self.call_backup();
        }
        self.set_timer(NEVER);
        step!("duetimer.backup-sleeps", self.wait_queue.wake_all());
    }
}

impl Wake for Backup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(due_timer) = self.0.upgrade() {
            due_timer.look();
        }
    }
}

#[cfg(all(loom, test))]
mod models;
