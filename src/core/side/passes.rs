//! What a transaction owes the gate for what it has taken.

use super::{Side, INDEBTED};
use crate::core::shared::{Debt, Pass};
use crate::order::Order;
use crate::rate::Start;
use crate::sync::{lock, swallow_panic};
use std::mem;

/// Where an item seems to be that is looked at: it is in the transaction's hold only when it is held.
pub(super) const LOOKED: usize = 0;

/// The turn of an item that a transaction has taken.
pub(super) struct Owed {
    /// Where the item is.
    item: usize,
    start: Start,
}

impl<T, O: Order<T>> Side<T, O> {
    /// Takes up to `max` items by way of `take`, one by one with the leave to do so where the gate is to be
    /// asked. What becomes of that is up to `take`.
    pub(super) fn by_leave(
        &self,
        max: usize,
        holds: bool,
        mut take: impl FnMut(usize, Option<Pass<'_, T, O>>) -> usize,
    ) -> usize {
        if self.shared.gate.is_open() {
            return take(max, None);
        }
        let mut count = 0;
        while count < max {
            let Some(pass) = self.shared.pass(holds) else {
                break;
            };
            if take(1, Some(pass)) == 0 {
                break;
            }
            count += 1;
        }
        count
    }

    /// Keeps what is owed for the item at an address, or for the one that is [looked at](LOOKED), until the
    /// transaction ends: true if there is something.
    pub(super) fn owe(&self, pass: Pass<'_, T, O>, item: usize) -> bool {
        let Debt { start, counted } = pass.used();
        let owes = start.is_some() || counted;
        if owes {
            lock(&self.turns).extend(start.map(|start| Owed { item, start }));
            self.counted.set(self.counted.get() + usize::from(counted));
            self.guarded.set(self.guarded.get() | INDEBTED);
        }
        owes
    }

    /// The item that was looked at is held, at this address.
    pub(super) fn owe_for_held(&self, item: usize) {
        if self.is_indebted() {
            let mut turns = lock(&self.turns);
            if let Some(owed) = turns.last_mut().filter(|owed| owed.item == LOOKED) {
                owed.item = item;
            }
        }
    }

    fn is_indebted(&self) -> bool {
        self.guarded.get() & INDEBTED != 0
    }

    /// Pays for the item that was held at an address, and was not committed.
    pub(super) fn pay_for_one(&self, item: usize) {
        if self.is_indebted() {
            let Debt { start, counted } = self.debt_of(item);
            self.shared.give_turns_back(start.into_iter());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// Takes back what is owed for the item that was only looked at.
    pub(crate) fn owe_no_more(&self) {
        self.shared.undo(self.debt_of(LOOKED));
    }

    /// What is owed for one item, which is not any more.
    fn debt_of(&self, item: usize) -> Debt {
        let counted = self.counted.get();
        self.counted.set(counted.saturating_sub(1));
        let mut turns = lock(&self.turns);
        let place = turns.iter().rposition(|owed| owed.item == item);
        Debt {
            start: place.map(|place| turns.remove(place).start),
            counted: counted > 0,
        }
    }

    /// Pays for all items at the end of a transaction that did not commit.
    pub(crate) fn pay_for_aborted(&self) {
        if self.is_indebted() {
            let turns = mem::take(&mut *lock(&self.turns));
            let starts = turns.into_iter().map(|owed| owed.start);
            self.shared.give_turns_back(starts);
            self.end_debts();
        }
    }

    /// Pays for all items at the end of a transaction that has committed.
    pub(crate) fn pay_for_committed(&self) {
        if self.is_indebted() {
            self.end_debts();
            let turns = mem::take(&mut *lock(&self.turns));
            swallow_panic(|| drop(turns)); // user code, if the pace is gone otherwise
        }
    }

    fn end_debts(&self) {
        self.guarded.set(self.guarded.get() & !INDEBTED);
        self.shared.count_out(self.counted.take());
    }

    /// Takes note that others hold so many of the items, and have counted them out.
    pub(super) fn forget_counted(&self, items: usize) {
        let left = self.counted.get().saturating_sub(items);
        self.counted.set(left);
    }
}
