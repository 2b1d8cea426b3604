//! A transaction, and the room that it occupies.

use super::market::{Kind, Market, POISON};
use requeue::{Handle, Item, Order, PopError, PushError, Taken, Transaction};
use shuttle::thread;
use std::mem;

pub(super) struct Work<'h, O: Order<u32>> {
    market: &'h Market<O>,
    tx: Transaction<'h, u32, O>,
    held: Vec<u32>,
    staged: Vec<u32>,
}

impl<'h, O: Kind> Work<'h, O> {
    pub(super) fn new(market: &'h Market<O>, handle: &'h mut Handle<u32, O>) -> Self {
        Self {
            market,
            tx: handle.begin(),
            held: Vec::new(),
            staged: Vec::new(),
        }
    }

    /// The room that it occupies in addition to that of its held items.
    fn extra(&self) -> usize {
        self.staged.len().saturating_sub(self.held.len())
    }

    /// Stages an item: false if the queue is closed.
    pub(super) fn stage(
        &mut self,
        stage: impl FnOnce(&Transaction<'h, u32, O>, u32) -> Result<(), PushError<u32>>,
    ) -> bool {
        let item = self.market.ledger.item();
        let before = self.extra();
        if let Err(refused) = stage(&self.tx, item) {
            let may_be_full = self.market.has_limits || self.staged.len() >= self.held.len();
            assert!(may_be_full || !refused.is_full(), "the room is its own");
            return self.market.refused(refused, &item);
        }
        self.staged.push(item);
        self.market.ledger.occupy(self.extra() - before);
        true
    }

    /// Stages an item of any key for which there is room: false if the queue is closed.
    pub(super) fn stage_for_certain(&mut self) -> bool {
        let before = self.staged.len();
        while self.stage(Transaction::push_blocking) {
            if self.staged.len() > before {
                return true;
            }
            thread::yield_now();
        }
        false
    }

    /// Holds one more item.
    pub(super) fn hold(
        &mut self,
        hold: impl for<'t> FnOnce(&'t Transaction<'h, u32, O>) -> Result<Item<'t, u32>, PopError>,
    ) -> Result<u32, PopError> {
        let spare = self.extra().min(1);
        self.market.ledger.vacate(spare);
        let item = hold(&self.tx).map(|item| *item);
        match item {
            Ok(item) => self.held.push(item),
            Err(_) => self.market.ledger.occupy(spare),
        }
        item
    }

    pub(super) fn commit(self) {
        let (tx, end) = self.into_end();
        let taken = tx.commit();
        end.enter(taken);
    }

    /// The transaction, and the ledger entries of its commit.
    pub(super) fn into_end(self) -> (Transaction<'h, u32, O>, End<'h, O>) {
        self.market.ledger.vacate(self.held.len() + self.extra());
        let end = End {
            market: self.market,
            held: self.held,
            staged: self.staged,
        };
        (self.tx, end)
    }

    pub(super) fn abort(self) {
        self.market.ledger.vacate(self.extra());
        self.tx.abort();
    }

    /// Forgets it, so that the handle ends it.
    pub(super) fn forget(self) {
        self.market.ledger.vacate(self.extra());
        mem::forget(self.tx);
    }
}

/// The ledger entries of a commit.
#[must_use]
pub(super) struct End<'h, O: Order<u32>> {
    market: &'h Market<O>,
    held: Vec<u32>,
    staged: Vec<u32>,
}

impl<O: Kind> End<'_, O> {
    pub(super) fn enter(mut self, taken: Taken<'_, u32, O>) {
        assert_eq!(taken.collect::<Vec<_>>(), self.held);
        self.held.retain(|&item| item != POISON);
        self.market.ledger.received(&self.held);
        self.market.ledger.accepted(&self.staged);
    }
}
