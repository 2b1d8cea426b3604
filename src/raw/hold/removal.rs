//! Items that leave a hold before its transaction ends, and the gaps that they leave behind.
//!
//! The other items are not moved, since they are borrowed; the gaps are closed when the transaction
//! ends.

use crate::raw::hold::position::HeldPosition;
use crate::raw::hold::Hold;
use crate::raw::memory::entry::Entry;
use crate::raw::memory::row::Row;
use crate::raw::shard::run::{Filled, HeldSlot};

impl<T> Hold<T> {
    /// Takes out the item before `position`.
    ///
    /// # Safety
    ///
    /// Nobody uses it any more.
    ///
    /// # Panics
    ///
    /// If it is not held.
    pub(in crate::raw) unsafe fn remove_before(&mut self, position: HeldPosition) -> Entry<T> {
        let slot = self.place_before(position);
        // SAFETY: filled once.
        let is_gone = unsafe { slot.delivery() }.is_gone();
        assert!(!is_gone, "item does not belong to this transaction");
        // SAFETY: held, and by contract not used.
        let entry = unsafe { slot.remove() };
        self.len -= 1;
        self.gaps += 1;
        self.scattered = true;
        if self.len == 0 {
            self.gaps = 0;
            self.clear();
        }
        entry
    }

    /// Uncounts the present delivery of each item.
    pub(in crate::raw) fn uncount(&mut self) {
        let mut position = HeldPosition::default();
        while let Some(slot) = self.next_at(&mut position) {
            // SAFETY: filled, and the hold's alone.
            unsafe {
                slot.set_delivery(slot.delivery().before());
            }
        }
    }

    /// Moves the items of a block together, and returns the number of gaps.
    ///
    /// # Safety
    ///
    /// The block is the hold's, and its first `filled` slots were filled.
    pub(in crate::raw) unsafe fn close_gaps_of(block: Filled<T>, filled: usize) -> usize {
        let mut gaps = 0;
        for index in 0..filled {
            // SAFETY: within the row, and filled once; the slot before is vacant, because its item has
            // left or was moved.
            unsafe {
                let slot: &HeldSlot<T> = Row::get(block, index);
                let delivery = slot.delivery();
                if delivery.is_gone() {
                    gaps += 1;
                } else if gaps > 0 {
                    Row::get(block, index - gaps).fill(slot.take(), delivery);
                }
            }
        }
        gaps
    }
}
