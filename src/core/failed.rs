//! Failed deliveries of held items that do not return to the head of their shard.

use super::local::Local;
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::retry::{Cause, Disposition, Failed};
use crate::policy::Policies;
use crate::raw::{DeliveryMeta, HeldPosition, ItemRef, Unborrowed};
use crate::sync::swallow_panic;
use crate::Reason;
use std::sync::Arc;
use std::time::Duration;

const FOREIGN: &str = "item does not belong to this transaction";

/// An item cannot be delayed, because it has no permit of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoRoom;

/// The copy of an item that has left its transaction, if any. Dropping it runs user code.
pub(crate) type Removed<T> = Option<T>;

/// Items that leave a transaction together and are retried at once.
pub(super) type AtHead<T, O> = Vec<EntryOf<T, O>>;

impl<T, O: Order<T>> Local<T, O> {
    /// Delays or buries the held items that do not return to the head of their shard, and returns how many permits
    /// that frees.
    #[inline]
    pub(super) fn reroute_failed(&mut self, cause: &Cause, unborrowed: &Unborrowed<'_>) -> usize {
        if self.shared.failures.may_reroute(cause) {
            self.reroute_by_rules(cause, unborrowed)
        } else {
            0
        }
    }

    #[inline(never)]
    fn reroute_by_rules(&mut self, cause: &Cause, unborrowed: &Unborrowed<'_>) -> usize {
        let Policies { failures, time, .. } = &**self.shared;
        // A clock is user code: it may panic, but an abort must not. If it does, nothing is delayed.
        let mut now = None;
        if failures.may_delay(cause) {
            swallow_panic(|| now = Some(time.now()));
        }
        let (mut position, mut dead) = (HeldPosition::default(), 0);
        while let Some((_, delivery)) = self.endpoint.next_held(&mut position, unborrowed) {
            let disposition = self.shared.failures.disposition(delivery, cause);
            if disposition == Disposition::Head
                || disposition != Disposition::Death && now.is_none()
            {
                continue;
            }
            dead += usize::from(disposition == Disposition::Death);
            let entry = self.endpoint.remove_before(position, unborrowed);
            let failed = Failed::new(entry, cause);
            self.route(disposition, now.unwrap_or_default(), failed, None);
        }
        self.deliveries.free_envelopes();
        dead
    }

    /// Moves a failed item to where `disposition` says, but if that is the head to `at_head`, if there is one: the caller then
    /// [puts](Local::put_at_head) it there.
    fn route(
        &mut self,
        disposition: Disposition,
        now: u64,
        failed: Failed<StoredOf<T, O>>,
        at_head: Option<&mut AtHead<T, O>>,
    ) {
        match disposition {
            Disposition::Head => {
                return match at_head {
                    Some(at_head) => at_head.push(failed.entry),
                    None => self.put_at_head([failed.entry]),
                }
            }
            Disposition::Delay(delay) => {
                let envelope = self.deliveries.envelope();
                self.shared.delay(envelope, failed, now, delay);
            }
            Disposition::Death => {
                let envelope = self.deliveries.envelope();
                self.shared.bury(envelope, failed);
            }
        }
        self.endpoint.count_aborted(1);
    }

    /// Puts removed items at the head, in their order.
    pub(super) fn put_at_head<I>(&mut self, entries: I)
    where
        I: IntoIterator<Item = EntryOf<T, O>>,
        I::IntoIter: ExactSizeIterator,
    {
        let count = self.shared.put_at_head(entries);
        self.endpoint.count_aborted(count);
    }

    /// Takes a held item out of the transaction, to be delivered again: after `delay`, or by the queue's rules. If that
    /// is at once, and there is an `at_head`, the caller puts it there, together with others.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn retry(
        &mut self,
        item: ItemRef<'_, T>,
        delay: Option<Duration>,
        at_head: Option<&mut AtHead<T, O>>,
    ) -> Result<Removed<T>, NoRoom> {
        let cause = Reason::Retried.into();
        self.reroute_held(item, &cause, at_head, |local, delivery, cause| {
            // The item keeps its permit, which a staged item may be using.
            let has_room = local.ensure_permit();
            let failures = &local.shared.failures;
            has_room.then(|| match delay {
                Some(delay) => failures.fate_after(delivery, delay),
                None => failures.disposition(delivery, cause),
            })
        })
    }

    /// Takes a held item out of the transaction, to become a dead letter with this error. If there is no place for it, it
    /// is [retried](Local::retry).
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn fail(
        &mut self,
        item: ItemRef<'_, T>,
        error: Arc<str>,
        at_head: Option<&mut AtHead<T, O>>,
    ) -> Result<Removed<T>, NoRoom> {
        let cause = Cause {
            error: Some(error),
            ..Reason::Failed.into()
        };
        self.reroute_held(item, &cause, at_head, |local, delivery, cause| {
            if local.shared.failures.letters.reserve() {
                return Some(Disposition::Death);
            }
            let has_room = local.ensure_permit();
            has_room.then(|| local.shared.failures.disposition(delivery, cause))
        })
    }

    /// Takes a held item out of the transaction and puts it at the head, as if it had not been delivered.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn put_back(&mut self, item: ItemRef<'_, T>) -> Result<Removed<T>, NoRoom> {
        let position = self.endpoint.position_of(&item).expect(FOREIGN);
        if !self.ensure_permit() {
            return Err(NoRoom);
        }
        let Ok(copy) = self.deliveries.leaving(position) else {
            // As in `reroute_held`.
            return Ok(None);
        };
        let mut entry = self.endpoint.remove(item, position);
        entry.delivery = entry.delivery.before();
        self.put_at_head([entry]);
        self.deliveries.left(&self.shared, position);
        self.shared.notify_end(0);
        Ok(copy.map(|copy| copy.item.into_item()))
    }

    fn ensure_permit(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.permits.ensure_permit(staged, held)
    }

    /// Moves a held item out of the transaction to where `disposition` says, if there is room for it.
    #[track_caller]
    fn reroute_held(
        &mut self,
        item: ItemRef<'_, T>,
        cause: &Cause,
        at_head: Option<&mut AtHead<T, O>>,
        disposition: impl FnOnce(&mut Self, DeliveryMeta, &Cause) -> Option<Disposition>,
    ) -> Result<Removed<T>, NoRoom> {
        let position = self.endpoint.position_of(&item).expect(FOREIGN);
        let delivery = self.endpoint.delivery_before(position);
        let now = self.shared.time.now();
        let disposition = disposition(self, delivery, cause).ok_or(NoRoom)?;
        self.deliveries.give_up();
        let Ok(copy) = self.deliveries.leaving(position) else {
            // It was reclaimed, and its delivery is counted; it is removed when its transaction ends.
            if disposition == Disposition::Death {
                self.shared.failures.letters.release();
            }
            return Ok(None);
        };
        let entry = self.endpoint.remove(item, position);
        self.route(disposition, now, Failed::new(entry, cause), at_head);
        if disposition == Disposition::Death {
            let (staged, held) = (self.staged(), self.held());
            self.permits.release_one(staged, held);
            self.shared.drop_excess_letters();
        }
        self.deliveries.left(&self.shared, position);
        // After the close, waiters may wait for the end of this delivery.
        self.shared.notify_end(0);
        Ok(copy.map(|copy| copy.item.into_item()))
    }
}
