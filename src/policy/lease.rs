//! The lease table of a transaction: items that it holds for a limited time.
//!
//! A queue with leases keeps a copy of each held item. A thread that finds a lease expired takes the copy, and the
//! transaction has *lost* the item: it cannot commit any more. The lock of the table decides which is first: the
//! commit, which closes the table, or the expiry. No user code runs under it: items are cloned before, copies dropped after.
//!
//! A lost item stays in the hold until its transaction ends, even if its worker retries it: the table knows it by its
//! position, which must not be reused meanwhile.

use super::deliveries::Deliveries;
use super::telemetry::Event;
use super::watch::Watch;
use super::Policies;
use crate::order::{EntryOf, Order, StoredOf};
use crate::raw::{DeliveryMeta, Entry, HeldPosition, Stored};
use crate::sync::{lock, step, MutexGuard};
use crate::time::NEVER;
use std::collections::BTreeMap;
use std::mem;

/// The leases of one transaction.
pub(crate) struct LeaseTable<T> {
    leases: BTreeMap<HeldPosition, Lease<T>>,
    /// The number of reclaimed items.
    lost: usize,
    /// Whether a commit is in progress.
    closed: bool,
}

/// The lease of an item.
struct Lease<T> {
    /// `None` once the item was reclaimed.
    copy: Option<Entry<T>>,
    taken: u64,
    until: u64,
}

/// The copies of the leases that a transaction had. Dropping them runs user code.
pub(crate) struct Copies<T>(BTreeMap<HeldPosition, Lease<T>>);

impl<T> Copies<T> {
    /// The positions of the reclaimed items.
    pub(crate) fn lost(&self) -> impl Iterator<Item = HeldPosition> + '_ {
        let lost = self.0.iter().filter(|(_, lease)| lease.copy.is_none());
        lost.map(|(item, _)| *item)
    }
}

/// The error of a lease that expired before its transaction was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lost;

impl<T> LeaseTable<T> {
    pub(super) fn new() -> Self {
        Self {
            leases: BTreeMap::new(),
            lost: 0,
            closed: false,
        }
    }

    pub(crate) fn add(&mut self, item: HeldPosition, copy: Entry<T>, taken: u64, until: u64) {
        let copy = Some(copy);
        self.leases.insert(item, Lease { copy, taken, until });
    }

