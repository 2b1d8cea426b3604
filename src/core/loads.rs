//! The permits of a transaction whose items have weights.
//!
//! Without weights an item has one permit, and the endpoint of a transaction counts what it has staged and holds. With weights
//! the transaction keeps these two *loads* itself, in permits; all else is as with counts, max(held, staged) in all.
//!
//! | step | staged | held |
//! |---|---|---|
//! | a push is admitted, staged or not: its permits are the transaction's | + | |
//! | it is refused after all, since the queue was closed meanwhile | − | |
//! | an item is taken into the hold | | + |
//! | an item leaves the hold by itself, with its permits | | − |
//! | a commit, of one queue or several: a push without a transaction is one, too | 0 | 0 |
//! | an abort | 0 | 0 |
//!
//! A weight is computed once, at the beginning of the push, when nothing is locked or taken: that is user code. Then it is in
//! the [record](crate::policy::records) of the item, until the item is gone for good, and whoever releases its permits
//! asks there. An item is admitted as a batch of as many items is: it gets all its permits or none, and if it waits it gathers
//! them while it is the first.

use super::access::{Access, Put};
use super::admit::{AnyTerms, Load};
use super::local::Local;
use crate::order::{EntryOf, Order};
use crate::raw::Purpose;
use crate::PushError;
use std::mem;

impl<T, O: Order<T>> Access<T, O> {
    /// How many permits the staged items need, and the held ones have.
    #[inline]
    pub(super) fn loads(&self) -> (usize, usize) {
        if self.weighs() {
            let at_need = self.at_need.as_ref();
            return at_need.map_or((0, 0), |it| it.loads);
        }
        (self.staged(), self.held())
    }

    /// As [`loads`](Self::loads), where items have weights: the transaction ends, and has none from now on.
    #[inline]
    pub(super) fn end_loads(&mut self) -> Option<(usize, usize)> {
        self.weighs().then(|| self.take_loads())
    }

    #[cold]
    fn take_loads(&mut self) -> (usize, usize) {
        let at_need = self.at_need.as_mut();
        at_need.map_or((0, 0), |it| mem::take(&mut it.loads))
    }

    fn loads_mut(&mut self) -> &mut (usize, usize) {
        &mut self.at_need.get_or_insert_with(Box::default).loads
    }

    /// Takes an item into the endpoint.
    pub(super) fn accept(&mut self, purpose: Purpose, entry: EntryOf<T, O>) {
        if purpose == Purpose::Hold {
            self.hold_load(entry.delivery.since);
        }
        self.endpoint.accept(purpose, entry);
    }

    /// The transaction holds the item with this time stamp from now on.
    pub(super) fn hold_load(&mut self, since: u64) {
        if self.weighs() {
            self.loads_mut().1 += self.shared.weight_of(since);
        }
    }

    /// The item with this time stamp has left the hold by itself.
    pub(super) fn release_load(&mut self, since: u64) {
        if self.weighs() {
            self.loads_mut().1 -= self.shared.weight_of(since);
        }
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes the permits of one item: its weight, where it has one.
    #[inline]
    pub(super) fn take_permits(&mut self, weight: Option<usize>, put: Put) -> bool {
        match weight {
            None => self.take_permit(put),
            Some(weight) => self.take_together(weight),
        }
    }

    /// Stores items with weights.
    #[cold]
    pub(super) fn store_weighed<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        metas: L::Metas,
        total: usize,
        put: Put,
        terms: W,
    ) -> Result<L::Pushed, PushError<L>> {
        self.loads_mut().0 += total;
        let stored = self.store_by(load, metas, put, terms.terms());
        match (&stored, put) {
            (Ok(_), Put::Stage) => {}
            (Ok(_), Put::Publish) => self.end_push(0),
            (Err(_), _) => {
                self.loads_mut().0 -= total;
                self.release();
            }
        }
        stored
    }
}

impl<T, O: Order<T>> Access<T, O> {
    /// Settles the permits of a push of `count` items without a transaction.
    pub(super) fn end_push(&mut self, count: usize) {
        let (staged, _) = self.end_loads().unwrap_or((count, 0));
        self.permits.end(0, staged);
    }
}
