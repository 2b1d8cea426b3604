//! The lease table of a transaction: items that it holds for a limited time.
//!
//! A queue with leases keeps a copy of each held item. A thread that finds a lease expired takes the copy, and the
//! transaction has *lost* the item: it cannot commit any more. The lock of the table decides which is first: the
//! commit, which closes the table, or the expiry. No user code runs under it: items are cloned before, copies dropped after.
//!
//! A lost item stays in the hold until its transaction ends, even if its worker retries it: the table knows it by its
//! position, which must not be reused meanwhile.

use super::ascending::Ascending;
use super::telemetry::Event;
use super::watch::Watch;
use super::Policies;
use crate::order::{EntryOf, Order, StoredOf};
use crate::raw::{DeliveryMeta, Entry, HeldPosition, Stored};
use crate::sync::{lock, planted, step, Mutex};
use crate::time::{later, NEVER};
use crate::Expired;
use std::time::{Duration, Instant};

/// A watch of a queue that may lease its items.
pub(crate) type WatchOf<T, O> = Watch<Mutex<LeaseTable<StoredOf<T, O>>>>;

/// The leases of one transaction. Dropping their copies runs user code.
pub(crate) struct LeaseTable<T> {
    leases: Ascending<HeldPosition, Lease<T>>,
    /// The number of reclaimed items.
    lost: usize,
    /// Whether a commit is in progress.
    closed: bool,
    /// Whether one lease was extended apart from the others. If not, they end in the order in which they were added; a clock that
    /// goes backwards prolongs them.
    mixed: bool,
}

/// The lease of an item. Dropping its copy runs user code.
pub(crate) struct Lease<T> {
    /// `None` once the item was reclaimed.
    copy: Option<Entry<T>>,
    taken: Instant,
    /// It ends a term after it was taken, or then, if that is later.
    until: u64,
}

derive_default!([T] LeaseTable<T> { leases, lost, closed, mixed });

impl<T> LeaseTable<T> {
    #[inline]
    fn add(&mut self, item: HeldPosition, copy: Entry<T>, taken: Instant) {
        let (copy, until) = (Some(copy), 0);
        self.leases.add(item, Lease { copy, taken, until });
    }

    /// Extends all leases, whose ends stay in order.
    pub(super) fn renew(&mut self, until: u64) -> Result<(), Expired> {
        self.check()?;
        for lease in self.leases.values_mut() {
            lease.until = lease.until.max(until);
        }
        Ok(())
    }

    /// Makes the lease of one item end not before `until`.
    pub(crate) fn extend(&mut self, item: HeldPosition, until: u64) -> Result<(), Expired> {
        let lease = self.leases.get_mut(item);
        let lease = lease.filter(|lease| lease.copy.is_some()).ok_or(Expired)?;
        lease.until = lease.until.max(until);
        self.mixed = true;
        Ok(())
    }

    fn check(&self) -> Result<(), Expired> {
        (self.lost == 0).then_some(()).ok_or(Expired)
    }

    /// Begins a commit: no item is reclaimed from now on.
    pub(super) fn close(&mut self) -> Result<(), Expired> {
        self.check()?;
        step!("leasetable.stays-open", self.closed = true);
        Ok(())
    }

    /// Ends the lease of an item that leaves the transaction, and returns the copy, if there is one.
    pub(super) fn remove(&mut self, item: HeldPosition) -> Result<Option<Entry<T>>, Expired> {
        match self.leases.get_mut(item) {
            Some(Lease { copy: None, .. }) => Err(Expired),
            _ => Ok(self.leases.remove(item).and_then(|lease| lease.copy)),
        }
    }

    /// Ends the lease of a delivery, which leaves nothing here.
    #[inline]
    pub(crate) fn end(&mut self, item: HeldPosition) -> Result<Option<Lease<T>>, Expired> {
        match self.leases.remove(item) {
            Some(Lease { copy: None, .. }) => Err(Expired),
            lease => Ok(lease),
        }
    }

