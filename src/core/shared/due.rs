//! Items that become ready with time: due ones, and those reclaimed from transactions.

use super::ttl::FIRST;
use super::Shared;
use crate::core::mode::SLOW_POPS;
use crate::order::{Due, EntryOf, Order, Source, StoredOf};
use crate::policy::delay::DueItems;
use crate::policy::failed::Failed;
use crate::policy::retry::Disposition;
use crate::policy::{Envelope, Policies, WatchOf};
use crate::raw::{Entry, Vacant};
use crate::sync::{planted, step, thread};
use crate::time::NEVER;
use crate::Reason;
use std::time::{Duration, Instant};

impl<T, O: Order<T>> Shared<T, O> {
    /// Delays an item. Its holder counts it as aborted afterwards.
    pub(crate) fn delay(
        &self,
        envelope: Envelope<T, O>,
        failed: Failed<StoredOf<T, O>>,
        now: u64,
        delay: Duration,
    ) {
        self.ready.set(SLOW_POPS);
        self.policies.delay(envelope, failed, now, delay);
    }

    pub(crate) fn pause(&self) {
        self.ready.set(SLOW_POPS);
        self.gate.pause_until(NEVER);
    }

    #[cfg(feature = "rate")]
    pub(crate) fn set_pace(&self, pace: crate::Pace) {
        self.ready.set(SLOW_POPS);
        self.policies.set_pace(pace);
    }

    /// Puts items at the head, in their order, and returns their number. Their holder counts them as aborted afterwards.
    pub(crate) fn put_at_head<I>(&self, entries: I) -> usize
    where
        I: IntoIterator<Item = EntryOf<T, O>>,
        I::IntoIter: ExactSizeIterator,
    {
        self.ready.set(SLOW_POPS);
        let count = self.shards.put_at_head(entries);
        step!("due.retries-unsaid", self.ready.notify(count));
        self.plan_end(FIRST);
        count
    }

    /// Puts a failed item where it belongs, which is not the head. Its holder counts it as aborted afterwards. Returns how many
    /// permits it had, if it is gone now.
    pub(crate) fn put_elsewhere(
        &self,
        disposition: Disposition,
        now: u64,
        failed: Failed<StoredOf<T, O>>,
        envelope: impl FnOnce() -> Envelope<T, O>,
    ) -> usize {
        match disposition {
            Disposition::Head | Disposition::Tail => {
                let (meta, reason) = (failed.entry.item.meta, failed.reason);
                self.shards.put_at_tail(failed.entry);
                self.ready.notify(1 + self.source.leave(meta, false));
                self.plan_end(FIRST);
                self.emit_retried(reason, 1);
            }
            Disposition::Delay(delay) => self.delay(envelope(), failed, now, delay),
            end => return self.end_failed(end, envelope(), failed),
        }
        0
    }

    /// Makes due items ready, and those that are to be reclaimed by now.
    #[inline]
    pub(crate) fn release_due(&self) {
        if self.due_timer.next() != NEVER {
            self.release_if_due(self.time.now());
        }
    }

    #[cold]
    fn release_if_due(&self, now: u64) {
        while self.due_timer.next() <= now && self.release(now) {}
    }

    /// Reclaims items that are due; returns whether there may have been any, so that there may be more room now.
    #[cold]
    #[inline(never)]
    pub(crate) fn reclaim(&self) -> bool {
        let next = self.due_timer.next();
        let frees = Policies::<T, O>::RECLAIMS || self.expires();
        let is_due = frees && next != NEVER && next <= self.time.now();
        if is_due {
            self.release_due();
        }
        is_due
    }

