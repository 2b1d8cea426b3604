//! Pushes with a time.
//!
//! An item whose time has not come is counted as delayed before the push reads whether the queue is closed: so a pop that
//! finds nothing left sees the count, or the push sees that the queue is closed.
//!
//! In a transaction it is staged like any other, and at the commit it leaves its shard again: so room, keys, closing and aborts
//! are those of staged items.
//!
//! | a commit | because |
//! |---|---|
//! | takes the scheduled items out of the staged ones, and counts them as delayed | they are in the queue until they are ready |
//! | publishes the others | |
//! | schedules these | even one whose time has come meanwhile is not ready before the others are |

use super::access::{Access, Put};
use super::admit::Load;
use super::local::Local;
use super::staged::{AtNeed, Call};
use crate::order::{Order, PushMeta, Terms, When};
use crate::policy::delay::Scheduled;
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::sync::planted;
use crate::PushError;

/// The capacity that a handle keeps for scheduled items.
const KEPT_CAPACITY: usize = 64;

impl<T, O: Order<T>> Local<T, O> {
    /// Stores admitted items, or schedules them.
    #[inline(always)] // as the store of the load
    pub(super) fn store_by<L: Load<T, O>>(
        &mut self,
        load: L,
        metas: L::Metas,
        put: Put,
        terms: Option<&Terms>,
    ) -> Result<L::Pushed, PushError<L>> {
        match terms.and_then(Terms::when) {
            None => load.store(self, metas, put),
            Some(when) if put == Put::Publish => self.schedule_now(load, metas, when),
            Some(when) => self.stage_later(load, metas, when),
        }
    }

    /// Schedules items that are admitted.
    fn schedule_now<L: Load<T, O>>(
        &mut self,
        load: L,
        metas: L::Metas,
        When { due, ticket }: When,
    ) -> Result<L::Pushed, PushError<L>> {
        let count = load.as_slice().len();
        let (shared, delayed) = (&self.shared, &self.shared.failures.delayed);
        if !planted!("later.counts-late") {
            delayed.count_coming(count);
        }
        if self.ready.fenced_word().is_closed() {
            delayed.count_released(count);
            L::withdraw(metas, shared);
            L::return_permits(self, Put::Publish);
            return Err(self.refuse(load));
        }
        planted!("later.counts-late", delayed.count_coming(count));
        let items = load.registered(metas).enumerate();
        shared.schedule(
            items.map(|(nth, (item, PushMeta { since, meta }))| Scheduled {
                due,
                ticket: ticket.nth(nth),
                entry: Entry {
                    item: Stored { item, meta },
                    delivery: DeliveryMeta::first(since),
                },
            }),
        );
        shared.shards().count_restored(count);
        self.end_push(count);
        Ok(L::pushed(count))
    }

    /// Stages items that are to be scheduled when the transaction commits.
    #[inline(never)]
    fn stage_later<L: Load<T, O>>(
        &mut self,
        load: L,
        metas: L::Metas,
        when: When,
    ) -> Result<L::Pushed, PushError<L>> {
        let first = self.staged();
        let pushed = load.store(self, metas, Put::Stage)?;
        let end = self.staged();
        let is_first = self.deliveries.begin_scheduling();
        let later = self.at_need.get_or_insert_with(Box::default);
        if is_first {
            later.calls.clear(); // of a transaction that was aborted
        }
        later.calls.push(Call { first, end, when });
        Ok(pushed)
    }

    /// Takes the scheduled items out of the staged ones, and returns their number. The caller publishes the others, and then
    /// [schedules](Local::schedule_later) these.
    pub(super) fn take_later(&mut self) -> usize {
        if !self.deliveries.are_scheduling() {
            return 0;
        }
        // Apart from the access, which the others need meanwhile.
        let Some(mut later) = self.at_need.take() else {
            return 0;
        };
        let (access, AtNeed { calls, taken, .. }) = (&mut self.access, &mut *later);
        let kept = calls.first().map_or(usize::MAX, |call| call.first);
        let mut others = Vec::new();
        while let Some(entry) = access.endpoint.unstage(kept) {
            let nth = access.staged();
            match calls.last().filter(|call| nth < call.end) {
                Some(call) => {
                    let (when, first) = (call.when, call.first);
                    let ticket = when.ticket.nth(nth - first);
                    let due = when.due;
                    taken.push(Scheduled { due, ticket, entry });
                    if nth == first {
                        calls.pop();
                    }
                }
                None => others.push(entry),
            }
        }
        taken.reverse();
        for Entry { item, delivery } in others.into_iter().rev() {
            let (since, meta) = (delivery.since, item.meta);
            access.stage_registered(item.item, PushMeta { since, meta });
        }
        access.shared.failures.delayed.count_coming(taken.len());
        if access.staged() == 0 {
            access.endpoint.counters().abort_staging();
        }
        let count = taken.len();
        self.at_need = Some(later);
        count
    }

    /// Schedules the items that were [taken](Local::take_later) out of the staged ones.
    pub(super) fn schedule_later(&mut self) {
        let Access {
            shared, at_need, ..
        } = &mut self.access;
        if let Some(later) = at_need {
            shared.shards().count_restored(later.taken.len());
            shared.schedule(later.taken.drain(..));
            later.taken.shrink_to(KEPT_CAPACITY);
            later.calls.shrink_to(KEPT_CAPACITY);
        }
    }
}
