//! The counts and times that a queue reports.

use super::item::Mark;
use super::order::Order;
use super::settings::{ticks, Ticks};
use super::work::{Name, Work};
use requeue::{Held, Stats};
use std::thread;
use std::time::{Duration, Instant};

impl Order {
    pub(crate) fn check_stats(&self, stats: &Stats) {
        let seen = [
            stats.pushed,
            stats.ready,
            stats.held,
            stats.delayed,
            stats.committed,
            stats.aborted,
            stats.expired,
            stats.dead,
        ];
        let expected = [
            self.pushed,
            self.ready(),
            self.held,
            self.waiting(),
            self.committed,
            self.aborted,
            self.expired,
            self.dead,
        ];
        assert_eq!(
            seen,
            expected.map(|n| n as u64),
            "pushed, ready, held, delayed, committed, aborted, expired, dead"
        );
        stats.check().expect("nothing is lost");
        assert_eq!(stats.oldest, self.oldest(), "the oldest item");
        let waiting = usize::try_from(stats.waiting).unwrap();
        self.poppers.check_count(waiting);
    }

    /// The time of the first push of an item, if it is kept.
    pub(crate) fn pushed_at(&self, mark: Mark) -> Option<Ticks> {
        self.settings.is_timed().then(|| self.fact(mark).since)
    }

    /// The age of the oldest ready item.
    fn oldest(&self) -> Option<Duration> {
        let heads = self.stock.heads().into_iter();
        let oldest = heads.map(|mark| self.fact(mark).since).min()?;
        self.settings.is_timed().then(|| ticks(self.now - oldest))
    }

    /// The items held by open transactions, by the number of their counters.
    pub(crate) fn check_held(&self, start: Instant, seen: &[Held]) {
        let work = self.by_number.values().map(|&source| self.work(source));
        let expected: Vec<_> = work.filter(|work| work.own() > 0).collect();
        assert_eq!(seen.len(), expected.len(), "{seen:?}");
        for (seen, work) in seen.iter().zip(expected) {
            assert_eq!(seen.worker.as_deref(), work.name);
            assert_eq!(seen.items, work.own());
            let since = self.is_watched(work).then_some(work.since);
            assert_eq!(seen.since, since.map(|since| start + ticks(since)));
            let thread = since.map(|_| thread::current().id());
            assert_eq!(seen.thread, thread);
        }
    }

    fn is_watched(&self, work: &Work) -> bool {
        let name: Option<Name> = work.name;
        name.is_some() || self.settings.is_timed() || self.settings.lease.is_some()
    }

    /// The reported time is not after the next due time, and an item whose time has come is released.
    pub(crate) fn check_next_due(&self, seen: Option<Ticks>) {
        let seen = seen.unwrap_or(Ticks::MAX);
        assert!(seen > self.now, "due at {seen}, and not released");
        let due = self.next_due().unwrap_or(Ticks::MAX);
        assert!(seen <= due, "{due} is before {seen}");
    }
}
