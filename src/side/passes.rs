//! What a transaction owes the gate for what it has taken.

use super::{Side, INDEBTED};
use crate::shared::{Debt, Pass};
use crate::sync::lock;
use crate::wait::quietly;
use std::mem;

impl<T> Side<T> {
    /// Takes up to `max` items by way of `take`, where the gate is to be asked one by one.
    pub(super) fn by_leave(
        &self,
        max: usize,
        holds: bool,
        mut take: impl FnMut(usize) -> usize,
    ) -> usize {
        if self.shared.gate.is_open() {
            return take(max);
        }
        let mut count = 0;
        while count < max {
            let pass = self.shared.pass(holds);
            let Some(pass) = pass.filter(|_| take(1) == 1) else {
                break;
            };
            if holds {
                self.owe(pass);
            } else {
                pass.spent();
            }
            count += 1;
        }
        count
    }

    /// Keeps what is owed for an item until the transaction ends: true if there is something.
    pub(super) fn owe(&self, pass: Pass<'_, T>) -> bool {
        let Debt { start, counted } = pass.used();
        let owes = start.is_some() || counted;
        if owes {
            lock(&self.starts).extend(start);
            self.counted.set(self.counted.get() + usize::from(counted));
            self.guarded.set(self.guarded.get() | INDEBTED);
        }
        owes
    }

    fn is_indebted(&self) -> bool {
        self.guarded.get() & INDEBTED != 0
    }

    /// Pays for one item that the transaction holds no more, and that was not committed.
    pub(super) fn pay_for_one(&self) {
        if self.is_indebted() {
            let Debt { start, counted } = self.newest_debt();
            self.shared.give_turns_back(start.into_iter().collect());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// Takes back what is owed for the newest item, which was only looked at.
    pub(crate) fn owe_no_more(&self) {
        self.shared.undo(self.newest_debt());
    }

    fn newest_debt(&self) -> Debt {
        let counted = self.counted.get();
        self.counted.set(counted.saturating_sub(1));
        Debt {
            start: lock(&self.starts).pop(),
            counted: counted > 0,
        }
    }

    /// Pays for all items at the end of a transaction that did not commit.
    pub(crate) fn pay_for_aborted(&self) {
        if self.is_indebted() {
            let starts = mem::take(&mut *lock(&self.starts));
            self.shared.give_turns_back(starts);
            self.end_debts();
        }
    }

    /// Pays for all items at the end of a transaction that has committed.
    pub(crate) fn pay_for_committed(&self) {
        if self.is_indebted() {
            self.end_debts();
            let starts = mem::take(&mut *lock(&self.starts));
            quietly(|| drop(starts)); // user code, if the pace is gone otherwise
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
