//! Items that leave a hold before its transaction ends, and the gaps that they leave behind.
//!
//! The other items are not moved, since they are borrowed; the gaps are closed when the transaction
//! ends.

use crate::raw::hold::{HeldPosition, Hold};
use crate::raw::memory::entry::{DeliveryMeta, Entry};
use crate::raw::memory::row::Row;
use crate::raw::shard::run::{Filled, HeldSlot};
use crate::sync::count_visit;
use std::mem::size_of;

impl<T> Hold<T> {
    /// The position behind the item at `address`, if it is held. The search begins at the block where the last one
    /// ended, and goes on in both directions: items mostly leave in their order, or in reverse.
    pub(in crate::raw) fn position_of(&mut self, address: usize) -> Option<HeldPosition> {
        let near = self.found;
        let both = |far| [Some(near + far), near.checked_sub(far)];
        let mut parts = (0..self.block_count().max(near + 1))
            .flat_map(both)
            .flatten();
        let position = parts.find_map(|part| {
            count_visit();
            let index = self.index_in(part, address)? + 1;
            Some(HeldPosition { part, index })
        })?;
        self.found = position.part;
        Some(position)
    }

    /// Whether the item at `address` is the one before `position`.
    pub(in crate::raw) fn has_before(&self, position: HeldPosition, address: usize) -> bool {
        let index = self.index_in(position.part, address);
        index.is_some_and(|index| index + 1 == position.index)
    }

    /// The index of an item in a block, if it is there. A slot begins with its item.
    fn index_in(&self, part: usize, address: usize) -> Option<usize> {
        let (block, filled) = self.block(part)?;
        // SAFETY: the hold owns the block.
        let first = unsafe { Row::element(block, 0) } as usize;
        let index = address.checked_sub(first)? / size_of::<HeldSlot<T>>();
        (index < filled).then_some(index)
    }

    /// The delivery metadata of the held item before `position`.
    pub(in crate::raw) fn delivery_before(&self, position: HeldPosition) -> DeliveryMeta {
        // SAFETY: filled, as it is held.
        unsafe { self.place_before(position).delivery() }
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
    pub(in crate::raw) unsafe fn remove_before(&mut self, position: HeldPosition) -> Entry<T> {
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
    pub(in crate::raw) fn next_at(&self, position: &mut HeldPosition) -> Option<&HeldSlot<T>> {
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
    pub(in crate::raw) fn uncount(&mut self) {
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::raw::shard::front::Front;
    use crate::raw::shard::sink::Sink;
    use crate::sync::visits_of;

    #[test]
    fn items_are_found_in_the_block_of_the_last_one_or_the_next() {
        const ITEMS: usize = 4_000;
        let front = Front::<[u8; 1000]>::new();
        let mut hold = Hold::new();
        let mut addresses = Vec::new();
        for _ in 0..ITEMS {
            hold.reserve(1, front.home());
            // SAFETY: there is room.
            unsafe { hold.accept([0; 1000], DeliveryMeta::first(0)) };
            addresses.push(hold.newest().item() as usize);
        }
        assert!(hold.block_count() > 50);
        let in_order = visits_of(|| {
            let found = addresses.iter().map(|at| hold.position_of(*at).unwrap());
            assert!(found
                .collect::<Vec<_>>()
                .windows(2)
                .all(|two| two[0] < two[1]));
        });
        let in_reverse = visits_of(|| {
            for at in addresses.iter().rev() {
                let position = hold.position_of(*at).unwrap();
                assert!(hold.has_before(position, *at));
            }
        });
        for visits in [in_order, in_reverse] {
            assert!(visits < 2 * ITEMS, "{visits} visits of blocks");
        }
        assert!(hold.position_of(0).is_none());
        hold.clear();
    }
}
