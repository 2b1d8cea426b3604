//! The generic cell rate algorithm: a rate limiter with bursts.

use super::last::Last;
use super::{Limiter, RateSlot};
use crate::sync::{lock, planted, Mutex};
use std::iter;
use std::time::{Duration, Instant};

/// The greatest interval and tolerance, and the value that represents the creation of the limiter: 146 years.
const SPAN: u64 = 1 << 62;

/// A rate limiter that grants slots at intervals.
///
/// Times fit into 63 bits, and so does the sum of an interval and a tolerance: adding the two cannot overflow.
pub(super) struct Gcra {
    /// The instant represented by [`SPAN`].
    origin: Instant,
    state: Mutex<GcraState>,
}

/// The rate, and the starts so far.
#[derive(Clone, Copy)]
struct GcraState {
    interval: u64,
    burst: u32,
    /// The theoretical arrival time: when the cost of all starts so far will be repaid.
    mark: u64,
    last: Last<u64>,
    /// The time of the last start before the interval changed.
    changed: u64,
}

impl Gcra {
    /// Creates a limiter. The interval and the burst must not be zero.
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        Self {
            origin: Instant::now(),
            state: Mutex::new(GcraState {
                interval: span(interval),
                burst,
                mark: 0,
                last: Last::NO_START,
                changed: 0,
            }),
        }
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(lock(&self.state).interval)
    }

    pub(super) fn burst(&self) -> u32 {
        lock(&self.state).burst
    }

    /// Changes the interval, of at least a nanosecond; it applies from the last start on.
    pub(super) fn set_interval(&self, interval: Duration) {
        self.change(|state| state.set_interval(span(interval).max(1)));
    }

    /// Takes a slot, or returns the earliest time at which one is available.
    pub(super) fn take(&self, now: u64) -> Result<(), u64> {
        self.change(|state| state.take(now))
    }

    /// Refunds what is left of the interval of a slot that was taken at `taken`.
    pub(super) fn refund(&self, taken: u64, now: u64) {
        self.change(|state| state.refund(taken, now));
    }

    /// Changes the state under one lock.
    fn change<R>(&self, change: impl FnOnce(&mut GcraState) -> R) -> R {
        let mut copy = planted!("gcra.changes-a-copy").then(|| *lock(&self.state));
        let mut state = lock(&self.state);
        let changed = change(copy.as_mut().unwrap_or(&mut state));
        *state = copy.unwrap_or(*state);
        changed
    }

    /// Counts `slots` that another pace granted, the last of them at `last`.
    pub(super) fn take_over(&self, last: Instant, slots: u32) {
        let mut state = lock(&self.state);
        let cost = state.interval.saturating_mul(slots.into());
        state.count(self.nanos(last), cost);
    }

    fn nanos(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.origin) {
            Some(after) => SPAN + span(after).min(SPAN - 1),
            None => SPAN - span(self.origin.duration_since(at)),
        }
    }
}

impl GcraState {
    /// How far the mark may be ahead when a slot is taken.
    fn tolerance(&self) -> u64 {
        let others = u64::from(self.burst - 1);
        self.interval.saturating_mul(others).min(SPAN)
    }

    fn take(&mut self, now: u64) -> Result<(), u64> {
        let earliest = self.mark.saturating_sub(self.tolerance());
        if earliest > now {
            return Err(earliest);
        }
        self.mark = self.mark.max(now) + self.interval;
        self.last.record(now);
        Ok(())
    }

    fn refund(&mut self, taken: u64, now: u64) {
        if taken >= self.changed {
            let end = taken.saturating_add(self.interval);
            let left = end.saturating_sub(now).min(self.interval);
            self.mark = self.mark.saturating_sub(left);
        }
    }

    fn set_interval(&mut self, interval: u64) {
        let before = std::mem::replace(&mut self.interval, interval);
        if let Some(last) = self.last.get() {
            let backlog = u128::from(self.mark.saturating_sub(last));
            let cost = (backlog * u128::from(interval)).div_ceil(before.into());
            self.changed = last;
            self.mark = 0;
            self.count(last, u64::try_from(cost).unwrap_or(u64::MAX));
        }
    }

    /// Counts the starts until `last`: at least one slot, and at most a burst.
    fn count(&mut self, last: u64, cost: u64) {
        let most = self.interval + self.tolerance();
        let mark = last.saturating_add(cost.clamp(self.interval, most));
        self.mark = self.mark.max(mark);
        self.last.record(last);
    }
}

impl Limiter for Gcra {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let nanos = self.nanos(now);
        let took = self.take(nanos);
        took.map_err(|earliest| after(now, earliest - nanos))?;
        Ok(RateSlot::new(now, nanos))
    }

    fn cancel(&self, slot: RateSlot, now: Instant) {
        let mut state = lock(&self.state);
        state.refund(slot.mark(), self.nanos(now));
        state.last.cancel(slot.mark());
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        if self.burst() > 1 {
            self.refund(slot.mark(), self.nanos(now));
        }
    }

    fn owed(&self, last: Instant) -> u32 {
        let state = lock(&self.state);
        let backlog = state.mark.saturating_sub(self.nanos(last));
        u32::try_from(backlog.div_ceil(state.interval)).unwrap_or(u32::MAX)
    }
}

/// A duration in nanoseconds, clamped to [`SPAN`].
fn span(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(SPAN, |nanos| nanos.min(SPAN))
}

/// The instant `nanos` after `time`. If the system cannot represent it the distance is halved until it can.
fn after(time: Instant, nanos: u64) -> Instant {
    let mut shorter = iter::successors(Some(nanos), |nanos| Some(nanos / 2));
    let found = shorter.find_map(|nanos| time.checked_add(Duration::from_nanos(nanos)));
    found.unwrap_or(time)
}
