//! When something becomes ready by itself, and who sleeps until then.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `next` | who plans, by a minimum; who has the releases | nothing becomes ready earlier |
//! | `alarm` | a waiter that goes to sleep, or has woken; who has the releases; the reserve | some waiter is awake by then, if it reacts |
//! | `reserve` | who waits or tells of a plan, by a minimum; the reserve | the reserve is called by then |
//!
//! Who plans treats it as a publication: it looks whether somebody waits, behind the same barrier as
//! one who pushes. So a waiter either sees the plan before it sleeps, or is woken for it.
//!
//! A task that is woken may not be polled for long, or never again. So a queue where tasks wait has a
//! *reserve*, a waker of its own, which is called a little after what is planned was due, and wakes all if it
//! still is.

use crate::sync::{planted, step, swallow_panic, weak, AtomicU64, Ordering};
use crate::time::{later, Time, NEVER};
use crate::wait::Line;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// How late a waiter may be before others are woken in its place.
const GRACE: Duration = Duration::from_millis(100);

/// What the reserve's word says where only threads have waited, which always react.
const UNUSED: u64 = 0;

/// What will be due in one queue.
pub(crate) struct Agenda {
    next: AtomicU64,
    alarm: AtomicU64,
    reserve: AtomicU64,
    waker: Waker,
    time: Time,
    /// Where those wait who want an item.
    line: Arc<Line>,
}

/// Looks whether a waiter is late. It keeps nothing alive, since it may lie in a clock for long.
struct Reserve(Weak<Agenda>);

impl Agenda {
    pub(crate) fn new(time: Time, line: Arc<Line>) -> Arc<Self> {
        Arc::new_cyclic(|agenda| Self {
            next: AtomicU64::new(NEVER),
            alarm: AtomicU64::new(NEVER),
            reserve: AtomicU64::new(UNUSED),
            waker: Waker::from(Arc::new(Reserve(Weak::clone(agenda)))),
            time,
            line,
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
        // ORDERING: Release; pairs with `agenda.clear`: what is due was put down before. Without a look
        // first: it might find what another thread has just cleared that did not see this.
        (!planted!("agenda.looks-first") || at < self.next())
            && at < self.next.fetch_min(at, weak!("agenda.plan", Release))
    }

    /// Forgets what was planned, and the alarm for it, since it is due. The caller then looks at all there is,
    /// plans anew, and wakes somebody for that.
    pub(crate) fn clear(&self) {
        self.set_alarm(NEVER);
        // ORDERING: Acquire; pairs with `agenda.plan`: what was planned before is found.
        self.next.swap(NEVER, weak!("agenda.clear", Acquire));
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

/// The reserve.
impl Agenda {
    /// Takes note that a task waits, before it enters the line.
    #[inline]
    pub(crate) fn expect_tasks(&self) {
        // ORDERING: Relaxed; a hint.
        if self.reserve.load(Ordering::Relaxed) == UNUSED {
            // ORDERING: Acquire; pairs with `agenda.call-reserve`: whoever was not told by it that tasks wait
            // had planned before, which this task sees. Relaxed, the other; nothing was changed.
            let acquire = weak!("agenda.expect-tasks", Acquire);
            let _ = self
                .reserve
                .compare_exchange(UNUSED, NEVER, acquire, Ordering::Relaxed);
        }
    }

    /// Has the reserve called a little after what is planned is due, where tasks wait. A clock that panics is
    /// ignored.
    pub(crate) fn call_reserve(&self) {
        let next = self.next();
        if next == NEVER {
            return;
        }
        let at = later(next, GRACE);
        // ORDERING: Release; pairs with `agenda.look` and `agenda.expect-tasks`: whoever changes the word
        // next sees what was planned.
        let release = weak!("agenda.call-reserve", Release);
        if at < self.reserve.fetch_min(at, release) {
            swallow_panic(|| self.time.wake_at(at, &self.waker));
        }
    }

    /// Wakes all if what is planned is overdue; also if the clock has called too early, so that it is not asked
    /// again and again in vain.
    fn look(&self) {
        // ORDERING: Acquire; pairs with `agenda.call-reserve`.
        let at = self.reserve.swap(NEVER, weak!("agenda.look", Acquire));
        if at == NEVER {
            return;
        }
        let (now, next) = (self.time.now(), self.next());
        if at <= now && now < later(next, GRACE) {
            return self.call_reserve();
        }
        self.set_alarm(NEVER);
        step!("agenda.reserve-sleeps", self.line.wake_all());
    }
}

impl Wake for Reserve {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(agenda) = self.0.upgrade() {
            agenda.look();
        }
    }
}

#[cfg(all(loom, test))]
mod models;
