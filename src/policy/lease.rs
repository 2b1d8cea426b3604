//! The lease table of a transaction: items that it holds for a limited time.
//!
//! A queue with leases keeps a copy of each held item. A thread that finds a lease expired takes the copy, and the
//! transaction has *lost* the item: it cannot commit any more. The lock of the table decides which is first: the
//! commit, which closes the table, or the expiry.

use crate::raw::Entry;
use crate::sync::step;
use std::mem;
use std::time::Duration;

/// The leases of one transaction.
pub(crate) struct LeaseTable<T> {
    leased: Vec<LeasedItem<T>>,
    /// The addresses of the reclaimed items.
    lost: Vec<usize>,
    /// Whether a commit is in progress.
    closed: bool,
}

/// A leased item.
struct LeasedItem<T> {
    /// The address of the item in the transaction's hold.
    address: usize,
    copy: Entry<T>,
    taken: u64,
    until: u64,
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
            leased: Vec::new(),
            lost: Vec::new(),
            closed: false,
        }
    }

    pub(crate) fn add(&mut self, address: usize, copy: Entry<T>, taken: u64, until: u64) {
        self.leased.push(LeasedItem {
            address,
            copy,
            taken,
            until,
        });
    }

    /// Extends all leases.
    pub(crate) fn renew(&mut self, until: u64) -> Result<(), Lost> {
        self.check()?;
        for leased in &mut self.leased {
            leased.until = leased.until.max(until);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Lost> {
        if self.lost.is_empty() {
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
    pub(crate) fn remove(&mut self, address: usize) -> Result<Option<Entry<T>>, Lost> {
        if self.lost.contains(&address) {
            return Err(Lost);
        }
        let mut leased = self.leased.iter();
        let index = leased.position(|leased| leased.address == address);
        Ok(index.map(|index| self.leased.remove(index).copy))
    }

    /// Ends all leases, and returns the copies, and the addresses of the lost items.
    pub(crate) fn end(&mut self) -> (Vec<Entry<T>>, Vec<usize>) {
        self.closed = false;
        let leased = mem::take(&mut self.leased);
        let copies = leased.into_iter().map(|leased| leased.copy).collect();
        (copies, mem::take(&mut self.lost))
    }

    /// Reclaims the items that were taken before `taken` or whose leases have expired at `now`.
    pub(crate) fn take_away(&mut self, now: u64, taken: u64) -> Vec<Entry<T>> {
        if self.closed {
            return Vec::new();
        }
        let has_expired = |leased: &LeasedItem<T>| leased.until <= now || leased.taken < taken;
        let (expired, kept) = mem::take(&mut self.leased)
            .into_iter()
            .partition(has_expired);
        self.leased = kept;
        self.lost
            .extend(expired.iter().map(|leased: &LeasedItem<T>| leased.address));
        expired.into_iter().map(|leased| leased.copy).collect()
    }

    /// When the next lease expires.
    pub(crate) fn next(&self) -> Option<u64> {
        let open = self.leased.iter().filter(|_| !self.closed);
        open.map(|leased| leased.until).min()
    }
}
