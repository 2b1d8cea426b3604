//! Failed deliveries of held items that do not return to the head of their shard.
//!
//! An item is counted where it goes before the counters of its handle count it as aborted. So one that is not dead is at each
//! instant counted by the counters, as delayed, or in a shard, and a thread that asks in this order misses none.

use super::access::Put;
use super::local::{CellOf, Local};
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::failed::{Cause, Failed};
use crate::policy::retry::{Disposition, Failures};
use crate::policy::Policies;
use crate::raw::{DeliveryMeta, HeldItems, HeldPosition, ItemRef, Unborrowed};
use crate::sync::{defer_with, swallow_panic};
use crate::{PushError, Reason, ReturnTo};
use std::fmt;
use std::time::Duration;

const FOREIGN: &str = "item does not belong to this transaction";

/// How a delivery ends that is not committed.
pub(crate) enum Settlement {
    /// By the rules of the queue. With [`Reason::Failed`] the item becomes a dead letter, if there is a place for it.
    Failed(Cause),
    /// As a failed delivery, to be delivered again after this time.
    After(Duration),
    /// As a failed delivery whose item goes there, if it does not become a dead letter.
    To(ReturnTo),
    /// As if it had not begun.
    Released,
}

impl Settlement {
    /// The item is delivered again by the rules of the queue.
    pub(crate) fn retry() -> Self {
        Self::Failed(Reason::Retried.into())
    }

    /// The item becomes a dead letter with this error.
    pub(crate) fn fail(error: impl fmt::Display) -> Self {
        Self::Failed(Cause {
            error: Some(error.to_string().into()),
            ..Reason::Failed.into()
        })
    }

    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Failed(cause) => cause.clone(),
            _ => Reason::Retried.into(),
        }
    }

    /// The destination of the item. If it is [`Disposition::Death`], a place is reserved for it.
    pub(super) fn disposition<T, M>(
        &self,
        failures: &Failures<T, M>,
        delivery: DeliveryMeta,
    ) -> Disposition {
        match self {
            Self::Failed(Cause {
                reason: Reason::Failed,
                ..
            }) if failures.letters.reserve() => Disposition::Death,
            Self::Failed(cause) => failures.disposition(delivery, cause),
            Self::After(delay) => failures.disposition_after(delivery, *delay),
            Self::To(to) => failures.disposition_to(delivery, *to),
            Self::Released => Disposition::Head,
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
        let disposition = self.disposition(settlement, delivery)?;
        let Ok(copy) = self.deliveries.leaving(position) else {
            // It was reclaimed, and its delivery is counted; it is removed when its transaction ends.
            if disposition == Disposition::Death {
                self.shared.failures.letters.release();
            }
            return Ok(None);
        };
        let mut entry = self.endpoint.remove(item, position);
        self.release_load(entry.delivery.since);
        if let Settlement::Released = settlement {
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
        let is_retried =
            disposition == Disposition::Head && !matches!(settlement, Settlement::Released);
        self.shared
            .emit_retried(cause.reason, usize::from(is_retried));
        Ok(copy.map(|copy| copy.item.into_item()))
    }

    /// Where a held item goes, if there is room for it there.
    fn disposition(
        &mut self,
        settlement: &Settlement,
        delivery: DeliveryMeta,
    ) -> Result<Disposition, PushError<()>> {
        let disposition = settlement.disposition(&self.shared.failures, delivery);
        // Otherwise the item keeps its permits, which staged items may be using.
        let weight = || self.shared.weight_of(delivery.since);
        let weight = self.weighs().then(weight);
        if disposition != Disposition::Death && !self.take_permits(weight, Put::Stage) {
            return Err(PushError::Full(())); // it has no permit of its own
        }
        if !matches!(settlement, Settlement::Released) {
            self.deliveries.give_up();
        }
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
