//! The watch of a handle's open transaction, and its leases.

use super::local::Local;
use super::shared::Shared;
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::lease::{Copies, Lost};
use crate::policy::telemetry::Event;
use crate::policy::watch::Watch;
use crate::raw::{DeliveryMeta, Entry, HeldPosition, ItemRef, Stored, Unborrowed};
use crate::sync::{lock, step};

/// The copies of a transaction's leases, and the items that were reclaimed from it.
type Lent<T, O> = (Copies<StoredOf<T, O>>, Vec<EntryOf<T, O>>);

impl<T, O: Order<T>> Local<T, O> {
    /// Records that the transaction holds something from now on.
    pub(super) fn record_begin(&self) {
        if let Some(watch) = &self.watch {
            watch.begin(self.shared.time.stamp());
        }
    }

    /// The time stamp of when the transaction took its first item; 0 if it is not watched.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn since(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.since())
    }

    /// Records a peek, during which the transaction holds something.
    pub(crate) fn record_peek(&self) {
        if self.held() == 0 {
            self.record_begin();
        }
    }

    /// Records the item that was held last.
    pub(super) fn record_held(&mut self, reference: &ItemRef<'_, StoredOf<T, O>>) {
        self.preallocate_envelopes();
        if self.held() == 1 {
            self.record_begin();
        }
        let position = self.endpoint.end_of_hold();
        let delivery = self.endpoint.delivery_before(position);
        self.record(reference, delivery, position);
    }

    /// Whether the transaction is visible to others.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Records an item that the transaction has taken, and holds before `position`.
    pub(super) fn record(
        &self,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
        position: HeldPosition,
    ) {
        let Some(watch) = &self.watch else {
            return;
        };
        if self.shared.is_observed() {
            self.emit_delivered(stored, delivery);
        }
        self.lease(watch, stored, delivery, position);
    }

    /// Emits the event of a delivery.
    #[inline(never)]
    fn emit_delivered(&self, stored: &StoredOf<T, O>, delivery: DeliveryMeta) {
        let shared = &self.shared;
        shared.emit(|| {
            let DeliveryMeta { attempts, since } = delivery;
            let pushed = Some(since).filter(|since| *since > 0);
            // Nothing keeps when an item became ready again.
            let ready = pushed.filter(|_| attempts == 1);
            let ready = ready.map(|since| shared.first_ready(since, stored.meta));
            Event::Delivered {
                attempts,
                age: pushed.map(|since| shared.time.age(since)),
                waited: ready.map(|since| shared.time.age(since)),
            }
        });
    }

    /// Leases an item that the transaction has taken, if items are leased.
    fn lease(
        &self,
        watch: &Watch<StoredOf<T, O>>,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
        position: HeldPosition,
    ) {
        let shared = &self.shared;
        let Some(lease) = shared.lease() else {
            return;
        };
        let (now, until) = (shared.time.now(), shared.time.after(lease.term));
        let item = Stored {
            item: (lease.copy)(&stored.item),
            meta: stored.meta,
        };
        lock(&watch.leases).add(position, Entry { item, delivery }, now, until);
        let is_earliest = shared.due_timer.plan(until);
        if is_earliest {
            shared.due_timer.call_backup();
            shared.planned();
            step!("leases.plans-unsaid", shared.due_timer.notify_planned());
        } else if !shared.due_timer.has_leader() {
            // What is due earlier may have been planned for items alone.
            shared.due_timer.notify_room();
        }
    }

    /// Records the end of a transaction that held something.
    pub(super) fn record_end(&self) {
        if let Some(watch) = &self.watch {
            let shared = &self.shared;
            shared.emit(|| Event::Released {
                held: shared.time.age(watch.since()),
            });
        }
    }

    /// The watch, if items are leased.
    fn leasing_watch(&self) -> Option<&Watch<StoredOf<T, O>>> {
        let watch = self.watch.as_deref();
        watch.filter(|_| Shared::<T, O>::LEASES)
    }

    /// Extends all leases by a full term from now on.
    pub(crate) fn renew(&self) -> Result<(), Lost> {
        let (Some(watch), Some(lease)) = (self.leasing_watch(), self.shared.lease()) else {
            return Ok(());
        };
        let until = self.shared.time.after(lease.term);
        lock(&watch.leases).renew(until)
    }

    /// Prevents items of the transaction from being reclaimed from now on; an error if any was.
    pub(crate) fn close_leases(&self) -> Result<(), Lost> {
        self.leasing_watch()
            .map_or(Ok(()), |watch| lock(&watch.leases).close())
    }

    /// Ends the lease of the item before `position`, and returns the copy; [`Lost`] if it was reclaimed before.
    pub(super) fn end_lease(&self, position: HeldPosition) -> Result<Option<EntryOf<T, O>>, Lost> {
        self.leasing_watch()
            .map_or(Ok(None), |watch| lock(&watch.leases).remove(position))
    }

    /// Ends all leases of a transaction, and returns the copies, for the caller to drop.
    pub(super) fn end_leases(&self) -> Copies<StoredOf<T, O>> {
        self.leasing_watch()
            .map_or_else(Copies::none, |watch| lock(&watch.leases).end())
    }

    /// Ends all leases of an aborted transaction, and returns what the caller is to drop: the copies, and the items
    /// that were reclaimed.
    pub(super) fn remove_lost(&mut self, unborrowed: &Unborrowed<'_>) -> Lent<T, O> {
        let copies = self.end_leases();
        let lost = copies.lost();
        let lost: Vec<_> = lost
            .map(|position| self.endpoint.remove_before(position, unborrowed))
            .collect();
        // The gate has counted them out when they were reclaimed.
        self.forget_counted(lost.len());
        (copies, lost)
    }
}
