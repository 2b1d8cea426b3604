//! The slots of a rate that the server has granted to this process. Times are nanoseconds of the server's clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long before their time slots are granted at most.
pub(super) const AHEAD: i64 = 500_000_000;
/// The most slots that are asked for at once.
const MAX_SLOTS: u64 = 1 << 20;
/// The pause between two questions, if the server has not answered.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Nanoseconds, clamped.
pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// What this process knows of the server's clock: it showed `at` at some time between the question and the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerClock {
    pub(super) at: i64,
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

impl ServerClock {
    /// The least time that the clock may show.
    fn least(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.answered);
        self.at.saturating_add(nanos(since))
    }

    /// The greatest time that the clock may show.
    fn greatest(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.asked);
        self.at.saturating_add(nanos(since))
    }
}

/// Slots at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The time of the first slot.
    pub(super) first: i64,
    pub(super) spacing: i64,
    pub(super) left: u64,
    /// How far the marks of the slots are after their times.
    pub(super) tolerance: i64,
    pub(super) granted: i64,
}

impl Span {
    /// The time of the first slot, at which it had arrived.
    fn start(&self) -> i64 {
        self.first.max(self.granted)
    }

    /// Removes the first slots.
    fn split(&mut self, count: u64) -> Span {
        let mut removed = *self;
        removed.left = count.min(self.left);
        self.left -= removed.left;
        self.first = removed.after();
        removed
    }

    /// The time after the last slot.
    fn after(&self) -> i64 {
        let left = i64::try_from(self.left).unwrap_or(i64::MAX);
        self.first.saturating_add(self.spacing.saturating_mul(left))
    }

    /// The mark after the last slot.
    pub(super) fn end(&self) -> i64 {
        self.after().saturating_add(self.tolerance)
    }

    /// The slots that can no longer be used at `now`.
    fn expired(&self, now: i64, late: i64) -> u64 {
        let latest = now.saturating_sub(late);
        if latest <= self.start() {
            return 0;
        }
        let past = latest.saturating_sub(self.first) - 1;
        let expired = u64::try_from(past / self.spacing + 1);
        expired.unwrap_or(0).min(self.left)
    }
}

/// What the task does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Slots to return to the server.
    pub(super) unused: Vec<Span>,
    /// Slots to ask for.
    pub(super) ask: u64,
    /// When to look again, unless notified before.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Slots {
    /// Slots that were used in vain are worth something.
    pub(super) has_burst: bool,
    /// How late a slot may be used.
    late: i64,
    clock: ServerClock,
    /// The interval between slots, as of the last answer.
    spacing: i64,
    spans: VecDeque<Span>,
    unused: Vec<Span>,
    /// How many slots were asked for last.
    batch: u64,
    /// The slots taken since the last answer.
    taken: u64,
    /// A start was refused since the last grant, because no slot was left.
    dry: bool,
    /// When the server can be asked again.
    next_ask: Instant,
    /// When the server expects the next slot.
    expected: Option<i64>,
}

impl Slots {
    pub(super) fn new(late: Duration, has_burst: bool, now: Instant) -> Self {
        Self {
            has_burst,
            late: nanos(late),
            clock: ServerClock {
                at: 0,
                asked: now,
                answered: now,
            },
            spacing: 1,
            spans: VecDeque::new(),
            unused: Vec::new(),
            batch: 1,
            taken: 0,
            dry: false,
            next_ask: now,
            expected: None,
        }
    }

    /// Takes a slot, and returns its time. If there is none, returns the time until the next one, if it is known.
    pub(super) fn take(&mut self, now: Instant) -> Result<i64, Option<Duration>> {
        self.remove_expired(now);
        let least = self.clock.least(now);
        let Some(span) = self.spans.front_mut() else {
            self.dry = true;
            let expected = self.expected.filter(|&at| at > least);
            return Err(expected.map(|at| duration(at - least)));
        };
        if span.first > least {
            return Err(Some(duration(span.first - least)));
        }
        let time = span.start();
        span.split(1);
        if span.left == 0 {
            self.spans.pop_front();
        }
        self.taken += 1;
        Ok(time)
    }

