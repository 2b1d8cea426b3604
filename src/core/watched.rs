//! The watch of a handle's open transaction, and its leases.

use super::local::{address_of, Local};
use super::shared::Shared;
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::lease::Lost;
use crate::policy::telemetry::Event;
use crate::policy::watch::Watch;
use crate::raw::{DeliveryMeta, Entry, HeldPosition, ItemRef, Stored, Unborrowed};
use crate::sync::{lock, step};
use std::collections::HashSet;

impl<T, O: Order<T>> Local<T, O> {
    /// Records that the transaction holds something from now on.
    pub(super) fn record_begin(&self) {
        if let Some(watch) = &self.watch {
            watch.begin(self.shared.time.stamp());
        }
    }

    /// Records the item that was just held, if it is the first one, in a queue that neither leases items nor emits
    /// events.
    #[inline]
    pub(super) fn record_first(&self) {
        if self.held() == 1 {
            self.record_begin();
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
        let delivery = self.endpoint.delivery_of(reference.address());
        self.record(reference, delivery.expect("the item was just taken"));
    }

    /// Whether the transaction is visible to others.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Records an item that the transaction has taken.
    pub(super) fn record(&self, stored: &StoredOf<T, O>, delivery: DeliveryMeta) {
        let Some(watch) = &self.watch else {
            return;
        };
        let shared = &self.shared;
        shared.emit(|| Event::Delivered {
            attempts: delivery.attempts,
            waited: shared
                .time
                .stamped(delivery.since)
                .map(|_| shared.time.age(delivery.since)),
        });
        self.lease(watch, stored, delivery);
    }

    /// Leases an item that the transaction has taken, if items are leased.
    fn lease(
        &self,
        watch: &Watch<StoredOf<T, O>>,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
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
        let address = address_of(&stored.item);
        lock(&watch.leases).add(address, Entry { item, delivery }, now, until);
        let is_earliest = shared.due_timer.plan(until);
        if is_earliest {
            shared.due_timer.call_backup();
            shared.planned();
        }
        step!(
            "leases.plans-unsaid",
            shared.ready().notify(usize::from(is_earliest))
        );
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

    /// Ends the lease of an item, and returns the copy; [`Lost`] if it was reclaimed before.
    pub(super) fn end_lease(&self, address: usize) -> Result<Option<EntryOf<T, O>>, Lost> {
        self.leasing_watch()
            .map_or(Ok(None), |watch| lock(&watch.leases).remove(address))
    }

    /// Ends all leases of a committed transaction, and returns the copies, for the caller to drop.
    pub(super) fn end_leases(&self) -> Vec<EntryOf<T, O>> {
        self.leasing_watch()
            .map_or_else(Vec::new, |watch| lock(&watch.leases).end().0)
    }

    /// Ends all leases of an aborted transaction, and returns what the caller is to drop: the copies, and the items
    /// that were reclaimed.
    pub(super) fn remove_lost(&mut self, unborrowed: &Unborrowed<'_>) -> Vec<EntryOf<T, O>> {
        let Some(watch) = self.leasing_watch() else {
            return Vec::new();
        };
        let (mut removed, lost) = lock(&watch.leases).end();
        // The gate has counted the lost items out when they were reclaimed.
        self.counted = self.counted.saturating_sub(lost.len());
        let lost: HashSet<_> = lost.into_iter().collect();
        let mut position = HeldPosition::default();
        while let Some((stored, _)) = self.endpoint.next_held(&mut position, unborrowed) {
            if lost.contains(&address_of(&stored.item)) {
                removed.push(self.endpoint.remove_before(position, unborrowed));
            }
        }
        removed
    }
}
