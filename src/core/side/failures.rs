//! What a handle has ready for deliveries that fail, and where such items go.

use super::{NoRoom, Side};
use crate::core::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::retry::{Cause, Failed, Fate};
use crate::raw::{Access, Grip, Seat, Spot, Tag, Vacant};
use crate::sync::{lock, swallow_panic};
use crate::Reason;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

const FOREIGN: &str = "item does not belong to this transaction";

/// Envelopes that are kept for the next transaction.
const KEPT: usize = 32;

impl<T, O: Order<T>> Side<T, O> {
    /// Sets an envelope aside for each held item, so that an abort allocates nothing.
    pub(super) fn set_envelopes_aside(&self, held: usize) {
        if self.shared.failures.has_rules() {
            let mut envelopes = lock(&self.envelopes);
            while envelopes.len() < held {
                envelopes.push(Vacant::new());
            }
        }
    }

    /// An envelope that was set aside, or a new one.
    fn envelope(&self) -> Vacant<Failed<StoredOf<T, O>>> {
        let envelope = lock(&self.envelopes).pop();
        envelope.unwrap_or_else(Vacant::new)
    }

    /// Parts with the held items that do not go back to where they came from, and says how many permits
    /// that frees.
    pub(crate) fn part_with_failed(&self, seat: &mut Seat<StoredOf<T, O>>, cause: &Cause) -> usize {
        let Shared { failures, time, .. } = &**self.shared();
        if !failures.may_part(cause) {
            return 0;
        }
        // A clock is user code: it may panic, and an abort may not. Then nothing is delayed.
        let mut now = None;
        if failures.may_delay(cause) {
            swallow_panic(|| now = Some(time.now()));
        }
        let (mut spot, fate) = (Spot::default(), Cell::new(Fate::Head));
        let mut dead = 0;
        while let Some(entry) = seat.remove_next(&mut spot, |_, tag| {
            fate.set(failures.fate(tag, cause));
            fate.get() == Fate::Death || fate.get() != Fate::Head && now.is_some()
        }) {
            let now = now.unwrap_or_default();
            dead += usize::from(fate.get() == Fate::Death);
            self.put_away(fate.get(), now, Failed::new(entry, cause));
            seat.count_aborted(1);
        }
        lock(&self.envelopes).truncate(KEPT);
        dead
    }

    /// Hands over the dead letters that are too many.
    pub(crate) fn drop_excess_letters(&self) {
        let Shared { failures, time, .. } = &**self.shared();
        failures.letters.drop_excess(time);
    }

    /// Puts a failed item where it goes.
    fn put_away(&self, fate: Fate, now: u64, failed: Failed<StoredOf<T, O>>) {
        match fate {
            Fate::Head => self.shared.put_at_head(failed.entry),
            Fate::Delay(delay) => self.shared.delay(self.envelope(), failed, now, delay),
            Fate::Death => self.shared.bury(self.envelope(), failed),
        }
    }

    /// Takes a held item out of the transaction, to be delivered later: after `delay`, or as the queue's
    /// rules say.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn retry(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        item: Grip<'_, T>,
        delay: Option<Duration>,
    ) -> Result<(), NoRoom> {
        let failures = &self.shared.failures;
        self.send_away(access, item, &Reason::Retried.into(), |tag, cause| {
            // It takes its permit with it, which may be the one of a staged item.
            let has_room = self.has_one_more(access);
            has_room.then(|| match delay {
                Some(delay) => failures.fate_after(tag, delay),
                None => failures.fate(tag, cause),
            })
        })
    }

    /// Takes a held item out of the transaction, not to be delivered again, because of this error.
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[track_caller]
    pub(crate) fn fail(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        item: Grip<'_, T>,
        error: Arc<str>,
    ) -> Result<(), NoRoom> {
        let cause = Cause {
            error: Some(error),
            ..Reason::Failed.into()
        };
        let failures = &self.shared.failures;
        self.send_away(access, item, &cause, |tag, cause| {
            if failures.letters.reserve() {
                Some(Fate::Death)
            } else {
                let has_room = self.has_one_more(access);
                has_room.then(|| failures.fate(tag, cause))
            }
        })
    }

    /// Takes a held item out of the transaction, to where `fate` says, if there is room for it.
    #[track_caller]
    fn send_away(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        item: Grip<'_, T>,
        cause: &Cause,
        fate: impl FnOnce(Tag, &Cause) -> Option<Fate>,
    ) -> Result<(), NoRoom> {
        let Shared { failures, time, .. } = &**self.shared();
        let (tag, address) = (
            access.tag_of(item.address()).expect(FOREIGN),
            item.address(),
        );
        let now = time.now();
        let fate = fate(tag, cause).ok_or(NoRoom)?;
        let Ok(copy) = self.end_lease(address) else {
            // Others have it, and its delivery is counted; it leaves with its transaction.
            if fate == Fate::Death {
                failures.letters.release();
            }
            return Ok(());
        };
        let entry = access.remove(item);
        self.put_away(fate, now, Failed::new(entry, cause));
        access.count_aborted(1);
        if fate == Fate::Death {
            self.release_permit(access);
            self.drop_excess_letters();
        }
        self.pay_for_one(address);
        // After the close the end of a delivery may be what others wait for.
        self.shared.ended(0);
        drop(copy); // user code
        Ok(())
    }
}
