//! Failed deliveries of held items that do not return to the head of their shard.
//!
//! An item is counted where it goes before the counters of its handle count it as aborted. So one that is not dead is at each
//! instant counted by the counters, as delayed, or in a shard, and a thread that asks in this order misses none.

use super::access::Put;
use super::local::{CellOf, Local};
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::failed::{Cause, Failed};
use crate::policy::retry::Disposition;
use crate::policy::Policies;
use crate::raw::{DeliveryMeta, HeldItems, HeldPosition, ItemRef, Unborrowed};
use crate::sync::{defer_with, swallow_panic};
use crate::{PushError, Reason};
use std::sync::Arc;
use std::time::Duration;

const FOREIGN: &str = "item does not belong to this transaction";

/// What is to happen to a held item that leaves its transaction.
#[derive(PartialEq)]
pub(crate) enum Settlement {
    /// It is delivered again after this time, or without one by the rules of the queue.
    Retry(Option<Duration>),
    /// It becomes a dead letter with this error. If there is no place for it, it is delivered again by the rules.
    Fail(Arc<str>),
    /// It is ready again, as if it had not been delivered.
    PutBack,
}

impl Settlement {
    fn cause(&self) -> Cause {
        match self {
            Self::Retry(_) | Self::PutBack => Reason::Retried.into(),
            Self::Fail(error) => Cause {
                error: Some(Arc::clone(error)),
                ..Reason::Failed.into()
            },
        }
    }
}

/// The copy of an item that has left its transaction, if any. Dropping it runs user code.
pub(crate) type Removed<T> = Option<T>;

/// Items that leave a transaction together and are retried at once.
pub(super) type AtHead<T, O> = Vec<EntryOf<T, O>>;

impl<T, O: Order<T>> Local<T, O> {
    /// Delays or dead-letters the held items that do not return to the head of their shard, by the rules of the queue, and returns
    /// how many permits that frees. All others are ready to go back there.
    #[inline(never)]
    pub(super) fn reroute_failed(&mut self, cause: &Cause, unborrowed: &Unborrowed<'_>) -> usize {
        let Policies { failures, time, .. } = &**self.shared;
        // A clock is user code: it may panic, but an abort must not. If it does, nothing is delayed.
        let mut now = None;
        if failures.may_delay(cause) {
            swallow_panic(|| now = Some(time.now()));
        }
        let (mut position, mut dead) = (HeldPosition::default(), 0);
        while let Some((_, delivery)) = self.endpoint.next_held(&mut position, unborrowed) {
            let mut disposition = self.shared.failures.disposition(delivery, cause);
            if matches!(disposition, Disposition::Delay(_)) && now.is_none() {
                disposition = Disposition::Head;
            }
            disposition = self.shared.returning(disposition, delivery.since, cause);
            if disposition == Disposition::Head {
                continue;
            }
            let entry = self.endpoint.remove_before(position, unborrowed);
            let failed = Failed::new(entry, cause);
            dead += self.route(disposition, now.unwrap_or_default(), failed, None);
        }
        self.deliveries.free_envelopes();
        dead
    }

    /// Moves a failed item to where `disposition` says, but if that is the head to `at_head`, if there is one: the caller then
    /// [puts](Local::put_at_head) it there. Returns how many permits the item had, if it is gone now.
    fn route(
        &mut self,
        disposition: Disposition,
        now: u64,
        failed: Failed<StoredOf<T, O>>,
        at_head: Option<&mut AtHead<T, O>>,
    ) -> usize {
        if disposition == Disposition::Head {
            match at_head {
                Some(at_head) => at_head.push(failed.entry),
                None => self.put_at_head([failed.entry]),
            }
            return 0;
        }
        let envelope = || self.deliveries.envelope();
        let shared = &self.access.shared;
        let permits = shared.put_elsewhere(disposition, now, failed, envelope);
        self.endpoint.counters().count_aborted(1);
        permits
    }

    /// Puts removed items at the head, in their order.
    pub(super) fn put_at_head<I>(&mut self, entries: I)
    where
        I: IntoIterator<Item = EntryOf<T, O>>,
        I::IntoIter: ExactSizeIterator,
    {
        let count = self.shared.put_at_head(entries);
        self.endpoint.counters().count_aborted(count);
    }