    /// The positions of the reclaimed items.
    pub(super) fn lost(&self) -> impl Iterator<Item = HeldPosition> + '_ {
        let lost = self.leases.iter().filter(|(_, lease)| lease.copy.is_none());
        lost.map(|(item, _)| item)
    }

    /// Reclaims the items whose leases are over. Looks at `all`, or, if they end in order, at no more than have ended.
    fn take_away(&mut self, all: bool, is_over: impl Fn(&Lease<T>) -> bool) -> Vec<Entry<T>> {
        if self.closed {
            return Vec::new();
        }
        let all = all || self.mixed;
        let leases = self.leases.values_mut();
        let held = leases.filter(|lease| lease.copy.is_some());
        let expired = held.map_while(|lease| {
            if is_over(lease) {
                return Some(lease.copy.take());
            }
            all.then_some(None)
        });
        let copies: Vec<_> = expired.flatten().collect();
        self.lost += copies.len();
        copies
    }

    /// When the next lease expires.
    fn next(&self, end: impl Fn(&Lease<T>) -> u64) -> Option<u64> {
        let open = self.leases.iter().filter(|_| !self.closed);
        let held = open.filter(|(_, lease)| lease.copy.is_some());
        let mut ends = held.map(|(_, lease)| end(lease));
        if self.mixed {
            ends.min()
        } else {
            ends.next()
        }
    }
}

impl<T, O: Order<T>> Policies<T, O> {
    /// Whether items can be reclaimed from a transaction: whether they are leased.
    pub(crate) const RECLAIMS: bool = O::COPY.is_some();

    /// When a lease ends that begins then.
    pub(crate) fn term_after(&self, taken: Instant) -> u64 {
        later(self.time.nanos(taken), Duration::from_nanos(self.lease))
    }

    fn end_of(&self, lease: &Lease<StoredOf<T, O>>) -> u64 {
        self.term_after(lease.taken).max(lease.until)
    }

    /// Leases an item, if items are leased, that a transaction holds before `position`: from an instant until `end` or later.
    /// Returns whether its lease expires before everything else that is due.
    #[inline(always)] // the take
    pub(crate) fn lease(
        &self,
        watch: &WatchOf<T, O>,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
        position: HeldPosition,
        (taken, end): (Instant, u64),
    ) -> bool {
        let Some(copy) = O::COPY else {
            return false;
        };
        let item = Stored {
            item: copy(&stored.item),
            meta: stored.meta,
        };
        let mut is_planned = planted!("leases.looks-early") && self.due_timer.next() <= end;
        let mut leases = lock(&watch.reclaimable);
        leases.add(position, Entry { item, delivery }, taken);
        // Under the lock: a thread that clears this plan afterwards takes the lock afterwards too, and finds the lease; what one
        // has cleared before it took the lock is seen to be cleared. So the plan that is read here covers the lease.
        is_planned |= self.due_timer.next() <= end;
        drop(leases);
        if is_planned {
            self.due_timer.notify_room_unless_led();
            return false;
        }
        self.plan_expiry(self.term_after(taken))
    }

    /// Moves the lease of a delivery to an item that a transaction holds before `position`. Returns what
    /// [`lease`](Self::lease) does.
    pub(super) fn move_lease(
        &self,
        watch: &WatchOf<T, O>,
        lease: Lease<StoredOf<T, O>>,
        position: HeldPosition,
    ) -> bool {
        let end = self.end_of(&lease);
        let mut leases = lock(&watch.reclaimable);
        leases.mixed |= lease.until > 0;
        leases.leases.add(position, lease);
        drop(leases);
        self.plan_expiry(end)
    }

    #[cold]
    #[inline(never)]
    fn plan_expiry(&self, until: u64) -> bool {
        let is_earliest = self.due_timer.plan(until);
        if is_earliest {
            self.due_timer.call_backup();
            step!("leases.plans-unsaid", self.due_timer.notify_planned());
        } else {
            self.due_timer.notify_room_unless_led();
        }
        is_earliest
    }

    /// Takes the items away from a transaction that were taken `before`, or whose leases have expired at `now`.
    pub(crate) fn take_away(
        &self,
        watch: &WatchOf<T, O>,
        now: u64,
        before: Option<Instant>,
    ) -> Vec<EntryOf<T, O>> {
        let mut leases = lock(&watch.reclaimable);
        let entries = leases.take_away(before.is_some(), |lease| match before {
            Some(before) => lease.taken < before,
            None => self.end_of(lease) <= now,
        });
        let next = leases.next(|lease| self.end_of(lease));
        drop(leases);
        self.due_timer.plan(next.unwrap_or(NEVER));
        entries
    }

    /// The items that were taken away are ready, or dead letters.
    pub(crate) fn taken_away(&self, watch: &WatchOf<T, O>, items: usize) {
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
