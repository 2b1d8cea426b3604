//! What a transaction owes the gate for what it has taken.

use super::local::{Local, INDEBTED};
use super::shared::Debt;
use crate::order::Order;
use crate::rate::Start;
use crate::sync::swallow_panic;
use std::mem;

/// Where an item seems to be that is looked at: it is in the transaction's hold only when it is held.
pub(super) const LOOKED: usize = 0;

/// The token of an item that a transaction has taken.
pub(super) struct Owed {
    /// Where the item is.
    item: usize,
    start: Start,
}

impl<T, O: Order<T>> Local<T, O> {
    /// Keeps what is owed for the item at an address, or for the one that is [looked at](LOOKED), until the
    /// transaction ends.
    pub(super) fn owe(&mut self, Debt { start, counted }: Debt, item: usize) {
        if start.is_some() || counted {
            self.owed.extend(start.map(|start| Owed { item, start }));
            self.counted += usize::from(counted);
            self.guarded |= INDEBTED;
        }
    }

    /// The item that was looked at is held, at this address.
    pub(super) fn owe_for_held(&mut self, item: usize) {
        if let Some(owed) = self.owed.last_mut().filter(|owed| owed.item == LOOKED) {
            owed.item = item;
        }
    }

    pub(super) fn is_indebted(&self) -> bool {
        self.guarded & INDEBTED != 0
    }

    /// Pays for the item that was held at an address, and was not committed.
    pub(super) fn pay_for_one(&mut self, item: usize) {
        if self.is_indebted() {
            let Debt { start, counted } = self.debt_of(item);
            self.shared.give_turns_back(start.into_iter());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// What is owed for one item, which is not any more.
    pub(super) fn debt_of(&mut self, item: usize) -> Debt {
        let counted = self.counted > 0;
        self.counted -= usize::from(counted);
        let place = self.owed.iter().rposition(|owed| owed.item == item);
        Debt {
            start: place.map(|place| self.owed.remove(place).start),
            counted,
        }
    }

    /// Pays for all items at the end of a transaction that did not commit.
    pub(super) fn pay_for_aborted(&mut self) {
        if self.is_indebted() {
            let owed = mem::take(&mut self.owed);
            let starts = owed.into_iter().map(|owed| owed.start);
            self.shared.give_turns_back(starts);
            self.end_debts();
        }
    }

    /// Pays for all items at the end of a transaction that has committed.
    pub(super) fn pay_for_committed(&mut self) {
        if self.is_indebted() {
            self.end_debts();
            let owed = mem::take(&mut self.owed);
            swallow_panic(|| drop(owed)); // user code, if the pace is gone otherwise
        }
    }

    fn end_debts(&mut self) {
        self.guarded &= !INDEBTED;
        let counted = mem::take(&mut self.counted);
        self.shared.count_out(counted);
    }
}
