//! What a handle has ready for deliveries that fail, and where such items go.

use super::{NoRoom, Side};
use crate::failure::{Failed, Failures, Fate};
use crate::raw::{Access, Entry, Grip, Seat, Spot, Vacant};
use crate::sync::lock;
use crate::wait::quietly;
use crate::Reason;
use std::cell::Cell;
use std::time::Duration;

/// Envelopes that are kept for the next transaction.
const KEPT: usize = 32;

impl<T> Side<T> {
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
    fn envelope(&self) -> Vacant<Failed<T>> {
        let envelope = lock(&self.envelopes).pop();
        envelope.unwrap_or_else(Vacant::new)
    }

    /// Parts with the held items that do not go back to where they came from, and says how many permits
    /// that frees.
    pub(crate) fn part_with_failed(&self, seat: &mut Seat<T>, reason: Reason) -> usize {
        if !self.shared.failures.has_rules() {
            return 0;
        }
        let failures = &self.shared.failures;
        let (mut spot, fate) = (Spot::default(), Cell::new(Fate::Head));
        let mut dead = 0;
        while let Some(entry) = seat.remove_next(&mut spot, |_, tag| {
            fate.set(failures.fate(tag));
            fate.get() != Fate::Head
        }) {
            dead += usize::from(fate.get() == Fate::Death);
            self.put_away(fate.get(), entry, reason, None);
            seat.count_aborted(1);
        }
        lock(&self.envelopes).truncate(KEPT);
        dead
    }

    /// Hands over the dead letters that are too many.
    pub(crate) fn drop_excess_letters(&self) {
        let Failures { letters, .. } = &self.shared.failures;
        quietly(|| letters.drop_excess(&self.shared.time));
    }

    /// Puts a failed item where it goes, which is not back to the head: to the dead letters, or out of the
    /// way for `delay` or as long as the queue's rules say.
    fn put_away(&self, fate: Fate, entry: Entry<T>, reason: Reason, delay: Option<Duration>) {
        let failures = &self.shared.failures;
        let attempts = entry.tag.attempts;
        let failed = Failed::new(entry, reason);
        if fate == Fate::Death {
            self.shared.bury(self.envelope(), failed);
            return;
        }
        let backoff = || failures.backoff().map(|backoff| backoff.delay(attempts));
        let delay = delay.or_else(backoff).unwrap_or_default();
        self.shared.delay(self.envelope(), failed, delay);
    }

    /// Takes a held item out of the transaction, to be delivered later: after `delay`, or as the queue's
    /// rules say.
    pub(crate) fn retry(
        &self,
        access: &Access<'_, T>,
        item: Grip<'_, T>,
        delay: Option<Duration>,
    ) -> Result<(), NoRoom> {
        // It takes its permit with it, which may be the one of a staged item.
        if !self.has_one_more(access) {
            return Err(NoRoom);
        }
        let address = item.address();
        let entry = access.remove(item);
        if !self.end_lease(address) {
            // Others have it, and its delivery is counted.
            return Ok(());
        }
        let fate = self.shared.failures.fate(entry.tag);
        self.put_away(fate, entry, Reason::Retried, delay);
        access.count_aborted(1);
        if fate == Fate::Death {
            self.give_back(1);
            self.drop_excess_letters();
        }
        // After the close the end of a delivery may be what others wait for.
        self.shared.ended(0);
        Ok(())
    }
}
