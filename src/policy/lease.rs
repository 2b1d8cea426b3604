//! A book of leases: what a transaction holds for a time.
//!
//! A queue with leases keeps a copy of each held item. Who finds a lease over takes the copy, and the
//! transaction has *lost* the item: it cannot commit any more. Who is first is decided under the lock
//! of the book: the commit, which closes it, or the expiry.

use crate::raw::Entry;
use crate::sync::step;
use std::mem;
use std::time::Duration;

/// The leases of one transaction.
pub(crate) struct LeaseTable<T> {
    leased: Vec<LeasedItem<T>>,
    /// The addresses of the items that were taken away.
    lost: Vec<usize>,
    /// A commit is under way.
    closed: bool,
}

/// One item on lease.
struct LeasedItem<T> {
    /// Where the transaction has it.
    address: usize,
    copy: Entry<T>,
    taken: u64,
    until: u64,
}

/// How a queue leases its items.
pub(crate) struct LeaseRules<T> {
    pub(crate) term: Duration,
    pub(crate) copy: fn(&T) -> T,
}

/// A lease was over before its transaction was committed.
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

    /// Begins a commit: nothing is taken away any more.
    pub(crate) fn close(&mut self) -> Result<(), Lost> {
        self.check()?;
        step!("leasetable.stays-open", self.closed = true);
        Ok(())
    }

    /// Ends the lease of an item that leaves the transaction: its copy, if it has one.
    pub(crate) fn remove(&mut self, address: usize) -> Result<Option<Entry<T>>, Lost> {
        if self.lost.contains(&address) {
            return Err(Lost);
        }
        let mut leased = self.leased.iter();
        let index = leased.position(|leased| leased.address == address);
        Ok(index.map(|index| self.leased.remove(index).copy))
    }

    /// Ends all leases: the copies, and the addresses of the lost items.
    pub(crate) fn end(&mut self) -> (Vec<Entry<T>>, Vec<usize>) {
        self.closed = false;
        let leased = mem::take(&mut self.leased);
        let copies = leased.into_iter().map(|leased| leased.copy).collect();
        (copies, mem::take(&mut self.lost))
    }

    /// Takes away what was taken before `taken` or is over at `now`.
    pub(crate) fn take_away(&mut self, now: u64, taken: u64) -> Vec<Entry<T>> {
        if self.closed {
            return Vec::new();
        }
        let is_over = |leased: &LeasedItem<T>| leased.until <= now || leased.taken < taken;
        let (over, kept) = mem::take(&mut self.leased).into_iter().partition(is_over);
        self.leased = kept;
        self.lost
            .extend(over.iter().map(|leased: &LeasedItem<T>| leased.address));
        over.into_iter().map(|leased| leased.copy).collect()
    }

    /// When the next lease is over.
    pub(crate) fn next(&self) -> Option<u64> {
        let open = self.leased.iter().filter(|_| !self.closed);
        open.map(|leased| leased.until).min()
    }
}
