//! Items that become ready with time, and items reclaimed when their leases expire.

use super::Shared;
use crate::order::{EntryOf, Order, Source, StoredOf};
use crate::policy::retry::{Disposition, Failed};
use crate::policy::telemetry::Event;
use crate::policy::watch::Watch;
use crate::raw::Vacant;
use crate::sync::{lock, planted, step, swallow_panic, thread};
use crate::time::{later, NEVER};
use crate::Reason;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl<T, O: Order<T>> Shared<T, O> {
    /// Delays an item. Its holder counts it as aborted afterwards.
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

    /// The error of a failed delivery, if events are observed.
    fn observed_error(&self, failed: &Failed<StoredOf<T, O>>) -> Option<Arc<str>> {
        failed.error.clone().filter(|_| self.is_observed())
    }

    /// Puts items at the head, in their order, and returns their number. Their holder counts them as aborted afterwards.
    pub(crate) fn put_at_head<I>(&self, entries: I) -> usize
    where
        I: IntoIterator<Item = EntryOf<T, O>>,
        I::IntoIter: ExactSizeIterator,
    {
        self.ready.slow_pops();
        let count = self.shards.put_at_head(entries);
        step!("due.retries-unsaid", self.ready.notify(count));
        count
    }

    /// Puts due items, and those with expired leases, at the head.
    #[inline]
    pub(crate) fn release_due(&self) {
        if self.due_timer.next() != NEVER || self.is_scheduled() {
            self.release(self.time.now());
        }
    }

    /// Takes back what expired leases hold; returns whether there was any, so that there may be more room now.
    #[cold]
    #[inline(never)]
    pub(crate) fn reclaim(&self) -> bool {
        let next = self.due_timer.next();
        let is_due = Self::LEASES && next != NEVER && next <= self.time.now();
        if is_due {
            self.release_due();
        }
        is_due
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
        // At least one waiter has to take up the new plan, or check the rate limit again.
        self.due_timer.call_backup();
        let planned = self.due_timer.next() != NEVER;
        self.notify_end(released + usize::from(planned || self.gate.is_paced()));
        if planned {
            self.due_timer.notify_room();
        }
        self.failures.letters.drop_excess(&self.time);
    }

    /// Reclaims items with expired leases, and returns how many became ready.
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

    /// Reclaims the items of a watch that were taken before `taken` or whose leases have expired at `now`, and returns
    /// how many became ready. The caller then wakes their waiters.
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

    /// Makes an item a dead letter; its place among them was reserved before.
    pub(crate) fn bury(
        &self,
        envelope: Vacant<Failed<StoredOf<T, O>>>,
        mut failed: Failed<StoredOf<T, O>>,
    ) {
        // A clock is user code: it may panic, but an abort must not.
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

    /// Puts reclaimed items at the head, except those that become dead letters, and returns how many.
    fn take_over(&self, entries: Vec<EntryOf<T, O>>) -> usize {
        let (cause, mut dead) = (Reason::Expired.into(), 0);
        let alive = entries.into_iter().filter_map(|entry| {
            if self.failures.disposition(entry.delivery, &cause) != Disposition::Death {
                return Some(entry);
            }
            dead += 1;
            self.bury(Vacant::new(), Failed::new(entry, &cause));
            None
        });
        let alive: Vec<_> = alive.collect();
        let ready = self.shards.put_at_head(alive);
        self.give_back(dead);
        ready
    }
}
