//! The lease table of a transaction: items that it holds for a limited time.
//!
//! A queue with leases keeps a copy of each held item. A thread that finds a lease expired takes the copy, and the
//! transaction has *lost* the item: it cannot commit any more. The lock of the table decides which is first: the
//! commit, which closes the table, or the expiry.

use super::held::HeldTable;
use crate::raw::{Entry, HeldPosition};
use crate::sync::step;
use std::mem;
use std::time::Duration;

/// The leases of one transaction.
pub(crate) struct LeaseTable<T> {
    leases: HeldTable<Lease<T>>,
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
pub(crate) struct Copies<T>(HeldTable<Lease<T>>);

impl<T> Copies<T> {
    /// Those of a transaction without leases.
    pub(crate) fn none() -> Self {
        Self(HeldTable::new())
    }

    /// The positions of the reclaimed items.
    pub(crate) fn lost(&self) -> impl Iterator<Item = HeldPosition> + '_ {
        let lost = self.0.iter().filter(|(_, lease)| lease.copy.is_none());
        lost.map(|(item, _)| item)
    }
}

/// The rules of a queue for leases.
pub(crate) struct LeaseRules<T> {
    pub(crate) term: Duration,
    pub(crate) copy: fn(&T) -> T,
}

/// The error of a lease that expired before its transaction was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lost;

impl<T> LeaseTable<T> {
    pub(super) fn new() -> Self {
        Self {
            leases: HeldTable::new(),
            lost: 0,
            closed: false,
        }
    }

    pub(crate) fn add(&mut self, item: HeldPosition, copy: Entry<T>, taken: u64, until: u64) {
        let copy = Some(copy);
        self.leases.add(item, Lease { copy, taken, until });
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
        if self.lost == 0 {
            Ok(())
        } else {
            Err(Lost)
        }
    }

    /// Begins a commit: no item is reclaimed from now on.
    pub(crate) fn close(&mut self) -> Result<(), Lost> {
        self.check()?;
        step!("leasetable.stays-open", self.closed = true);
        Ok(())
    }

    /// Ends the lease of an item that leaves the transaction, and returns the copy, if there is one.
    pub(crate) fn remove(&mut self, item: HeldPosition) -> Result<Option<Entry<T>>, Lost> {
        if self
            .leases
            .get(item)
            .is_some_and(|lease| lease.copy.is_none())
        {
            return Err(Lost);
        }
        Ok(self.leases.remove(item).and_then(|lease| lease.copy))
    }

    /// Ends all leases, without an allocation.
    pub(crate) fn end(&mut self) -> Copies<T> {
        self.closed = false;
        self.lost = 0;
        Copies(mem::replace(&mut self.leases, HeldTable::new()))
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
        let open = self.leases.iter().filter(|_| !self.closed);
        let held = open.filter(|(_, lease)| lease.copy.is_some());
        held.map(|(_, lease)| lease.until).min()
    }
}
