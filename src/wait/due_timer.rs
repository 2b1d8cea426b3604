//! The next due time of a queue, and the leader that sleeps until then (leader-follower).
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `next` | a thread that plans, by `fetch_min`; the thread that releases due items | nothing becomes ready earlier |
//! | `timer` | a waiter that goes to sleep, or has woken; the thread that releases due items; the backup | some waiter wakes by then, if it reacts |
//! | `backup` | a waiter or a thread that announces a plan, by `fetch_min`; the backup | the backup is called by then |
//!
//! A plan is treated as a publication: its thread checks for waiters behind the same barrier as a push. So a waiter
//! either sees the plan before it sleeps, or is woken for it. Where what is due can make room, waiters for room can be
//! the leader too, and a plan wakes one of each kind.
//!
//! A woken task may not be polled for a long time, or never again. So a queue where tasks wait has a *backup*, a waker
//! of its own, which is called a little after the planned time, and wakes all waiters if the plan is still overdue.

use crate::raw::OnceBox;
use crate::sync::{barrier, fetch_min, planted, step, swallow_panic, weak, AtomicU64, Ordering};
#[cfg(feature = "broker")]
use crate::sync::{lock, Mutex};
use crate::time::{later, Time, NEVER};
use crate::wait::{WaitQueue, WakeTarget};
use std::mem;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// How late a leader may be before the backup wakes all waiters.
const GRACE: Duration = Duration::from_millis(100);

/// The value of `backup` while only threads have waited, which always react.
const UNUSED: u64 = 0;

/// The wait queue for the items of one queue, and the next due time.
///
/// What plans write is on another cache line than the word of the wait queue, which all pushes and pops read.
#[repr(C)]
pub(crate) struct DueTimer {
    next: AtomicU64,
    timer: AtomicU64,
    backup: AtomicU64,
    wait_queue: WaitQueue,
    time: Time,
    /// What has the wait queue for room, if what is due can make room.
    room: Option<Arc<dyn Room>>,
    /// What few queues need, made when it is first used.
    rare: OnceBox<Rare>,
}

struct Rare {
    /// The backup as a waker. Always the same one: a clock keeps one timer for each waker.
    waker: Waker,
    #[cfg(feature = "broker")]
    alarm: Mutex<Option<Alarm>>,
}

/// Called when its time is over.
#[cfg(feature = "broker")]
struct Alarm {
    at: u64,
    call: AlarmCall,
}

/// See [`DueTimer::set_alarm`].
#[cfg(feature = "broker")]
pub(crate) type AlarmCall = Arc<dyn Fn() + Send + Sync>;

/// What has a wait queue for room.
pub(crate) trait Room: Send + Sync {
    fn wait_queue(&self) -> &WaitQueue;

    /// Wakes a waiter that may take up a plan of this queue.
    fn notify_planned(&self);
}

/// The waker that checks whether the leader is late. Weak, since a clock may keep it for a long time.
struct Backup(Weak<DueTimer>);

impl DueTimer {
    /// `room`: if what is due can make room.
    pub(crate) fn new(time: Time, wait_queue: WaitQueue, room: Option<Arc<dyn Room>>) -> Arc<Self> {
        Arc::new(Self {
            next: AtomicU64::new(NEVER),
            timer: AtomicU64::new(NEVER),
            backup: AtomicU64::new(UNUSED),
            wait_queue,
            time,
            room,
            rare: OnceBox::default(),
        })
    }

