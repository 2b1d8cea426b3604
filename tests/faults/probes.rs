//! User code that panics as planned: items, keys, clocks, limiters, errors.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::plan::{Alive, Call, Plan};
use requeue::{Clock, Limiter, ManualClock, RateSlot, SystemClock};

/// An item with a number.
pub(crate) struct Probe {
    pub(crate) id: usize,
    alive: Alive,
}

impl Probe {
    pub(crate) fn new(id: usize, plan: &Arc<Plan>) -> Self {
        let alive = Alive::new(plan);
        Self { id, alive }
    }

    pub(crate) fn weigh(&self) -> usize {
        self.alive.0.reach(Call::Weigh);
        1
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        self.alive.0.reach(Call::CloneItem);
        Self::new(self.id, &self.alive.0)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.alive.0.reach(Call::DropItem);
    }
}

/// The key of an item. There are two keys, with one hash.
pub(crate) struct ProbeKey {
    is_odd: bool,
    alive: Alive,
}

impl ProbeKey {
    pub(crate) fn of(item: &Probe) -> Self {
        let plan = &item.alive.0;
        plan.reach(Call::FindKey);
        let (is_odd, alive) = (item.id % 2 == 1, Alive::new(plan));
        Self { is_odd, alive }
    }

    pub(crate) fn weight(&self) -> u32 {
        self.alive.0.reach(Call::Weigh);
        1 + u32::from(self.is_odd)
    }
}

impl PartialEq for ProbeKey {
    fn eq(&self, other: &Self) -> bool {
        self.alive.0.reach(Call::Eq);
        self.is_odd == other.is_odd
    }
}

impl Eq for ProbeKey {}

impl Hash for ProbeKey {
    fn hash<H: Hasher>(&self, _: &mut H) {
        self.alive.0.reach(Call::Hash);
    }
}

impl Drop for ProbeKey {
    fn drop(&mut self) {
        self.alive.0.reach(Call::DropKey);
    }
}

/// A clock that can panic or jump.
pub(crate) struct ProbeClock<C>(pub(crate) C, pub(crate) Alive);

impl Clock for ProbeClock<ManualClock> {
    fn now(&self) -> Instant {
        if let Some(seconds) = self.1 .0.reach_clock(Call::Now) {
            jump(&self.0, seconds);
        }
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.1 .0.reach(Call::WakeAt);
        self.0.wake_at(at, waker);
    }
}

impl Clock for ProbeClock<SystemClock> {
    fn now(&self) -> Instant {
        self.1 .0.reach(Call::Now);
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.1 .0.reach(Call::WakeAt);
        self.0.wake_at(at, waker);
    }
}

/// Moves a clock by a number of seconds, if the system can represent the time.
pub(crate) fn jump(clock: &ManualClock, seconds: i64) {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let now = clock.now();
    let then = if seconds < 0 {
        now.checked_sub(by)
    } else {
        now.checked_add(by)
    };
    clock.set(then.unwrap_or(now));
}

/// Grants up to eight slots at a time.
pub(crate) struct ProbeLimiter(pub(crate) Alive);

impl ProbeLimiter {
    fn end(&self, call: Call) {
        let plan = &self.0 .0;
        plan.count_slots(-1);
        plan.reach(call);
    }
}

impl Limiter for ProbeLimiter {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let plan = &self.0 .0;
        plan.reach(Call::Start);
        if plan.slots() >= 8 {
            return Err(now + Duration::from_millis(1));
        }
        plan.count_slots(1);
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {
        self.end(Call::Cancel);
    }

    fn give_back(&self, _: RateSlot, _: Instant) {
        self.end(Call::GiveBack);
    }

    fn spend(&self, _: RateSlot) {
        self.end(Call::Spend);
    }

    fn owed(&self, _: Instant) -> u32 {
        self.0 .0.reach(Call::Owed);
        1
    }
}

impl Drop for ProbeLimiter {
    fn drop(&mut self) {
        self.0 .0.reach(Call::DropLimiter);
    }
}

/// The error of a failed item.
pub(crate) struct ProbeError(pub(crate) Arc<Plan>);

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.reach(Call::Display);
        f.write_str("the job failed")
    }
}
