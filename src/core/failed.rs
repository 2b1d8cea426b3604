//! Failed deliveries of held items that do not return to the head of their shard.

use super::local::{Envelope, Local};
use super::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::retry::{Cause, Failed, Fate};
use crate::raw::{DeliveryMeta, HeldPosition, ItemRef, Unborrowed, Vacant};
use crate::sync::swallow_panic;
use crate::Reason;
use std::sync::Arc;
use std::time::Duration;

const FOREIGN: &str = "item does not belong to this transaction";

/// The number of envelopes kept for the next transaction.
const KEPT: usize = 32;

/// An item cannot be delayed, because it has no permit of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoRoom;

/// The leased copy of an item that has left its transaction, if any. Dropping it runs user code.
pub(crate) type Removed<T> = Option<T>;

impl<T, O: Order<T>> Local<T, O> {
    /// Allocates an envelope for each held item, so that an abort allocates nothing.
    pub(super) fn preallocate_envelopes(&mut self) {
        if self.shared.failures.has_rules() {
            let held = self.held();
            while self.envelopes.len() < held {
                self.envelopes.push(Vacant::new());
            }
        }
    }

    /// Takes a preallocated envelope, or a new one.
    fn envelope(&mut self) -> Envelope<T, O> {
        self.envelopes.pop().unwrap_or_else(Vacant::new)
    }

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
        let Shared { failures, time, .. } = &*self.shared;
        // A clock is user code: it may panic, but an abort must not. If it does, nothing is delayed.
        let mut now = None;
        if failures.may_delay(cause) {
            swallow_panic(|| now = Some(time.now()));
        }
        let (mut position, mut dead) = (HeldPosition::default(), 0);
        while let Some((_, delivery)) = self.endpoint.next_held(&mut position, unborrowed) {
            let fate = self.shared.failures.fate(delivery, cause);
            if fate == Fate::Head || fate != Fate::Death && now.is_none() {
                continue;
            }
            dead += usize::from(fate == Fate::Death);
            let entry = self.endpoint.remove_before(position, unborrowed);
            self.route(fate, now.unwrap_or_default(), Failed::new(entry, cause));
            self.endpoint.count_aborted(1);
        }
        self.envelopes.truncate(KEPT);
        dead
    }

    /// Hands the dead letters beyond the limit over to the overflow function.
    pub(super) fn drop_excess_letters(&self) {
        let Shared { failures, time, .. } = &*self.shared;
        failures.letters.drop_excess(time);
    }

    /// Moves a failed item to where `fate` says.
    fn route(&mut self, fate: Fate, now: u64, failed: Failed<StoredOf<T, O>>) {
        match fate {
            Fate::Head => self.shared.put_at_head(failed.entry),
            Fate::Delay(delay) => {
                let envelope = self.envelope();
                self.shared.delay(envelope, failed, now, delay);
            }
            Fate::Death => {
                let envelope = self.envelope();
                self.shared.bury(envelope, failed);
            }
        }
    }

    /// Takes a held item out of the transaction, to be delivered again: after `delay`, or by the queue's rules.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn retry(
        &mut self,
        item: ItemRef<'_, T>,
        delay: Option<Duration>,
    ) -> Result<Removed<T>, NoRoom> {
        self.reroute_held(item, &Reason::Retried.into(), |local, delivery, cause| {
            // The item keeps its permit, which a staged item may be using.
            let has_room = local.ensure_permit();
            let failures = &local.shared.failures;
            has_room.then(|| match delay {
                Some(delay) => failures.fate_after(delivery, delay),
                None => failures.fate(delivery, cause),
            })
        })
    }

    /// Takes a held item out of the transaction, to become a dead letter with this error.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn fail(
        &mut self,
        item: ItemRef<'_, T>,
        error: Arc<str>,
    ) -> Result<Removed<T>, NoRoom> {
        let cause = Cause {
            error: Some(error),
            ..Reason::Failed.into()
        };
        self.reroute_held(item, &cause, |local, delivery, cause| {
            if local.shared.failures.letters.reserve() {
                return Some(Fate::Death);
            }
            let has_room = local.ensure_permit();
            has_room.then(|| local.shared.failures.fate(delivery, cause))
        })
    }

    fn ensure_permit(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.permits.ensure_permit(staged, held)
    }

    /// Moves a held item out of the transaction to where `fate` says, if there is room for it.
    #[track_caller]
    fn reroute_held(
        &mut self,
        item: ItemRef<'_, T>,
        cause: &Cause,
        fate: impl FnOnce(&mut Self, DeliveryMeta, &Cause) -> Option<Fate>,
    ) -> Result<Removed<T>, NoRoom> {
        let address = item.address();
        let delivery = self.endpoint.delivery_of(address).expect(FOREIGN);
        let now = self.shared.time.now();
        let fate = fate(self, delivery, cause).ok_or(NoRoom)?;
        let Ok(copy) = self.end_lease(address) else {
            // It was reclaimed, and its delivery is counted; it is removed when its transaction ends.
            if fate == Fate::Death {
                self.shared.failures.letters.release();
            }
            return Ok(None);
        };
        let entry = self.endpoint.remove(item);
        self.route(fate, now, Failed::new(entry, cause));
        self.endpoint.count_aborted(1);
        if fate == Fate::Death {
            let (staged, held) = (self.staged(), self.held());
            self.permits.release_one(staged, held);
            self.drop_excess_letters();
        }
        self.return_token(address);
        // After the close, waiters may wait for the end of this delivery.
        self.shared.notify_end(0);
        Ok(copy.map(|copy| copy.item.into_item()))
    }
}