    #[inline]
    pub(crate) fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }

    /// Wakes a waiter for an item to take up a plan, and one for room, if it may make room.
    pub(crate) fn notify_planned(&self) {
        self.wait_queue.notify(1);
        step!("duetimer.plans-no-room", self.notify_room());
    }

    /// Wakes a waiter for room where a plan may make room and no waiter wakes by then: it may have been planned for items alone.
    #[inline]
    pub(crate) fn notify_room_unless_led(&self) {
        if self.room.is_some() && !self.has_leader() {
            self.notify_room();
        }
    }

    /// Wakes a waiter for room to take up a plan, if it may make room.
    pub(crate) fn notify_room(&self) {
        if let Some(room) = &self.room {
            room.notify_planned();
        }
    }

    /// The time before which nothing is due.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // ORDERING: Relaxed; a waiter has a barrier before it, which pairs with that of a thread that plans.
        // Due items are reached under a lock.
        self.next.load(Ordering::Relaxed)
    }

    /// Plans something to be due at `at`; returns whether nothing is due earlier. The caller then checks for waiters.
    pub(crate) fn plan(&self, at: u64) -> bool {
        // ORDERING: Release; pairs with `duetimer.clear`: the due item was stored before. Without a load first, which
        // might return what another thread, which did not see this item, has just cleared.
        (!planted!("duetimer.looks-first") || at < self.next())
            && at < fetch_min(&self.next, at, weak!("duetimer.plan", Release))
    }

    /// Clears the plan and its timer, since it is due. The caller then inspects all items, plans anew, and wakes a
    /// waiter for the new plan.
    pub(crate) fn clear(&self) {
        self.set_timer(NEVER);
        // ORDERING: Acquire; pairs with `duetimer.plan`: the items planned before are found.
        self.next.swap(NEVER, weak!("duetimer.clear", Acquire));
    }

    fn rare(this: &Arc<Self>) -> &Rare {
        this.rare.get_or_add(|| Rare {
            waker: Waker::from(Arc::new(Backup(Arc::downgrade(this)))),
            #[cfg(feature = "broker")]
            alarm: Mutex::new(None),
        })
    }

    /// Plans a call at a time, in place of an earlier one; returns as [`plan`](Self::plan).
    #[cfg(feature = "broker")]
    pub(crate) fn set_alarm(self: &Arc<Self>, at: u64, call: AlarmCall) -> bool {
        let _before = lock(&Self::rare(self).alarm).replace(Alarm { at, call }); // dropped without the lock
        self.plan(at)
    }

    /// After the plan was [cleared](Self::clear): makes the call that is due, or plans it anew.
    #[cfg(feature = "broker")]
    pub(crate) fn ring(&self, now: u64) {
        let Some(rare) = self.rare.get() else {
            return;
        };
        let mut alarm = lock(&rare.alarm);
        match alarm.as_ref().map(|alarm| alarm.at) {
            Some(at) if at > now => {
                step!("duetimer.forgets-alarm", self.plan(at));
            }
            Some(_) => {
                let due = alarm.take();
                drop(alarm);
                if let Some(due) = due {
                    swallow_panic(|| (due.call)()); // others are to be woken yet
                }
            }
            None => {}
        }
    }

    /// The time until which the leader sleeps at most.
    pub(crate) fn timer(&self) -> u64 {
        // ORDERING: Relaxed; a waiter that leaves has a full fence after it has cleared this, and checks
        // for others; a waiter that enters has one before it loads this.
        self.timer.load(Ordering::Relaxed)
    }

    /// Makes a waiter the leader, which sleeps until the next due time at most, unless another waiter is. The backup covers
    /// a leader that does not react.
    pub(crate) fn lead(self: &Arc<Self>, leads: &mut bool, wake_target: &WakeTarget<'_>) {
        let next = self.next();
        if next < self.timer() {
            self.set_timer(next);
            *leads = true;
            wake_target.wake_at(&self.time, next);
        }
        self.call_backup();
    }

    /// Ends the lead of a waiter; returns whether it was the leader.
    #[inline]
    pub(crate) fn stop_leading(&self, leads: &mut bool) -> bool {
        let led = mem::take(leads);
        if led {
            self.set_timer(NEVER);
        }
        led
    }

    /// Wakes another waiter to become the leader, after one has given up the lead.
    pub(crate) fn hand_over_lead(self: &Arc<Self>) {
        barrier::full("waits.hand-over");
        self.call_backup();
        if self.next() != NEVER {
            self.notify_planned();
        }
    }

    /// Whether some waiter, if it reacts, wakes by the planned time.
    pub(crate) fn has_leader(&self) -> bool {
        self.timer() <= self.next()
    }

    /// Sets the time until which the leader sleeps; [`NEVER`]: there is no leader.
    pub(crate) fn set_timer(&self, at: u64) {
        // ORDERING: Relaxed; as in `timer`.
        self.timer.store(at, Ordering::Relaxed);
    }
}

/// The backup.
impl DueTimer {
    /// Records that tasks wait in this queue, before one enters the wait queue.
    #[inline]
    pub(crate) fn expect_tasks(&self) {
        // ORDERING: Relaxed; a hint.
        if self.backup.load(Ordering::Relaxed) == UNUSED {
            // ORDERING: Acquire; pairs with `duetimer.call-backup`: a thread that did not see there that tasks wait
            // had planned before, which this task sees. Relaxed, the other; nothing was changed.
            let acquire = weak!("duetimer.expect-tasks", Acquire);
            let _ = self
                .backup
                .compare_exchange(UNUSED, NEVER, acquire, Ordering::Relaxed);
        }
    }

    /// Schedules the backup for a little after the planned time, if tasks wait. A clock's panic is caught.
    pub(crate) fn call_backup(self: &Arc<Self>) {
        let next = self.next();
        if next == NEVER {
            return;
        }
        let at = later(next, GRACE);
        // ORDERING: Release; pairs with `duetimer.look` and `duetimer.expect-tasks`: the next thread that changes the
        // word sees the plan.
        let release = weak!("duetimer.call-backup", Release);
        if at < fetch_min(&self.backup, at, release) {
            swallow_panic(|| self.time.wake_at(at, &Self::rare(self).waker));
        }
    }

    /// Wakes all waiters if the plan is overdue; also if the clock has called too early, so that the call is not
    /// rescheduled again and again.
    fn check(self: &Arc<Self>) {
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
        if let Some(room) = &self.room {
            room.wait_queue().wake_all();
        }
    }
}

impl Wake for Backup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(due_timer) = self.0.upgrade() {
            due_timer.check();
        }
    }
}

#[cfg(all(loom, test))]
mod models;
