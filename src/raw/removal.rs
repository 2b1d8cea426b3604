//! Items that leave a hold before its transaction ends, and the gaps that they leave behind.
//!
//! The other items are not moved, since they are borrowed; the gaps are closed when the transaction
//! ends.

use super::block::{Filled, HeldSlot};
use super::entry::{DeliveryMeta, Entry};
use super::hold::{HeldPosition, Hold};
use super::row::Row;
use std::mem::size_of;

impl<T> Hold<T> {
    /// Takes out the held item at `address`.
    ///
    /// # Safety
    ///
    /// It was delivered from this hold in its present transaction, and nobody uses it any more.
    pub(super) unsafe fn remove(&mut self, address: usize) -> Entry<T> {
        // SAFETY: by contract it is held and not used.
        let entry = unsafe {
            self.slot_of(address)
                .expect("item does not belong to this transaction")
                .remove()
        };
        self.count_gap();
        entry
    }

    /// The delivery metadata of an item, if it is held.
    pub(super) fn delivery_of(&self, address: usize) -> Option<DeliveryMeta> {
        // SAFETY: filled, as it is held.
        self.slot_of(address).map(|slot| unsafe { slot.delivery() })
    }

    /// The slot of an item, if it is held. A slot begins with its item.
    fn slot_of(&self, address: usize) -> Option<&HeldSlot<T>> {
        self.blocks().find_map(|(block, filled)| {
            // SAFETY: the hold owns the block.
            let first = unsafe { Row::element(block, 0) } as usize;
            let index = address.checked_sub(first)? / size_of::<HeldSlot<T>>();
            // SAFETY: as above; the index is within the row.
            (index < filled).then(|| unsafe { Row::get(block, index) })
        })
    }

    /// Takes out the item before `position`.
    ///
    /// # Safety
    ///
    /// Nobody uses it any more.
    ///
    /// # Panics
    ///
    /// If it is not held.
    pub(super) unsafe fn remove_before(&mut self, position: HeldPosition) -> Entry<T> {
        let slot = self.place_before(position);
        // SAFETY: filled once.
        let is_gone = unsafe { slot.delivery() }.is_gone();
        assert!(!is_gone, "item does not belong to this transaction");
        // SAFETY: held, and by contract not used.
        let entry = unsafe { slot.remove() };
        self.count_gap();
        entry
    }

    /// Returns the next held item from `position` on, and advances `position` behind it.
    pub(super) fn next_at(&self, position: &mut HeldPosition) -> Option<&HeldSlot<T>> {
        if self.len() == 0 {
            return None; // the hold was cleared, and `position` is stale
        }
        loop {
            let slot = self.step(position)?;
            // SAFETY: was filled, whether its item has left or not.
            if !unsafe { slot.delivery() }.is_gone() {
                return Some(slot);
            }
        }
    }

    /// Uncounts the present delivery of each item.
    pub(super) fn uncount(&mut self) {
        let mut position = HeldPosition::default();
        while let Some(slot) = self.next_at(&mut position) {
            // SAFETY: filled, and the hold's alone.
            unsafe {
                let delivery = slot.delivery();
                let attempts = delivery.attempts.saturating_sub(1);
                slot.set_delivery(DeliveryMeta {
                    attempts,
                    ..delivery
                });
            }
        }
    }

    /// Moves the items of a block together, and returns the number of gaps.
    ///
    /// # Safety
    ///
    /// The block is the hold's, and its first `filled` slots were filled.
    pub(super) unsafe fn close_gaps_of(block: Filled<T>, filled: usize) -> usize {
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
