//! Items that leave a hold before its transaction ends, and the gaps that they leave behind.
//!
//! The other items are not moved, since they are borrowed; an abort closes the gaps.

use crate::raw::hold::position::HeldPosition;
use crate::raw::hold::{Hold, Metadata};
use crate::raw::memory::Entry;

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
        self.write_deliveries();
        let slot = self.place_before(position);
        // SAFETY: written.
        let is_gone = unsafe { slot.delivery() }.is_gone();
        assert!(!is_gone, "item does not belong to this transaction");
        // SAFETY: held, and by contract not used.
        let entry = unsafe { slot.remove() };
        self.len -= 1;
        self.metadata = Metadata::WithGaps;
        if self.len == 0 {
            self.clear();
        }
        entry
    }

    /// Uncounts the present delivery of each item.
    pub(in crate::raw) fn uncount(&mut self) {
        self.write_deliveries();
        let mut position = HeldPosition::default();
        while let Some(slot) = self.next_at(&mut position) {
            // SAFETY: written, and the hold's alone.
            unsafe {
                slot.set_delivery(slot.delivery().before());
            }
        }
    }
}
