//! Items that were in the queue in an earlier process.

use super::ttl::FIRST;
use super::Shared;
use crate::order::{EntryOf, Order, PlaceOf, PushMeta, Source, Terms, When};
use crate::policy::delay::Scheduled;
use crate::policy::failed::Failed;
use crate::policy::unique::OnDuplicate;
use crate::raw::{DeliveryMeta, Entry, Stored, Vacant};
use crate::Reason;
use std::slice;
use std::time::Duration;

/// Items on their way into the queue: first those that were delivered before and are due, then the others.
pub(crate) type Restored<T, O> = [Vec<EntryOf<T, O>>; 2];

impl<T, O: Order<T>> Shared<T, O> {
    /// Adds an item that was delivered before, or not: to those that are restored, or to the delayed ones. If its key is taken, it
    /// follows the other item, if that is the rule and it was not delivered; or else it has the key from now on. Returns whether
    /// there was room for it, unless it `has_room` already.
    ///
    /// # Panics
    ///
    /// If its key in the order is at its limit.
    pub(crate) fn add_restored(
        &self,
        restored: &mut Restored<T, O>,
        mut item: T,
        delivery: DeliveryMeta,
        delay: Duration,
        (place, terms): (PlaceOf<T, O>, Terms),
        has_room: bool,
    ) -> bool {
        let weights = self.weigh(slice::from_ref(&item));
        let known = weights.nth(0);
        if !has_room && !self.takes(known.0.unwrap_or(1)) {
            return false;
        }
        if let Some((unique, key)) = self.unique().zip(known.1.as_ref()) {
            let follows = unique.rule == OnDuplicate::Follow && delivery.attempts == 0;
            if follows && terms.when().is_none() && unique.is_followable(key) {
                match self.follow(item, delivery.since, known, place) {
                    Ok(followed) => return followed.is_ok(),
                    Err(other) => item = other,
                }
            }
        }
        let entered = self.enter_restored(&item, delivery.since, place, (known, Some(&terms)));
        let PushMeta { since, meta } = entered.expect("a queue has room for what is restored");
        let delivery = DeliveryMeta { since, ..delivery };
        let item = Stored { item, meta };
        let entry = Entry { item, delivery };
        self.shards.count_restored(1);
        if !delay.is_zero() {
            let failed = Failed::new(entry, &Reason::Aborted.into());
            self.delay(Vacant::new(), failed, self.time.now(), delay);
        } else if let Some(When { due, ticket }) = terms.when() {
            self.failures.delayed.count_coming(1);
            let entry = for_next_delivery(entry);
            self.schedule(std::iter::once(Scheduled { due, ticket, entry }));
        } else {
            restored[usize::from(delivery.attempts == 0)].push(entry);
        }
        true
    }

    /// Makes restored items ready, in their order: before all others, or in a queue that sorts before what is pushed later.
    pub(crate) fn restore(&self, [mut returned, pushed]: Restored<T, O>) {
        if !Self::SORTS {
            returned.extend(pushed);
            self.put_at_head(returned);
            return;
        }
        let pushed: Vec<_> = pushed.into_iter().map(for_next_delivery).collect();
        let count = pushed.len();
        self.source.restore(pushed);
        self.ready.notify(count);
        self.put_at_head(returned);
    }

    /// Makes restored items ready, in their order, after all others. The queue does not sort.
    pub(crate) fn restore_at_tail(&self, [returned, pushed]: Restored<T, O>) {
        let count = returned.len() + pushed.len();
        let entries = returned.into_iter().chain(pushed);
        entries.for_each(|entry| self.shards.put_at_tail(entry));
        self.ready.notify(count);
        self.plan_end(FIRST);
    }
}

/// What an order has, and what is scheduled, is counted for the delivery to come.
fn for_next_delivery<I>(entry: Entry<I>) -> Entry<I> {
    let delivery = entry.delivery.again();
    Entry { delivery, ..entry }
}
