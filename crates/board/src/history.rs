//! The last hour of a queue.

use crate::inspect::Counts;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time of a slot.
pub(crate) const SLOT: Duration = Duration::from_secs(10);
/// The slots of the last hour.
pub(crate) const SLOTS: u64 = 360;
/// What a rate covers.
const WINDOW: Duration = Duration::from_secs(10);

/// The counts at the end of a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Past {
    pub(crate) slot: u64,
    /// When they were sampled, since the beginning.
    at: Duration,
    pub(crate) ready: u64,
    pub(crate) dead: u64,
    ends: Option<(u64, u64)>,
}

/// The samples of a queue.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The last seconds: how many items had come and gone.
    recent: VecDeque<(Instant, (u64, u64))>,
    past: VecDeque<Past>,
    pub(crate) last: Counts,
    /// Why the last sample failed.
    pub(crate) error: Option<String>,
}

impl History {
    pub(crate) fn add(&mut self, began: Instant, now: Instant, counts: Counts) {
        let ends = counts.pushed.zip(counts.done);
        if let Some(ends) = ends {
            self.recent.push_back((now, ends));
        }
        // One that is older stays, so that a rate covers all of the window.
        while self
            .recent
            .get(1)
            .is_some_and(|next| now - next.0 >= WINDOW)
        {
            self.recent.pop_front();
        }
        let at = now.saturating_duration_since(began);
        let slot = at.as_secs() / SLOT.as_secs();
        if self.past.back().is_some_and(|last| last.slot == slot) {
            self.past.pop_back();
        }
        let first = self.past.partition_point(|past| past.slot + SLOTS <= slot);
        self.past.drain(..first);
        self.past.push_back(Past {
            slot,
            at,
            ready: counts.ready,
            dead: counts.dead,
            ends,
        });
        (self.last, self.error) = (counts, None);
    }

    /// Items per second that come in and go out.
    pub(crate) fn rates(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        per_second(first.1, last.1, last.0 - first.0)
    }

    pub(crate) fn past(&self) -> impl Iterator<Item = Past> + '_ {
        self.past.iter().copied()
    }

    /// The rates of each slot whose predecessor is known.
    pub(crate) fn past_rates(&self) -> impl Iterator<Item = (u64, (f64, f64))> + '_ {
        let pairs = self.past.iter().zip(self.past.iter().skip(1));
        pairs.filter_map(|(before, after)| {
            let time = after.at.saturating_sub(before.at);
            let rates = per_second(before.ends?, after.ends?, time)?;
            Some((after.slot, rates))
        })
    }
}

fn per_second(before: (u64, u64), after: (u64, u64), time: Duration) -> Option<(f64, f64)> {
    #[allow(clippy::cast_precision_loss)] // for people
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / time.as_secs_f64();
    (!time.is_zero()).then(|| (rate(before.0, after.0), rate(before.1, after.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ready: u64, pushed: u64, done: u64) -> Counts {
        Counts {
            ready,
            pushed: Some(pushed),
            done: Some(done),
            ..Counts::default()
        }
    }

    fn at(began: Instant, seconds: u64) -> Instant {
        began + Duration::from_secs(seconds)
    }

    #[test]
    fn rates_cover_the_last_ten_seconds() {
        let (began, mut history) = (Instant::now(), History::default());
        assert_eq!(history.rates(), None);
        history.add(began, began, counts(0, 0, 0));
        assert_eq!(history.rates(), None);
        history.add(began, at(began, 1), counts(0, 500, 0));
        assert_eq!(history.rates(), Some((500.0, 0.0)));
        history.add(began, at(began, 11), counts(0, 500, 40));
        assert_eq!(history.rates(), Some((0.0, 4.0)));
    }

    #[test]
    fn a_slot_has_its_last_counts_and_an_hour_is_kept() {
        let (began, mut history) = (Instant::now(), History::default());
        for (second, ready) in [(0, 1), (9, 2), (10, 3), (3599, 4)] {
            history.add(began, at(began, second), counts(ready, 0, 0));
        }
        let ready = |history: &History| history.past().map(|past| past.ready).collect::<Vec<_>>();
        assert_eq!(ready(&history), [2, 3, 4]);
        history.add(began, at(began, 3600), counts(5, 0, 0));
        assert_eq!(ready(&history), [3, 4, 5]);
        history.add(began, at(began, 9000), counts(6, 0, 0));
        assert_eq!(ready(&history), [6]);
    }

    #[test]
    fn past_rates_cover_the_time_between_samples() {
        let (began, mut history) = (Instant::now(), History::default());
        for (second, pushed) in [(3, 0), (19, 160), (50, 470)] {
            history.add(began, at(began, second), counts(0, pushed, 0));
        }
        let rates: Vec<_> = history.past_rates().collect();
        assert_eq!(rates, [(1, (10.0, 0.0)), (5, (10.0, 0.0))]);
    }
}