    /// Makes some items ready that are due at `now`; returns whether there may be more.
    #[cold]
    pub(super) fn release(&self, now: u64) -> bool {
        let mut released = 0;
        let is_mine = self.failures.delayed.release(
            now,
            || self.due_timer.clear(),
            |due| released = self.make_ready(due),
            |next| {
                self.due_timer.plan(next);
            },
        );
        if !is_mine {
            thread::yield_now();
            return false;
        }
        if Policies::<T, O>::RECLAIMS {
            let watches = self.watches.all();
            let ready = watches.iter().map(|watch| self.take_away(watch, now, None));
            released += ready.sum::<usize>();
        }
        if let Some(until) = self.paused_until() {
            self.due_timer.plan(until);
        }
        #[cfg(feature = "broker")]
        self.due_timer.ring(now);
        let (_gone, more) = self.sweep(now);
        // At least one waiter has to take up the new plan, or check the rate limit again.
        self.due_timer.call_backup();
        let planned = self.due_timer.next() != NEVER;
        let woken = released + usize::from(planned || self.gate.is_paced());
        if self.ready.notify_end(woken) {
            self.ended(woken > 0);
        }
        if planned {
            self.due_timer.notify_room();
        }
        self.drop_excess_letters();
        more
    }

    /// Makes due items ready, and returns their number. Where the order is that of the shards, all of them go to the head, in
    /// the order of their times; otherwise only the failed ones do.
    fn make_ready(&self, [mut failed, mut scheduled]: DueItems<StoredOf<T, O>>) -> usize {
        if self.expires() {
            // Their time begins now.
            for Due { entry, due } in &mut scheduled {
                let since = &mut entry.delivery.since;
                *since = self.restamp(*since, *due + 1);
            }
        }
        let count = failed.len() + scheduled.len();
        let delayed = &self.failures.delayed;
        planted!("due.uncounts-early", delayed.count_released(count));
        if Self::SORTS {
            if !scheduled.is_empty() {
                self.source.merge(scheduled);
            }
        } else {
            failed.extend(scheduled.into_iter().map(Due::not_delivered));
            failed.sort_by_key(|item| item.due);
        }
        self.shards
            .put_at_head(failed.into_iter().map(|item| item.entry));
        step!("due.uncounts-early", delayed.count_released(count));
        count
    }

    /// See [`Queue::recover`](crate::Queue::recover).
    pub(crate) fn recover(&self, worker: &str, before: Instant) -> usize {
        self.release_due();
        let watches = self.watches.all();
        let named = watches
            .iter()
            .filter(|watch| watch.name().is_some_and(|name| **name == *worker));
        let ready = named
            .map(|watch| self.take_away(watch, 0, Some(before)))
            .sum();
        self.notify_end(ready);
        self.drop_excess_letters();
        ready
    }

    /// Reclaims the items of a watch that were taken `before`, or whose time is over at `now`: they go to the head, or
    /// become dead letters. Returns how many became ready. The caller then wakes their waiters.
    fn take_away(&self, watch: &WatchOf<T, O>, now: u64, before: Option<Instant>) -> usize {
        let entries = self.policies.take_away(watch, now, before);
        let (count, cause) = (entries.len(), Reason::Expired.into());
        let (mut alive, mut permits) = (Vec::new(), 0);
        for entry in entries {
            let to = self.failures.disposition(entry.delivery, &cause);
            let to = self.returning(to, entry.delivery.since, &cause);
            if to.is_end() {
                permits += self.end_failed(to, Vacant::new(), Failed::new(entry, &cause));
            } else {
                alive.push(entry);
            }
        }
        let ready = self.shards.put_at_head(alive);
        self.give_back(permits);
        // The counters are open until the items are at the head, or dead letters.
        self.policies.taken_away(watch, count);
        self.shards.count_expired(watch.counters, count);
        self.emit_retried(cause.reason, ready);
        ready
    }

    /// Makes an item a dead letter, whose place among them was reserved before, or discards it. Returns how many permits it had.
    fn end_failed(
        &self,
        end: Disposition,
        envelope: Envelope<T, O>,
        mut failed: Failed<StoredOf<T, O>>,
    ) -> usize {
        let Entry { item, delivery } = &mut failed.entry;
        let (meta, since) = (item.meta, delivery.since);
        delivery.since = self.pushed_at(since);
        // Before others can see the letter, and push it again.
        let permits = self.forget(since);
        if end == Disposition::Death {
            self.policies.dead_letter(envelope, failed);
        } else if let Some(discarded) = self.discarded() {
            self.shards.count_popped(1);
            discarded.put(envelope, failed);
        }
        self.retire(meta);
        permits
    }
}
