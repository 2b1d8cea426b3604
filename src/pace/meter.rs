//! The meter: a rate with a burst, in one word.

use super::{Turn, Turnstile};
use crate::sync::{AtomicU64, Ordering};
use std::iter;
use std::time::{Duration, Instant};

/// The greatest interval and tolerance, and what the word counts up to when the meter is made: 146 years.
const SPAN: u64 = 1 << 62;

/// Gives turns at intervals.
///
/// Times fit into 63 bits, an interval and a tolerance together into as many: so their sum fits.
pub(super) struct Meter {
    interval: u64,
    /// How far ahead the mark may be when a turn is had.
    tolerance: u64,
    /// The time [`SPAN`].
    origin: Instant,
    /// When all that was started is paid for.
    mark: AtomicU64,
}

impl Meter {
    /// A meter for an interval that is not zero, and a burst that is not 0.
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        let interval = span(interval);
        Self {
            interval,
            tolerance: interval.saturating_mul(u64::from(burst - 1)).min(SPAN),
            origin: Instant::now(),
            mark: AtomicU64::new(0),
        }
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    pub(super) fn burst(&self) -> u64 {
        self.tolerance / self.interval + 1
    }

    /// Takes a turn, or says from when on one may be had.
    pub(super) fn take(&self, now: u64) -> Result<(), u64> {
        let earliest = |mark: u64| mark.saturating_sub(self.tolerance);
        let step = |mark: u64| (earliest(mark) <= now).then(|| mark.max(now) + self.interval);
        self.update(step).map(drop).map_err(earliest)
    }

    /// Takes back what is left of the interval of a turn that was had at some time.
    pub(super) fn untake(&self, had: u64, now: u64) {
        let end = had.saturating_add(self.interval);
        let left = end.saturating_sub(now).min(self.interval);
        if left > 0 {
            let _ = self.update(|mark| Some(mark.saturating_sub(left)));
        }
    }

    fn update(&self, step: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        // ORDERING: Relaxed, both; all that is known is in the word, and it hands nothing on. Whoever is
        // refused a turn and waits is told by way of its line when one came back.
        self.mark
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
    }

    fn nanos(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.origin) {
            Some(after) => SPAN + span(after).min(SPAN - 1),
            None => SPAN - span(self.origin.duration_since(at)),
        }
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
        self.untake(turn.mark(), self.nanos(now));
    }

    fn give_back(&self, turn: Turn, now: Instant) {
        if self.tolerance > 0 {
            self.cancel(turn, now);
        }
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
