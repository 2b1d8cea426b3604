//! Which call of user code panics, and how many values of the user are alive.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

/// A kind of user code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    CloneItem,
    DropItem,
    FindKey,
    Hash,
    Eq,
    DropKey,
    Weigh,
    Now,
    WakeAt,
    Start,
    Cancel,
    GiveBack,
    Spend,
    Owed,
    DropLimiter,
    Wake,
    CloneWaker,
    DropWaker,
    Overflow,
    Visit,
    Next,
    Display,
    Body,
}

impl Call {
    pub(crate) const ALL: [Self; 23] = [
        Self::CloneItem,
        Self::DropItem,
        Self::FindKey,
        Self::Hash,
        Self::Eq,
        Self::DropKey,
        Self::Weigh,
        Self::Now,
        Self::WakeAt,
        Self::Start,
        Self::Cancel,
        Self::GiveBack,
        Self::Spend,
        Self::Owed,
        Self::DropLimiter,
        Self::Wake,
        Self::CloneWaker,
        Self::DropWaker,
        Self::Overflow,
        Self::Visit,
        Self::Next,
        Self::Display,
        Self::Body,
    ];
}

/// What happens in the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Panic,
    /// The clock jumps by that many seconds.
    Jump(i64),
}

/// The payload of a planned panic.
struct Planned;

/// One call of one kind fails.
pub(crate) struct Plan {
    target: Call,
    /// The number of the call that fails, counted from 1.
    number: u64,
    fault: Fault,
    calls: AtomicU64,
    is_armed: AtomicBool,
    /// How many items, keys, clocks, limiters and wakers are alive.
    alive: AtomicI64,
    /// How many slots the limiter has granted that were neither returned nor spent.
    slots: AtomicI64,
}

impl Plan {
    pub(crate) fn new(target: Call, number: u64, fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            target,
            number,
            fault,
            calls: AtomicU64::new(0),
            is_armed: AtomicBool::new(false),
            alive: AtomicI64::new(0),
            slots: AtomicI64::new(0),
        })
    }

    /// User code is called: panics if that is planned. A panic during a panic would end the process.
    pub(crate) fn reach(&self, call: Call) {
        let _ = self.reach_clock(call);
    }

    /// As `reach`; by how many seconds the clock jumps, if it does.
    pub(crate) fn reach_clock(&self, call: Call) -> Option<i64> {
        if call != self.target || !self.is_armed.load(Ordering::SeqCst) || thread::panicking() {
            return None;
        }
        let is_next = self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.number;
        match self.fault {
            Fault::Panic if is_next => resume_unwind(Box::new(Planned)),
            Fault::Jump(seconds) if is_next => Some(seconds),
            _ => None,
        }
    }

    /// Whether calls are counted, and one of them panics; at first they do not.
    pub(crate) fn arm(&self, is_armed: bool) {
        self.is_armed.store(is_armed, Ordering::SeqCst);
    }

    pub(crate) fn panics_in(&self, call: Call) -> bool {
        self.target == call && self.fault == Fault::Panic
    }

    /// Whether the panic must not reach the caller of the queue: the code is called for others, or for what is over.
    pub(crate) fn is_caught(&self) -> bool {
        use Call::{Cancel, GiveBack, Overflow, Wake};
        let caught = [Cancel, GiveBack, Overflow, Wake];
        caught.contains(&self.target)
    }

    pub(crate) fn jumps(&self) -> bool {
        self.fault != Fault::Panic
    }

    pub(crate) fn was_carried_out(&self) -> bool {
        self.calls.load(Ordering::SeqCst) >= self.number
    }

    pub(crate) fn count_alive(&self, change: i64) {
        self.alive.fetch_add(change, Ordering::SeqCst);
    }

    pub(crate) fn alive(&self) -> i64 {
        self.alive.load(Ordering::SeqCst)
    }

    pub(crate) fn count_slots(&self, change: i64) {
        let before = self.slots.fetch_add(change, Ordering::SeqCst);
        assert!(before + change >= 0, "a slot is returned twice");
    }

    pub(crate) fn slots(&self) -> i64 {
        self.slots.load(Ordering::SeqCst)
    }
}

/// A value of the user that is alive.
pub(crate) struct Alive(pub(crate) Arc<Plan>);

impl Alive {
    pub(crate) fn new(plan: &Arc<Plan>) -> Self {
        plan.count_alive(1);
        Self(Arc::clone(plan))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.count_alive(-1);
    }
}

/// The result of `call`; `None` if it panicked as planned.
pub(crate) fn unless_planned<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Planned>() => None,
        Err(panic) => resume_unwind(panic),
    }
}
