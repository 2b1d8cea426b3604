//! The meter: a rate with a burst.

use super::last::Last;
use super::{Turn, Turnstile};
use crate::sync::{lock, planted, Mutex};
use std::iter;
use std::time::{Duration, Instant};

/// The greatest interval and tolerance, and what the word counts up to when the meter is made: 146 years.
const SPAN: u64 = 1 << 62;

/// Gives turns at intervals.
///
/// Times fit into 63 bits, an interval and a tolerance together into as many: so their sum fits.
pub(super) struct Meter {
    /// The time [`SPAN`].
    origin: Instant,
    tab: Mutex<Tab>,
}

/// What was started, and when that will be paid for.
#[derive(Clone, Copy)]
struct Tab {
    interval: u64,
    burst: u32,
    /// When all that was started is paid for.
    mark: u64,
    last: Last<u64>,
    /// When the last start was before the interval changed.
    changed: u64,
}

impl Meter {
    /// A meter for an interval that is not zero, and a burst that is not 0.
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        Self {
            origin: Instant::now(),
            tab: Mutex::new(Tab {
                interval: span(interval),
                burst,
                mark: 0,
                last: Last::default(),
                changed: 0,
            }),
        }
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(lock(&self.tab).interval)
    }

    pub(super) fn burst(&self) -> u32 {
        lock(&self.tab).burst
    }

    /// Changes the interval to one that is not zero, as if it had been so from the last start on.
    pub(super) fn set_interval(&self, interval: Duration) {
        self.change(|tab| tab.set_interval(span(interval)));
    }

    /// Takes a turn, or says from when on one may be had.
    pub(super) fn take(&self, now: u64) -> Result<(), u64> {
        self.change(|tab| tab.take(now))
    }

    /// Takes back what is left of the interval of a turn that was had at some time.
    pub(super) fn untake(&self, had: u64, now: u64) {
        self.change(|tab| tab.untake(had, now));
    }

    /// Changes the tab in one step.
    fn change<R>(&self, change: impl FnOnce(&mut Tab) -> R) -> R {
        let mut copy = planted!("meter.changes-a-copy").then(|| *lock(&self.tab));
        let mut tab = lock(&self.tab);
        let changed = change(copy.as_mut().unwrap_or(&mut tab));
        *tab = copy.unwrap_or(*tab);
        changed
    }

    /// Counts so many turns that another pace gave, the last of them at some time.
    pub(super) fn take_over(&self, last: Instant, turns: u32) {
        let mut tab = lock(&self.tab);
        let cost = tab.interval.saturating_mul(turns.into());
        tab.count(self.nanos(last), cost);
    }

    fn nanos(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.origin) {
            Some(after) => SPAN + span(after).min(SPAN - 1),
            None => SPAN - span(self.origin.duration_since(at)),
        }
    }
}

impl Tab {
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

impl Turnstile for Meter {
    fn start(&self, now: Instant) -> Result<Turn, Instant> {
        let nanos = self.nanos(now);
        let took = self.take(nanos);
        took.map_err(|earliest| after(now, earliest - nanos))?;
        Ok(Turn::new(now, nanos))
    }

    fn cancel(&self, turn: Turn, now: Instant) {
        let mut tab = lock(&self.tab);
        tab.untake(turn.mark(), self.nanos(now));
        tab.last.forget(turn.mark());
    }

    fn give_back(&self, turn: Turn, now: Instant) {
        if self.burst() > 1 {
            self.untake(turn.mark(), self.nanos(now));
        }
    }

    fn owed(&self, last: Instant) -> u32 {
        let tab = lock(&self.tab);
        let debt = tab.mark.saturating_sub(self.nanos(last));
        u32::try_from(debt.div_ceil(tab.interval)).unwrap_or(u32::MAX)
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
