//! The delivery metadata of held items, which a hold writes when somebody needs it.
//!
//! A transaction mostly takes a batch of items that nobody has taken before, and commits it: nobody asks how often they were
//! delivered. Their slots are filled without that.

use crate::raw::hold::{Hold, Metadata};
use crate::raw::memory::{DeliveryMeta, Row};
use crate::raw::shard::HeldSlot;

impl<T> Hold<T> {
    #[inline]
    pub(in crate::raw) fn has_gaps(&self) -> bool {
        self.metadata == Metadata::WithGaps
    }

    /// Whether the delivery metadata of the items may be unwritten. While one of them is not delivered to the user, this changes in one
    /// direction only: nobody reads what another thread writes.
    #[inline]
    pub(in crate::raw) fn is_unwritten(&self) -> bool {
        self.metadata == Metadata::Unwritten
    }

    /// Whether the metadata of items that are delivered for the first time, without times, is left unwritten.
    #[inline]
    pub(super) fn leaves_unwritten(&mut self) -> bool {
        if self.len == 0 {
            self.metadata = Metadata::Unwritten;
        }
        self.is_unwritten()
    }

    /// The delivery metadata of a held item, or of one that was removed.
    ///
    /// # Safety
    ///
    /// The slot is in this hold, and was filled.
    #[inline]
    pub(in crate::raw) unsafe fn delivery(&self, slot: &HeldSlot<T>) -> DeliveryMeta {
        if self.is_unwritten() {
            return DeliveryMeta::first(0);
        }
        // SAFETY: by contract.
        unsafe { slot.delivery() }
    }

    /// Writes the metadata of all items, unless it is written.
    #[inline]
    pub(super) fn write_deliveries(&mut self) {
        if self.is_unwritten() {
            self.write_first();
        }
    }

    #[cold]
    fn write_first(&mut self) {
        self.metadata = Metadata::Written;
        for part in 0..self.parts.len() {
            for index in 0..self.filled(part) {
                // SAFETY: the hold owns the block, and has filled so many of its slots. Nobody else reads their metadata: references
                // to items that were unwritten do without.
                unsafe { Row::get(self.parts[part], index).set_delivery(DeliveryMeta::first(0)) };
            }
        }
    }
}