    /// The queue, and the time stamp by which a held item is known there.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[cfg(feature = "broker")]
    #[track_caller]
    pub(crate) fn known(&mut self, item: &ItemRef<'_, T>) -> (&Policies<T, O>, u64) {
        let position = self.endpoint.position_of(item).expect(FOREIGN);
        (&self.shared, self.endpoint.delivery_before(position).since)
    }

    /// Moves a held item out of the transaction, if there is room for it. If it is ready at once, and there is an `at_head`,
    /// the caller [puts](Local::put_at_head) it there, together with others.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn release_item(
        &mut self,
        item: ItemRef<'_, T>,
        settlement: &Settlement,
        at_head: Option<&mut AtHead<T, O>>,
    ) -> Result<Removed<T>, PushError<()>> {
        let position = self.endpoint.position_of(&item).expect(FOREIGN);
        let cause = settlement.cause();
        let now = self.shared.time.now();
        let delivery = self.endpoint.delivery_before(position);
        let disposition = self.disposition(settlement, delivery, &cause)?;
        let Ok(copy) = self.deliveries.leaving(position) else {
            // It was reclaimed, and its delivery is counted; it is removed when its transaction ends.
            if disposition == Disposition::Death {
                self.shared.failures.letters.release();
            }
            return Ok(None);
        };
        let mut entry = self.endpoint.remove(item, position);
        self.release_load(entry.delivery.since);
        if let Settlement::PutBack = settlement {
            entry.delivery = entry.delivery.before();
        }
        let since = entry.delivery.since;
        let disposition = self.shared.returning(disposition, since, &cause);
        let permits = self.route(disposition, now, Failed::new(entry, &cause), at_head);
        if disposition.is_end() {
            let (staged, held) = self.loads();
            self.permits.release_gone(permits, staged, held);
            self.shared.drop_excess_letters();
        }
        self.deliveries.left(&self.access.shared, position);
        // After the close, waiters may wait for the end of this delivery.
        self.shared.notify_end(0);
        let is_retried = disposition == Disposition::Head && *settlement != Settlement::PutBack;
        self.shared
            .emit_retried(cause.reason, usize::from(is_retried));
        Ok(copy.map(|copy| copy.item.into_item()))
    }

    /// Where a held item goes, if there is room for it there.
    fn disposition(
        &mut self,
        settlement: &Settlement,
        delivery: DeliveryMeta,
        cause: &Cause,
    ) -> Result<Disposition, PushError<()>> {
        let is_failed = matches!(settlement, Settlement::Fail(_));
        let dies = is_failed && self.shared.failures.letters.reserve();
        // Otherwise the item keeps its permits, which staged items may be using.
        let weight = || self.shared.weight_of(delivery.since);
        let weight = self.weighs().then(weight);
        if !dies && !self.take_permits(weight, Put::Stage) {
            return Err(PushError::Full(())); // it has no permit of its own
        }
        let failures = &self.shared.failures;
        let disposition = match *settlement {
            _ if dies => Disposition::Death,
            Settlement::PutBack => return Ok(Disposition::Head),
            Settlement::Retry(Some(delay)) => failures.disposition_after(delivery, delay),
            Settlement::Retry(None) | Settlement::Fail(_) => failures.disposition(delivery, cause),
        };
        self.deliveries.give_up();
        Ok(disposition)
    }
}

impl<T, O: Order<T>> CellOf<T, O> {
    /// All held items.
    pub(crate) fn held_items(&mut self) -> HeldItems<'_, StoredOf<T, O>> {
        self.with_held().1
    }

    /// As [`Local::release_item`], for all held items; if there is no room for one, it and the rest are still held. Those that
    /// are ready at once are put at the head together, in their order.
    pub(crate) fn release_all(&mut self, settlement: &Settlement) -> Result<(), PushError<()>> {
        let (local, mut items) = self.with_held();
        // Also if a destructor panics.
        let mut removal = defer_with((local, Vec::new()), |(local, at_head)| {
            if !at_head.is_empty() {
                local.put_at_head(at_head.drain(..));
                local.shared.notify_end(0);
            }
        });
        let (local, at_head) = &mut *removal;
        while let Some(item) = items.next() {
            let removed = local.release_item(item.project(), settlement, Some(at_head))?;
            drop(removed); // user code
        }
        Ok(())
    }
}