    /// Takes back a slot that was not used.
    pub(super) fn put_back(&mut self, time: i64) {
        self.spans.push_front(Span {
            first: time,
            spacing: self.spacing,
            left: 1,
            tolerance: 0,
            granted: time.saturating_sub(AHEAD), // at the earliest
        });
    }

    fn remove_expired(&mut self, now: Instant) {
        let greatest = self.clock.greatest(now);
        while let Some(span) = self.spans.front_mut() {
            let expired = span.expired(greatest, self.late);
            if expired > 0 {
                self.unused.push(span.split(expired));
            }
            if span.left > 0 {
                return;
            }
            self.spans.pop_front();
        }
    }

    fn left(&self) -> u64 {
        self.spans.iter().map(|span| span.left).sum()
    }

    /// Whether the task has to act.
    pub(super) fn is_low(&self) -> bool {
        self.dry || self.taken > 0 && self.left() <= self.batch / 2
    }

    /// What the task does next. If a slot expires before anyone asks for one, all go back to the server.
    pub(super) fn plan(&mut self, now: Instant) -> Plan {
        let known = self.unused.len();
        self.remove_expired(now);
        if self.unused.len() > known && !self.dry {
            self.return_all();
        }
        let is_due = self.is_low() && now >= self.next_ask;
        let ask = if is_due { self.batch } else { 0 };
        Plan {
            unused: std::mem::take(&mut self.unused),
            ask,
            wait: self.wait(now),
        }
    }

    fn wait(&self, now: Instant) -> Option<Duration> {
        let next_ask = self.next_ask.saturating_duration_since(now);
        let asks = self.is_low().then_some(next_ask);
        let expires = self.spans.front().map(|span| {
            let latest = span.start().saturating_add(self.late);
            let left = latest.saturating_sub(self.clock.greatest(now));
            duration(left.saturating_add(1))
        });
        asks.into_iter().chain(expires).min()
    }

    /// Returns all slots to the server.
    fn return_all(&mut self) {
        self.unused.extend(self.spans.drain(..));
        (self.batch, self.taken) = (1, 0);
    }

    /// All slots, to be returned to the server.
    pub(super) fn take_all(&mut self) -> Vec<Span> {
        self.return_all();
        std::mem::take(&mut self.unused)
    }

    /// The server has granted slots, or none before the first one of the span, or failed. Returns whether a start may succeed that was refused.
    pub(super) fn answered(&mut self, answer: Option<(ServerClock, Span)>, now: Instant) -> bool {
        let Some((clock, span)) = answer else {
            self.next_ask = now + PAUSE;
            self.expected = None;
            return false;
        };
        if self.clock_was_set(&clock) {
            self.spans.clear(); // their times mean nothing now
        }
        (self.clock, self.spacing, self.taken) = (clock, span.spacing, 0);
        if span.left == 0 {
            let wait = duration(span.first.saturating_sub(AHEAD).saturating_sub(clock.at));
            self.next_ask = clock.answered + wait.min(PAUSE);
            self.expected = Some(span.first);
            return false;
        }
        self.expected = None;
        self.next_ask = clock.answered;
        let is_before = |other: &Span| other.first <= span.first;
        self.spans
            .insert(self.spans.partition_point(is_before), span);
        let factor = if self.dry { 2 } else { 1 };
        self.batch = (span.left * factor).min(MAX_SLOTS);
        std::mem::take(&mut self.dry)
    }

    /// Whether the server's clock shows another time than it would if it had gone on.
    fn clock_was_set(&self, clock: &ServerClock) -> bool {
        let least = self.clock.least(clock.asked);
        let greatest = self.clock.greatest(clock.answered);
        clock.at < least.saturating_sub(self.late) || clock.at > greatest.saturating_add(self.late)
    }
}

#[cfg(test)]
mod tests;
