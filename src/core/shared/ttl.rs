//! Items whose time to live is over.
//!
//! Whoever takes an item decides by the time before the claim whether it is over: then the item is not delivered, and the next
//! one is taken. Nobody waits for that: whatever finds something due, and a push, *sweeps*, that is, takes such items at the
//! heads of the shards, or the first ones of each kind of an order.
//!
//! | step | so that |
//! |---|---|
//! | counted as taken, by the handle, or by the counters of the sweeps | others see it open, like an attempt |
//! | claimed, if it is over | |
//! | a dead letter, or not; unregistered; its permit is back, which wakes those that wait for room | |
//! | its delivery is counted as ended | who sees that sees all of this |
//! | a look whether the queue is idle or drained, by the caller, unless it holds another item | those that have seen it open are woken |
//! | the destructor, which is user code | nobody waits for it |
//!
//! A sweep plans the next one for the least time that it has found. A push plans the end of its time, if nothing is due
//! earlier; a commit and a return, which do not know the least of their times, plan a sweep at once. If a sweep finds nothing it plans nothing, and looks once more behind a barrier: so it sees the item, or
//! whoever has pushed that, behind a barrier too, sees that nothing is planned. If it finds something, an item that it has not
//! seen is later than that, except as long as its push was interrupted after it had read the clock.

use super::Shared;
use crate::order::{Dequeued, EntryOf, Order, Registry, Source};
use crate::policy::failed::Failed;
use crate::policy::telemetry::Event;
use crate::policy::tracking::Lives;
use crate::policy::ttl::AfterTtl;
use crate::raw::{Counters, DeliveryMeta, Ending, Vacant};
use crate::sync::{barrier, lock, planted, step, swallow_panic};
use crate::Reason;

/// The most items that one sweep takes.
const MOST: usize = 64;

/// The time stamp of no item is less.
pub(super) const FIRST: u64 = 1;

/// What is left of items that were dropped. Their destructors are user code, whose panics are caught.
#[must_use = "dropped after what others wait for"]
pub(crate) struct Gone<T>(Vec<T>);

impl<T> Drop for Gone<T> {
    fn drop(&mut self) {
        for item in self.0.drain(..) {
            swallow_panic(|| drop(item));
        }
    }
}

impl<T, O: Order<T>> Shared<T, O> {
    /// The last time stamp of the items whose time to live is over; 0 if there are none. Reads the clock.
    pub(crate) fn over(&self) -> u64 {
        self.lives()
            .map_or(0, |lives| lives.ttl.over(self.time.now()))
    }

    /// Ends the delivery of items that these counters have counted as taken, since their time to live is over, or they are
    /// discarded: then it ends as if they were committed. The caller then [notifies](Shared::notify_end) an end.
    #[inline(never)]
    pub(crate) fn drop_instead(
        &self,
        entries: impl IntoIterator<Item = EntryOf<T, O>>,
        counters: &Counters,
        ending: Ending,
    ) -> Gone<T> {
        let cause = Reason::TimedOut.into();
        let is_over = ending == Ending::TimedOut;
        let to_letters = |lives: &Lives<T, O>| lives.ttl.after == AfterTtl::DeadLetter;
        let to_letters = is_over && self.lives().is_some_and(to_letters);
        let (mut gone, mut dead, mut permits) = (Vec::new(), 0, 0);
        for mut entry in entries {
            entry.delivery = entry.delivery.before();
            let since = entry.delivery.since;
            entry.delivery.since = self.pushed_at(since);
            self.taken(since, &mut entry.item.item);
            permits += self.forget(since);
            if to_letters && self.failures.letters.reserve() {
                self.policies
                    .dead_letter(Vacant::new(), Failed::new(entry, &cause));
                dead += 1;
            } else {
                gone.push(entry.item.item);
            }
        }
        let items = gone.len() + dead;
        step!("ttl.keeps-permits", self.give_back(permits));
        counters.count_elsewhere(Ending::Moved, dead);
        counters.count_elsewhere(ending, gone.len());
        if is_over {
            self.emit(|| Event::TimedOut { items });
        }
        self.drop_excess_letters();
        Gone(gone)
    }

    /// Takes some of the items out whose time is over at `now`, and plans when to look again. Returns what is left of them, and
    /// whether there may be more.
    pub(super) fn sweep(&self, now: u64) -> (Option<Gone<T>>, bool) {
        let Some(lives) = self.lives() else {
            return (None, false);
        };
        let (mut old, counters) = (Vec::with_capacity(MOST), lives.swept.counters());
        let sweeping = lock(&lives.sweeping);
        counters.count_taken(MOST);
        let mut next = self.take_old(lives.ttl.over(now), MOST, &mut old);
        counters.uncount_taken(MOST - old.len());
        drop(sweeping);
        if next.is_none() {
            barrier::full("ttl.finds-nothing");
            next = self.take_old(0, 0, &mut old);
        }
        if let Some(next) = next {
            self.due_timer.plan(lives.ttl.end(next));
        }
        let more = old.len() == MOST;
        let entries = old.into_iter().map(|Dequeued { entry, gone }| {
            if Self::SORTS {
                self.registry().unregister(entry.item.meta, gone);
            }
            entry
        });
        (
            Some(self.drop_instead(entries, counters, Ending::TimedOut)),
            more,
        )
    }

    /// Takes items out that were pushed at `until` or before, as far as nothing younger comes before them. Returns the
    /// least time of what comes next then.
    fn take_old(
        &self,
        until: u64,
        most: usize,
        into: &mut Vec<Dequeued<T, O::Meta>>,
    ) -> Option<u64> {
        if Self::SORTS {
            return self.source.take_old(until, most, into);
        }
        let mut entries = Vec::new();
        let next = self.shards.take_old(until, most, &mut entries);
        into.extend(entries.into_iter().map(|entry| Dequeued { entry, gone: 0 }));
        next
    }

    /// Plans the end of the time of items that have become ready, the first of which has this time stamp.
    pub(crate) fn plan_end(&self, since: u64) {
        let Some(lives) = self.lives() else {
            return;
        };
        barrier::full("ttl.plans");
        let end = lives.ttl.end(since);
        if end < self.due_timer.next() && self.due_timer.plan(end) {
            self.due_timer.call_backup();
            self.due_timer.notify_planned();
            self.planned();
        }
    }

    /// Follows the push of an item with this time stamp: sweeps if that is due, so that what is over is not kept by pushes alone.
    #[inline(never)]
    pub(crate) fn pushed(&self, since: u64) {
        if self.expires() && !planted!("ttl.plans-nothing") {
            self.plan_end(since);
            if self.due_timer.next() < since {
                // The item is pushed, whatever a clock does.
                swallow_panic(|| {
                    self.release(since - 1);
                });
            }
        }
    }

    /// Whether an item with this delivery may be delivered: it was not pushed at `over` or before.
    pub(crate) fn is_alive(delivery: DeliveryMeta, over: u64) -> bool {
        delivery.since == 0 || delivery.since > over
    }
}
