//! The statistics of a queue.

use super::Shared;
use crate::order::{Order, Source};
use crate::policy::telemetry::Event;
use crate::{DeliveryId, Held, Stats};
use std::time::Duration;

impl<T, O: Order<T>> Shared<T, O> {
    pub(crate) fn stats(&self) -> Stats {
        self.bring_up_to_date();
        let stats = self.count();
        self.emit(|| Event::Counted(&stats));
        stats
    }

    /// The number of items that are ready, delayed or held. Runs no user code.
    #[cfg(any(feature = "broker", feature = "workers"))]
    pub(crate) fn left(&self) -> u64 {
        let held = self.shards().tally().held;
        self.ready_items() + held + self.delayed_items()
    }

    fn delayed_items(&self) -> u64 {
        let (_, not_ready) = self.source.counts();
        (self.failures.delayed.count() + not_ready) as u64
    }

    fn count(&self) -> Stats {
        let shards = self.shards();
        let tally = shards.tally();
        Stats {
            pushed: shards.pushed(),
            ready: self.ready_items(),
            held: tally.held,
            delayed: self.delayed_items(),
            committed: tally.committed,
            aborted: tally.aborted,
            expired: tally.expired,
            timed_out: tally.timed_out,
            dead: self.failures.letters.died(),
            waiting: self.ready().word().waiting() as u64,
            oldest: self.oldest(),
        }
    }

    /// The time since the earliest known push of a ready item.
    fn oldest(&self) -> Option<Duration> {
        if !self.timed {
            return None;
        }
        let known = self.shards.oldest().into_iter().chain(self.source.oldest());
        Some(self.time.age(self.pushed_at(known.min()?)))
    }

    /// The deliveries of each open transaction.
    pub(crate) fn held(&self) -> Vec<Held> {
        let holders = self.shards().holders();
        let held = holders.map(|holder| {
            let watch = self.watches.get(holder.counters);
            let watch = watch.as_ref();
            Held {
                id: DeliveryId::new(holder.counters, holder.ended),
                worker: watch.and_then(|watch| watch.name().cloned()),
                items: usize::try_from(holder.held).unwrap_or(usize::MAX),
                since: watch.and_then(|watch| self.time.stamped(watch.since())),
                thread: watch.and_then(|watch| watch.thread()),
            }
        });
        held.collect()
    }
}
