//! The past counts of a queue, and their rates.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use requeue::Stats;

/// Number of samples kept.
const KEPT: usize = 400;
/// A rate covers the last two seconds.
const WINDOW: Duration = Duration::from_secs(2);

/// The last samples of a queue's counts, oldest first.
#[derive(Default)]
pub(crate) struct History {
    samples: VecDeque<(Instant, Stats)>,
}

impl History {
    pub(crate) fn add(&mut self, at: Instant, stats: Stats) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back((at, stats));
    }

    /// The newest sample; all zeros if there is none.
    pub(crate) fn latest(&self) -> Stats {
        self.samples
            .back()
            .map_or_else(Stats::default, |last| last.1)
    }

    /// The growth of a count per second.
    pub(crate) fn rate(&self, count: impl Fn(&Stats) -> u64) -> f64 {
        let Some((end, last)) = self.samples.back() else {
            return 0.0;
        };
        let inside = |sample: &&(Instant, Stats)| *end - sample.0 <= WINDOW;
        let Some((begin, first)) = self.samples.iter().find(inside) else {
            return 0.0;
        };
        let grown = count(last).saturating_sub(count(first));
        let seconds = (*end - *begin).as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        f64::from(u32::try_from(grown).unwrap_or(u32::MAX)) / seconds
    }

    /// The number of ready items in the last `most` samples, oldest first.
    pub(crate) fn depths(&self, most: usize) -> impl Iterator<Item = u64> + '_ {
        let skipped = self.samples.len().saturating_sub(most);
        self.samples
            .iter()
            .skip(skipped)
            .map(|(_, stats)| stats.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples half a second apart.
    fn history(counts: &[u64]) -> History {
        let (start, mut history) = (Instant::now(), History::default());
        for (index, &count) in (0..).zip(counts) {
            let mut stats = Stats::default();
            (stats.pushed, stats.ready) = (count, count);
            history.add(start + index * Duration::from_millis(500), stats);
        }
        history
    }

    fn pushed(counts: &[u64]) -> f64 {
        history(counts).rate(|stats| stats.pushed)
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let close = |rate: f64, expected: f64| (rate - expected).abs() < 1e-9;
        assert!(close(pushed(&[]), 0.0));
        assert!(close(pushed(&[5]), 0.0));
        assert!(close(pushed(&[0, 10]), 20.0));
        assert!(close(pushed(&[0, 900, 900, 900, 900, 910]), 5.0));
    }

    #[test]
    fn depths_are_the_newest_in_their_order() {
        let history = history(&[1, 2, 3]);
        assert_eq!(history.depths(2).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(history.depths(9).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(history.latest().ready, 3);
    }

    #[test]
    fn old_samples_are_forgotten() {
        let counts: Vec<_> = (0..=KEPT as u64).collect();
        let depths = history(&counts).depths(usize::MAX).collect::<Vec<_>>();
        assert_eq!((depths.len(), depths[0]), (KEPT, 1));
    }
}
