//! Items that leave a hold before its transaction ends, and the gaps that they leave behind.
//!
//! The other items stay where they are, since they are borrowed; the gaps are closed when the
//! transaction ends.

use super::block::{Filled, HeldSlot};
use super::entry::{DeliveryMeta, Entry};
use super::hold::{HeldPosition, Hold};
use super::row::Row;
use std::mem::size_of;

impl<T> Hold<T> {
    /// Takes the item at an address out, which is held.
    ///
    /// # Safety
    ///
    /// It was given out by this hold in its present transaction, and nobody uses it any more.
    pub(super) unsafe fn remove(&mut self, address: usize) -> Entry<T> {
        // SAFETY: by contract it is held and not used.
        let entry = unsafe { self.place_of(address).expect("the item is held").remove() };
        self.count_gap();
        entry
    }

    /// What is known of an item, if it is held.
    pub(super) fn delivery_of(&self, address: usize) -> Option<DeliveryMeta> {
        // SAFETY: filled, as it is held.
        self.place_of(address)
            .map(|place| unsafe { place.delivery() })
    }

    /// The place of an item, if it is held. Places begin with their items.
    fn place_of(&self, address: usize) -> Option<&HeldSlot<T>> {
        self.blocks().find_map(|(block, filled)| {
            // SAFETY: the hold owns the block.
            let first = unsafe { Row::element(block, 0) } as usize;
            let index = address.checked_sub(first)? / size_of::<HeldSlot<T>>();
            // SAFETY: as above; the index is within the row.
            (index < filled).then(|| unsafe { Row::get(block, index) })
        })
    }

    /// Takes the item before `spot` out.
    ///
    /// # Safety
    ///
    /// Nobody uses it any more.
    ///
    /// # Panics
    ///
    /// If it is not held.
    pub(super) unsafe fn remove_before(&mut self, spot: HeldPosition) -> Entry<T> {
        let place = self.place_before(spot);
        // SAFETY: filled once.
        assert!(!unsafe { place.delivery() }.is_gone(), "the item is held");
        // SAFETY: held, and by contract not used.
        let entry = unsafe { place.remove() };
        self.count_gap();
        entry
    }

    /// The held item at `spot`, which moves on to the next one. `None`: there are no more.
    pub(super) fn next_at(&self, spot: &mut HeldPosition) -> Option<&HeldSlot<T>> {
        if self.len() == 0 {
            return None; // whatever `spot` says of a hold that was cleared
        }
        loop {
            let place = self.step(spot)?;
            // SAFETY: was filled, whether its item has left or not.
            if !unsafe { place.delivery() }.is_gone() {
                return Some(place);
            }
        }
    }

    /// Takes the present delivery back out of the deliveries.
    pub(super) fn uncount(&mut self) {
        let mut spot = HeldPosition::default();
        while let Some(place) = self.next_at(&mut spot) {
            // SAFETY: filled, and the hold's alone.
            unsafe {
                let delivery = place.delivery();
                let attempts = delivery.attempts.saturating_sub(1);
                place.set_delivery(DeliveryMeta {
                    attempts,
                    ..delivery
                });
            }
        }
    }

    /// Moves the items of a block together, and says how many gaps there were.
    ///
    /// # Safety
    ///
    /// The block is the hold's, and so many places of it were filled.
    pub(super) unsafe fn close_gaps_of(block: Filled<T>, filled: usize) -> usize {
        let mut gaps = 0;
        for index in 0..filled {
            // SAFETY: within the row, and filled once; the place before is vacant, because its item has
            // left or was moved.
            unsafe {
                let place: &HeldSlot<T> = Row::get(block, index);
                let delivery = place.delivery();
                if delivery.is_gone() {
                    gaps += 1;
                } else if gaps > 0 {
                    Row::get(block, index - gaps).fill(place.take(), delivery, 0);
                }
            }
        }
        gaps
    }
}
