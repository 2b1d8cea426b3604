//! What becomes ready with time, or is taken back from those who have had it for too long.

use super::Shared;
use crate::order::{EntryOf, Order, Source, StoredOf};
use crate::policy::retry::{Failed, Fate};
use crate::policy::telemetry::Event;
use crate::policy::watch::Watch;
use crate::raw::Vacant;
use crate::sync::{lock, planted, step, swallow_panic, thread};
use crate::time::{later, NEVER};
use crate::Reason;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl<T, O: Order<T>> Shared<T, O> {
    /// Delays an item. Whoever held it counts it as aborted afterwards.
    pub(crate) fn delay(
        &self,
        envelope: Vacant<Failed<StoredOf<T, O>>>,
        mut failed: Failed<StoredOf<T, O>>,
        now: u64,
        delay: Duration,
    ) {
        let (due, attempts) = (later(now, delay), failed.entry.delivery.attempts);
        let error = self.observed_error(&failed);
        failed.due = due;
        self.ready.slow_pops();
        self.failures.delayed.put(envelope, failed);
        self.due_timer.plan(due);
        self.due_timer.call_backup();
        step!("due.delays-unsaid", self.ready.notify(1));
        self.emit(|| Event::Delayed {
            attempts,
            delay,
            error: error.as_deref(),
        });
    }

    /// The error of a failed delivery, if somebody listens.
    fn observed_error(&self, failed: &Failed<StoredOf<T, O>>) -> Option<Arc<str>> {
        failed.error.clone().filter(|_| self.is_observed())
    }

    /// Puts an item at the head. Whoever held it counts it as aborted afterwards.
    pub(crate) fn put_at_head(&self, entry: EntryOf<T, O>) {
        self.ready.slow_pops();
        let count = self.shards.put_at_head([entry]);
        step!("due.retries-unsaid", self.ready.notify(count));
    }

    /// Puts what is due at the head, and what others have held for longer than they may.
    #[inline]
    pub(crate) fn release_due(&self) {
        if self.due_timer.next() != NEVER || self.is_scheduled() {
            self.release(self.time.now());
        }
    }

    #[cold]
    fn release(&self, now: u64) {
        if self.is_scheduled() {
            self.arrange(now);
        }
        if now < self.due_timer.next() {
            return;
        }
        let delayed = &self.failures.delayed;
        let begin = || self.due_timer.clear();
        let end = |next| {
            self.due_timer.plan(next);
        };
        let Some(due) = delayed.take_due(now, begin, end) else {
            thread::yield_now();
            return;
        };
        planted!("due.uncounts-early", delayed.count_released(due.len()));
        let mut released = self.shards.put_at_head(due);
        step!("due.uncounts-early", delayed.count_released(released));
        released += self.source.advance(now);
        if Self::LEASES {
            released += self.end_leases(now);
        }
        // At least one waiter has to know of the new plan, or to ask the pace again.
        self.due_timer.call_backup();
        let planned = self.due_timer.next() != NEVER || self.gate.is_paced();
        self.notify_end(released + usize::from(planned));
        self.failures.letters.drop_excess(&self.time);
    }

    /// Takes back what is held for too long, and says how many items are ready by that.
    fn end_leases(&self, now: u64) -> usize {
        let watches = self.watches.all();
        watches
            .iter()
            .map(|watch| self.take_away(watch, now, 0))
            .sum()
    }

    /// See [`Queue::recover`](crate::Queue::recover).
    pub(crate) fn recover(&self, worker: &str, before: Instant) -> usize {
        self.release_due();
        let before = self.time.nanos(before);
        let watches = self.watches.all();
        let named = watches
            .iter()
            .filter(|watch| watch.name().is_some_and(|name| **name == *worker));
        let ready = named.map(|watch| self.take_away(watch, 0, before)).sum();
        self.notify_end(ready);
        self.failures.letters.drop_excess(&self.time);
        ready
    }

    /// Takes out of a book what was taken before `taken` or is over at `now`, and says how many items are
    /// ready by that. Whoever waits for them is still to be woken.
    fn take_away(&self, watch: &Watch<StoredOf<T, O>>, now: u64, taken: u64) -> usize {
        let mut leases = lock(&watch.leases);
        let entries = leases.take_away(now, taken);
        let next = leases.next();
        drop(leases);
        self.due_timer.plan(next.unwrap_or(NEVER));
        let count = entries.len();
        let ready = self.take_over(entries);
        if self.gate.is_limited() {
            self.count_out(count);
        }
        self.shards.count_expired(watch.counters, count);
        if count > 0 {
            self.emit(|| Event::Expired {
                worker: watch.name().map(AsRef::as_ref),
                items: count,
            });
        }
        ready
    }

    /// Makes a dead letter of an item for which a place was taken.
    pub(crate) fn bury(
        &self,
        envelope: Vacant<Failed<StoredOf<T, O>>>,
        mut failed: Failed<StoredOf<T, O>>,
    ) {
        // A clock is user code: it may panic, and an abort may not.
        swallow_panic(|| failed.due = self.time.now());
        let (attempts, reason) = (failed.entry.delivery.attempts, failed.reason);
        let (meta, error) = (failed.entry.item.meta, self.observed_error(&failed));
        self.failures.letters.put(envelope, failed);
        self.retire(meta);
        self.emit(|| Event::Died {
            attempts,
            reason,
            error: error.as_deref(),
        });
    }

    /// Puts items whose lease is over at the head, but for those that die, and says how many.
    fn take_over(&self, entries: Vec<EntryOf<T, O>>) -> usize {
        let (cause, mut dead) = (Reason::Expired.into(), 0);
        let alive = entries.into_iter().filter_map(|entry| {
            if self.failures.fate(entry.delivery, &cause) != Fate::Death {
                return Some(entry);
            }
            dead += 1;
            self.bury(Vacant::new(), Failed::new(entry, &cause));
            None
        });
        let ready = self.shards.put_at_head(alive);
        self.give_back(dead);
        ready
    }
}
