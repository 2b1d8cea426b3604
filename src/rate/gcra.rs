//! The limiter: a rate with a burst.

use super::last::Last;
use super::{Limiter, RateSlot};
use crate::sync::{lock, planted, Mutex};
use std::iter;
use std::time::{Duration, Instant};

/// The greatest interval and tolerance, and what the word counts up to when the limiter is made: 146 years.
const SPAN: u64 = 1 << 62;

/// Gives turns at intervals.
///
/// Times fit into 63 bits, an interval and a tolerance together into as many: so their sum fits.
pub(super) struct Gcra {
    /// The time [`SPAN`].
    origin: Instant,
    state: Mutex<GcraState>,
}

/// What was started, and when that will be paid for.
#[derive(Clone, Copy)]
struct GcraState {
    interval: u64,
    burst: u32,
    /// When all that was started is paid for.
    mark: u64,
    last: Last<u64>,
    /// When the last start was before the interval changed.
    changed: u64,
}

impl Gcra {
    /// A limiter for an interval that is not zero, and a burst that is not 0.
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        Self {
            origin: Instant::now(),
            state: Mutex::new(GcraState {
                interval: span(interval),
                burst,
                mark: 0,
                last: Last::default(),
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

    /// Changes the interval to one that is not zero, as if it had been so from the last start on.
    pub(super) fn set_interval(&self, interval: Duration) {
        self.change(|state| state.set_interval(span(interval)));
    }

    /// Takes a turn, or says from when on one may be had.
    pub(super) fn take(&self, now: u64) -> Result<(), u64> {
        self.change(|state| state.take(now))
    }

    /// Takes back what is left of the interval of a turn that was had at some time.
    pub(super) fn untake(&self, had: u64, now: u64) {
        self.change(|state| state.untake(had, now));
    }

    /// Changes the tab in one step.
    fn change<R>(&self, change: impl FnOnce(&mut GcraState) -> R) -> R {
        let mut copy = planted!("gcra.changes-a-copy").then(|| *lock(&self.state));
        let mut state = lock(&self.state);
        let changed = change(copy.as_mut().unwrap_or(&mut state));
        *state = copy.unwrap_or(*state);
        changed
    }

    /// Counts so many turns that another pace gave, the last of them at some time.
    pub(super) fn take_over(&self, last: Instant, turns: u32) {
        let mut state = lock(&self.state);
        let cost = state.interval.saturating_mul(turns.into());
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
    /// How far ahead the mark may be when a turn is had.
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
        self.last.note(now);
        Ok(())
    }

    fn untake(&mut self, had: u64, now: u64) {
        if had >= self.changed {
            let end = had.saturating_add(self.interval);
            let left = end.saturating_sub(now).min(self.interval);
            self.mark = self.mark.saturating_sub(left);
        }
    }

    fn set_interval(&mut self, interval: u64) {
        let before = std::mem::replace(&mut self.interval, interval);
        if let Some(last) = self.last.get() {
            let debt = u128::from(self.mark.saturating_sub(last));
            let cost = (debt * u128::from(interval)).div_ceil(before.into());
            self.changed = last;
            self.mark = 0;
            self.count(last, u64::try_from(cost).unwrap_or(u64::MAX));
        }
    }

    /// Counts what was started until a time: one turn at least, and no more than are in a burst.
    fn count(&mut self, last: u64, cost: u64) {
        let most = self.interval + self.tolerance();
        let paid = last.saturating_add(cost.clamp(self.interval, most));
        self.mark = self.mark.max(paid);
        self.last.note(last);
    }
}

impl Limiter for Gcra {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let nanos = self.nanos(now);
        let took = self.take(nanos);
        took.map_err(|earliest| after(now, earliest - nanos))?;
        Ok(RateSlot::new(now, nanos))
    }

    fn cancel(&self, turn: RateSlot, now: Instant) {
        let mut state = lock(&self.state);
        state.untake(turn.mark(), self.nanos(now));
        state.last.forget(turn.mark());
    }

    fn give_back(&self, turn: RateSlot, now: Instant) {
        if self.burst() > 1 {
            self.untake(turn.mark(), self.nanos(now));
        }
    }

    fn owed(&self, last: Instant) -> u32 {
        let state = lock(&self.state);
        let debt = state.mark.saturating_sub(self.nanos(last));
        u32::try_from(debt.div_ceil(state.interval)).unwrap_or(u32::MAX)
    }
}

/// In nanoseconds, up to [`SPAN`].
fn span(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(SPAN, |nanos| nanos.min(SPAN))
}

/// So long after a time, or half as long, and so on, if the system has no such time.
fn after(time: Instant, nanos: u64) -> Instant {
    let mut shorter = iter::successors(Some(nanos), |nanos| Some(nanos / 2));
    let found = shorter.find_map(|nanos| time.checked_add(Duration::from_nanos(nanos)));
    found.unwrap_or(time)
}
