//! The end of a transaction: staged and held items, permits and what the options keep are settled; then waiters are notified.

use super::local::{CellOf, Local};
use crate::order::Order;
use crate::policy::failed::Cause;
use crate::policy::unique::Stage;
use crate::policy::Remains;
use crate::raw::{HeldPosition, Stored, Unborrowed};
use crate::sync::{defer_with, planted, step};
use std::mem;

/// The result of a commit: how many held items are the caller's now, and what the caller drops, once it cannot be interrupted
/// any more.
pub(crate) type Ended<T, O> = (usize, Remains<T, O>);

/// Aborts.
impl<T, O: Order<T>> Local<T, O> {
    pub(crate) fn abort_for(&mut self, cause: &Cause, unborrowed: &Unborrowed<'_>) {
        let held_any = self.held() > 0;
        let tracks = self.shared.tracks();
        if tracks {
            step!("unique.aborts-late", self.end_staged_keys(Stage::Aborted));
        }
        // Before the items go back: once they are visible, others can take them, and none may be reclaimed from this transaction
        // any more.
        let removed = self
            .deliveries
            .aborting(&mut self.access.endpoint, unborrowed);
        // These leave the hold under rules of their own; `give_back` returns what is left, with its permits.
        let mut freed = 0;
        let reroutes = tracks || self.shared.failures.may_reroute(cause);
        if reroutes {
            freed = self.reroute_failed(cause, unborrowed);
        }
        let held = self.endpoint.give_back(unborrowed);
        self.endpoint.counters().abort_staging();
        planted!("end.frees-held", self.permits.end(held, 0));
        self.permits.end(freed, 0);
        if tracks {
            self.end_loads();
        }
        // Before waiters are woken, who may need the tokens.
        self.deliveries.end_tokens(&self.access.shared, false);
        step!("end.aborts-unsaid", self.notify_end(held));
        // The overflow function and the subscribers are user code: after all that others wait for. Also if the dead weighed nothing.
        if reroutes {
            self.shared.drop_excess_letters();
        }
        if held_any {
            self.deliveries.ended(&self.shared);
            self.shared.emit_retried(cause.reason, held);
        }
        // Last: the destructors of staged items are user code. This runs also if one of the removed items panics.
        let _staged = defer_with(self, |local| local.drop_staged(0));
        drop(removed);
    }
}

/// The keys of a transaction, if they are unique.
impl<T, O: Order<T>> Local<T, O> {
    fn commit_keys(&self, unborrowed: &Unborrowed<'_>) {
        if self.is_unique() {
            let mut position = HeldPosition::default();
            while let Some((_, delivery)) = self.endpoint.next_held(&mut position, unborrowed) {
                self.shared.committing(delivery.since);
            }
        }
    }

    fn end_staged_keys(&mut self, end: Stage) {
        if !self.is_unique() {
            return;
        }
        let at_need = self.at_need.as_deref_mut();
        if let Some(keys) = at_need.and_then(|at_need| at_need.keys.take()) {
            keys.wake(Some(end));
        }
    }
}

/// Commits.
impl<T, O: Order<T>> CellOf<T, O> {
    /// Commits, and ends the transaction.
    pub(crate) fn commit(&mut self) -> Ended<T, O> {
        let later = self.prepare();
        let loads = self.get_mut().end_loads();
        let taken = self.commit_with(later, loads);
        self.end_guarded(taken)
    }

    /// The part of the options in a commit that cannot fail any more, before it is visible to others. Returns how many items are
    /// to be scheduled.
    pub(super) fn prepare(&mut self) -> usize {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        step!("unique.commits-late", local.commit_keys(&unborrowed));
        local.end_staged_keys(Stage::Committed);
        local.take_later()
    }

    /// As [`commit`](Self::commit), for a transaction that is not [guarded](crate::policy::Deliveries::are_guarded):
    /// saves a worker 8 of 336 instructions.
    #[inline(always)] // a few stores
    pub(crate) fn commit_unguarded(&mut self) -> usize {
        self.commit_with(0, None)
    }

    /// Commits beside items that are to be scheduled.
    #[inline(always)] // a few stores
    fn commit_with(&mut self, later: usize, loads: Option<(usize, usize)>) -> usize {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        let (published, freed) = local.endpoint.commit(&unborrowed);
        local.wake_for((published, later, freed), loads);
        freed
    }

    /// Ends the transaction after [`commit_together`](crate::raw::commit_together).
    pub(crate) fn end_concluded(&mut self) -> Ended<T, O> {
        let local = self.get_mut();
        let (published, freed) = mem::take(&mut local.concluded);
        let later = local.at_need.as_ref();
        let later = later.map_or(0, |later| later.taken.len());
        let loads = local.end_loads();
        local.wake_for((published, later, freed), loads);
        self.end_guarded(freed)
    }

    /// The part of the options and of the order in the end of a commit, after waiters were notified: it depends on nothing
    /// that they do. Nothing here panics: the caller can still give out what was taken.
    fn end_guarded(&mut self, taken: usize) -> Ended<T, O> {
        let (local, unborrowed) = self.whole();
        if !local.deliveries.are_guarded() {
            return (taken, None);
        }
        if local.deliveries.are_scheduling() {
            local.schedule_later();
        }
        local.retire_held(&unborrowed);
        let remains = local.deliveries.committed(&local.access.shared);
        if taken > 0 {
            local.deliveries.ended(&local.shared);
        }
        (taken, remains)
    }

    /// Aborts for a reason other than that the transaction is dropped.
    pub(crate) fn abort_for(&mut self, cause: &Cause) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        local.abort_for(cause, &unborrowed);
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
    #[cfg(feature = "workers")]
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
