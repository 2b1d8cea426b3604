//! Positions of held items, and how an item is found by one, or by its address.
//!
//! Positions ascend in the order of the pops and do not change while anything is held, so tables of what is kept of items are
//! sorted by them.

use crate::raw::hold::Hold;
use crate::raw::memory::{DeliveryMeta, Row};
use crate::raw::shard::HeldSlot;
use crate::sync::count_visit;
use std::mem::size_of;

/// The position of a held item: the index of its block, and its index there. Items have ascending positions, in the order
/// in which they were taken; a position *behind* an item is that of the next one, or the end of the block.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldPosition {
    pub(in crate::raw) part: usize,
    pub(in crate::raw) index: usize,
}

impl HeldPosition {
    /// That of the nth item of a holder without a hold.
    pub(crate) fn nth(part: usize) -> Self {
        Self { part, index: 0 }
    }
}

impl<T> Hold<T> {
    /// The position of the next item, or the end of the block before it.
    #[inline]
    pub(in crate::raw) fn end(&self) -> HeldPosition {
        if self.len() == 0 {
            return HeldPosition::default(); // at most a vacant block is in use
        }
        let part = self.parts.len().saturating_sub(1);
        HeldPosition {
            part,
            index: self.filled(part),
        }
    }

    /// Returns the slot at `position`, if any, and advances `position`.
    pub(in crate::raw) fn step(&self, position: &mut HeldPosition) -> Option<&HeldSlot<T>> {
        while position.index == self.filled(position.part) {
            if position.part + 1 >= self.parts.len() {
                return None;
            }
            position.part += 1;
            position.index = 0;
        }
        // SAFETY: the hold owns the block; the index was just checked.
        let held = unsafe { Row::get(self.parts[position.part], position.index) };
        position.index += 1;
        Some(held)
    }

    /// The slot before `position`, which was filled.
    pub(in crate::raw) fn place_before(&self, position: HeldPosition) -> &HeldSlot<T> {
        let index = position.index - 1;
        assert!(
            index < self.filled(position.part),
            "the position is outside of this hold"
        );
        // SAFETY: the hold owns the block; the index was just checked.
        unsafe { Row::get(self.parts[position.part], index) }
    }

    /// The slot of the first item from `position` on, and the number of items, if they are in one block, which has no gaps.
    #[inline]
    pub(in crate::raw) fn in_one_block(
        &self,
        position: HeldPosition,
    ) -> Option<(*const HeldSlot<T>, usize)> {
        if self.has_gaps() || position.part + 1 != self.parts.len() {
            return None;
        }
        // SAFETY: the position is in the last block, or at its end.
        let slot = unsafe { self.first.add(position.index) };
        Some((slot, self.index() - position.index))
    }

    /// The blocks with items from `position` on: the first slot of each from there on, and the number of items. Writes
    /// their delivery metadata.
    #[cold]
    pub(in crate::raw) fn by_blocks(
        &mut self,
        position: HeldPosition,
    ) -> Vec<(*const HeldSlot<T>, usize)> {
        self.write_deliveries();
        let parts = (position.part..self.parts.len()).map(|part| {
            let first = usize::from(part == position.part) * position.index;
            // SAFETY: the hold owns the block; `first` is within it.
            let slot = unsafe { Row::element(self.parts[part], first) }.cast_const();
            let items = self.filled(part) - first - self.gaps(part, first);
            (slot, items)
        });
        parts.filter(|(_, items)| *items > 0).collect()
    }

    /// The number of removed items in a block, from this index on.
    fn gaps(&self, part: usize, first: usize) -> usize {
        if !self.has_gaps() {
            return 0;
        }
        // SAFETY: the hold owns the block, and has filled so many of its slots.
        let slot = |index| unsafe { Row::get(self.parts[part], index) };
        // SAFETY: was filled, whether its item has left or not.
        let is_gone = |index: &usize| unsafe { slot(*index).delivery() }.is_gone();
        (first..self.filled(part)).filter(is_gone).count()
    }

    /// The position behind the item at `address`, if it is held. The search begins at the block where the last one
    /// ended, and goes on in both directions: items mostly leave in their order, or in reverse.
    pub(in crate::raw) fn position_of(&mut self, address: usize) -> Option<HeldPosition> {
        let near = self.found;
        let both = |far| [Some(near + far), near.checked_sub(far)];
        let mut parts = (0..self.parts.len().max(near + 1)).flat_map(both).flatten();
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
        let block = *self.parts.get(part)?;
        // SAFETY: the hold owns the block.
        let first = unsafe { Row::element(block, 0) } as usize;
        let index = address.checked_sub(first)? / size_of::<HeldSlot<T>>();
        (index < self.filled(part)).then_some(index)
    }

    /// The delivery metadata of the held item before `position`.
    pub(in crate::raw) fn delivery_before(&self, position: HeldPosition) -> DeliveryMeta {
        // SAFETY: filled, as it is held.
        unsafe { self.delivery(self.place_before(position)) }
    }

    /// Returns the next held item from `position` on, and advances `position` behind it.
    pub(in crate::raw) fn next_at(&self, position: &mut HeldPosition) -> Option<&HeldSlot<T>> {
        if self.len() == 0 {
            return None; // the hold was cleared, and `position` is stale
        }
        loop {
            let slot = self.step(position)?;
            // SAFETY: was filled, whether its item has left or not.
            if !unsafe { self.delivery(slot) }.is_gone() {
                return Some(slot);
            }
        }
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
        assert!(hold.parts.len() > 50);
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