    /// Extends all leases.
    pub(crate) fn renew(&mut self, until: u64) -> Result<(), Lost> {
        self.check()?;
        for lease in self.leases.values_mut() {
            lease.until = lease.until.max(until);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Lost> {
        (self.lost == 0).then_some(()).ok_or(Lost)
    }

    /// Begins a commit: no item is reclaimed from now on.
    pub(crate) fn close(&mut self) -> Result<(), Lost> {
        self.check()?;
        step!("leasetable.stays-open", self.closed = true);
        Ok(())
    }

    /// Ends the lease of an item that leaves the transaction, and returns the copy, if there is one.
    pub(crate) fn remove(&mut self, item: HeldPosition) -> Result<Option<Entry<T>>, Lost> {
        match self.leases.get(&item) {
            Some(Lease { copy: None, .. }) => Err(Lost),
            _ => Ok(self.leases.remove(&item).and_then(|lease| lease.copy)),
        }
    }

    /// Ends all leases, without an allocation.
    pub(crate) fn end(&mut self) -> Copies<T> {
        Copies(mem::replace(self, Self::new()).leases)
    }

    /// Reclaims the items that were taken before `taken` or whose leases have expired at `now`.
    pub(crate) fn take_away(&mut self, now: u64, taken: u64) -> Vec<Entry<T>> {
        if self.closed {
            return Vec::new();
        }
        let leases = self.leases.values_mut();
        let expired = leases.filter(|lease| lease.until <= now || lease.taken < taken);
        let copies: Vec<_> = expired.filter_map(|lease| lease.copy.take()).collect();
        self.lost += copies.len();
        copies
    }

    /// When the next lease expires.
    pub(crate) fn next(&self) -> Option<u64> {
        let open = self.leases.values().filter(|_| !self.closed);
        let held = open.filter(|lease| lease.copy.is_some());
        held.map(|lease| lease.until).min()
    }
}

/// The leases of a transaction.
impl<T, O: Order<T>> Deliveries<T, O> {
    /// Records an item that the transaction has taken, and holds before `position`. Returns whether its lease expires
    /// before everything else that is due.
    pub(super) fn record(
        &self,
        policies: &Policies<T, O>,
        source: &O::Source,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
        position: HeldPosition,
    ) -> bool {
        let Some(watch) = &self.watch else {
            return false;
        };
        if policies.is_observed() {
            policies.emit_delivered(source, stored, delivery);
        }
        let (Some(term), Some(copy)) = (policies.lease, O::COPY) else {
            return false;
        };
        let (now, until) = (policies.time.now(), policies.time.after(term));
        let item = Stored {
            item: copy(&stored.item),
            meta: stored.meta,
        };
        lock(&watch.leases).add(position, Entry { item, delivery }, now, until);
        let due_timer = &policies.due_timer;
        let is_earliest = due_timer.plan(until);
        if is_earliest {
            due_timer.call_backup();
            step!("leases.plans-unsaid", due_timer.notify_planned());
        } else if !due_timer.has_leader() {
            // What is due earlier may have been planned for items alone.
            due_timer.notify_room();
        }
        is_earliest
    }

    fn leases(&self) -> Option<MutexGuard<'_, LeaseTable<StoredOf<T, O>>>> {
        let watch = self.watch.as_deref().filter(|_| Policies::<T, O>::LEASES);
        watch.map(|watch| lock(&watch.leases))
    }

    /// Extends all leases by a full term from now on.
    pub(crate) fn renew(&self, policies: &Policies<T, O>) -> Result<(), Lost> {
        let Some(term) = policies.lease else {
            return Ok(());
        };
        let until = policies.time.after(term);
        self.leases()
            .map_or(Ok(()), |mut leases| leases.renew(until))
    }

    /// Prevents items of the transaction from being reclaimed from now on; an error if any was.
    pub(crate) fn close_leases(&self) -> Result<(), Lost> {
        self.leases().map_or(Ok(()), |mut leases| leases.close())
    }

    /// The item before `position` leaves the transaction; returns the copy of its lease. [`Lost`] if it was reclaimed
    /// before: then it stays.
    pub(crate) fn leaving(&self, position: HeldPosition) -> Result<Option<EntryOf<T, O>>, Lost> {
        self.leases()
            .map_or(Ok(None), |mut leases| leases.remove(position))
    }

    /// Ends all leases, and returns the copies, for the caller to drop.
    pub(super) fn end_leases(&self) -> Option<Copies<StoredOf<T, O>>> {
        self.leases().map(|mut leases| leases.end())
    }
}

impl<T, O: Order<T>> Policies<T, O> {
    /// Whether items are leased.
    pub(crate) const LEASES: bool = O::COPY.is_some();

    /// Takes the items away from a transaction that were taken before `taken` or whose leases have expired at `now`.
    pub(crate) fn take_away(
        &self,
        watch: &Watch<StoredOf<T, O>>,
        now: u64,
        taken: u64,
    ) -> Vec<EntryOf<T, O>> {
        let mut leases = lock(&watch.leases);
        let entries = leases.take_away(now, taken);
        let next = leases.next();
        drop(leases);
        self.due_timer.plan(next.unwrap_or(NEVER));
        entries
    }

    /// The items that were taken away are ready, or dead letters.
    pub(crate) fn taken_away(&self, watch: &Watch<StoredOf<T, O>>, items: usize) {
        if self.gate.is_limited() {
            self.count_out(items);
        }
        if items > 0 {
            self.emit(|| Event::Expired {
                worker: watch.name().map(AsRef::as_ref),
                items,
            });
        }
    }
}
