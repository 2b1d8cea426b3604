//! The end of a transaction: staged and held items, permits and leases are settled; then waiters are notified.

use super::local::{CellOf, CommitCounts, Local};
use super::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::lease::Copies;
use crate::policy::retry::Cause;
use crate::raw::{HeldPosition, Stored, Unborrowed};
use crate::sync::{defer_with, planted, step};
use std::mem;

/// Aborts.
impl<T, O: Order<T>> Local<T, O> {
    pub(crate) fn abort_for(&mut self, cause: &Cause, unborrowed: &Unborrowed<'_>) {
        let held_any = self.held() > 0;
        let removed = self.deliveries.aborting(&mut self.endpoint, unborrowed);
        let dead = self.reroute_failed(cause, unborrowed);
        let held = self.endpoint.give_back(unborrowed);
        self.endpoint.end_staging();
        planted!("end.frees-held", self.end_permits(held, 0));
        self.end_permits(dead, 0);
        self.deliveries.aborted(&self.shared);
        step!("end.aborts-unsaid", self.notify_end(held));
        if dead > 0 {
            self.shared.drop_excess_letters();
        }
        if held_any {
            self.deliveries.ended(&self.shared);
        }
        // Runs also if a destructor panics.
        let _staged = defer_with(self, |local| local.drop_staged());
        drop(removed);
    }

    /// Settles the permits of a transaction.
    #[inline]
    fn end_permits(&mut self, freed: usize, published: usize) {
        self.permits.end(freed, published);
    }

    /// Drops the staged items.
    pub(super) fn drop_staged(&mut self) {
        if !Shared::<T, O>::SORTS {
            return self.endpoint.drop_staged();
        }
        // The destructor of an item may panic.
        let mut local = defer_with(self, |local| {
            if local.staged() > 0 {
                local.drop_staged();
            }
        });
        while let Some(entry) = local.endpoint.unstage() {
            local.shared.unregister(entry.item.meta);
            drop(entry);
        }
    }
}

/// Commits.
impl<T, O: Order<T>> CellOf<T, O> {
    /// Commits without notifying waiters, which [`Local::wake_for`] does.
    #[inline(always)] // a few stores
    pub(crate) fn commit(&mut self) -> CommitCounts {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        let (published, freed) = local.endpoint.commit(&unborrowed);
        CommitCounts { published, freed }
    }

    /// The counts of [`commit_together`](crate::raw::commit_together) in this queue.
    pub(crate) fn concluded(&mut self) -> CommitCounts {
        mem::take(&mut self.get_mut().concluded)
    }

    /// Aborts for a reason other than that the transaction is dropped.
    pub(crate) fn abort_for(&mut self, cause: &Cause) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        local.abort_for(cause, &unborrowed);
    }

    /// Does what the end of a [guarded](crate::policy::Deliveries::are_guarded) transaction involves after its commit. Returns the copies of
    /// leased items, whose destructors are user code.
    pub(crate) fn end_guard(&mut self, held_any: bool) -> Copies<StoredOf<T, O>> {
        let (local, unborrowed) = self.whole();
        local.retire_held(&unborrowed);
        let copies = local.deliveries.committed(&local.shared);
        if held_any {
            local.deliveries.ended(&local.shared);
        }
        copies
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<T> {
        let (local, unborrowed) = self.whole();
        local.endpoint.take_out(&unborrowed).map(Stored::into_item)
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self) {
        let (local, unborrowed) = self.whole();
        local.endpoint.drop_taken(&unborrowed);
    }

    /// The number of held items, and the highest number of deliveries among them.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn deliveries(&mut self) -> (usize, u32) {
        let (local, unborrowed) = self.whole();
        let (mut position, mut items, mut attempts) = (HeldPosition::default(), 0, 0);
        while let Some((_, delivery)) = local.endpoint.next_held(&mut position, &unborrowed) {
            items += 1;
            attempts = delivery.attempts.max(attempts);
        }
        (items, attempts)
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Wakes waiters for the items that the commit published and the room that it freed.
    #[inline]
    pub(crate) fn wake_for(&mut self, outcome: CommitCounts) {
        self.end_permits(outcome.freed, outcome.published);
        self.notify_end(outcome.published);
    }

    /// Records in the order that the held items are gone for good.
    fn retire_held(&mut self, unborrowed: &Unborrowed<'_>) {
        if Shared::<T, O>::SORTS {
            let mut position = HeldPosition::default();
            while let Some((stored, _)) = self.endpoint.next_held(&mut position, unborrowed) {
                self.shared.retire(stored.meta);
            }
        }
    }
}
