//! Held items, each delivered once: those that one call has added to a transaction's hold, or all of them.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::{HeldPosition, ItemRef};
use crate::raw::shard::HeldSlot;
use std::marker::PhantomData;
use std::{iter, ptr, vec};

/// Proof that there are no references to held items: it is derived from an exclusive reference to the cell, and
/// references to items borrow the cell.
pub(crate) struct Unborrowed<'c>(PhantomData<&'c ()>);

impl Unborrowed<'_> {
    /// For callers that own the endpoint itself, without a cell.
    pub(in crate::raw) const fn new() -> Self {
        Self(PhantomData)
    }
}

/// An iterator over the slots of such items. It accesses nothing else of the hold, so it may be used on another thread
/// than the transaction.
pub(crate) struct HeldItems<'t, T> {
    block: BlockItems<'t, T>,
    /// Those of the blocks behind.
    more: vec::IntoIter<BlockItems<'t, T>>,
}

/// The same over the slots of one block.
pub(in crate::raw) struct BlockItems<'t, T> {
    /// The next slot, and the number of items from it on. Behind the last one there may be slots whose items were removed; they
    /// are never read, since the transaction may reuse them.
    next: *const HeldSlot<T>,
    left: usize,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are the only references to the items, and to their delivery metadata, which nothing else changes;
// only the slot of an item that was delivered is marked as gone.
unsafe impl<T: Send> Send for BlockItems<'_, T> {}

impl<T> BlockItems<'_, T> {
    /// The `left` items from this slot on.
    ///
    /// # Safety
    ///
    /// So many items are in this slot and behind it in its block, there are no references to them, and the transaction is
    /// borrowed for `'t`.
    #[inline]
    unsafe fn new((next, left): (*const HeldSlot<T>, usize)) -> Self {
        Self {
            next,
            left,
            items: PhantomData,
        }
    }
}

impl<'t, T> Iterator for BlockItems<'t, T> {
    type Item = ItemRef<'t, T>;

    #[inline]
    fn next(&mut self) -> Option<ItemRef<'t, T>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        loop {
            let slot = self.next;
            // SAFETY: an item is left in this slot or behind it, so the slot is within the block and was filled. It is
            // delivered only here, once: `next` advances. The item does not move while the transaction is borrowed, and the
            // block is alive while it has items.
            unsafe {
                self.next = slot.add(1);
                let delivery = (*slot).delivery();
                if !delivery.is_gone() {
                    return Some(ItemRef::new((*slot).item(), delivery.attempts));
                }
            }
        }
    }
}

impl<'t, T> HeldItems<'t, T> {
    /// The items that were put into the hold from `position` on.
    ///
    /// # Safety
    ///
    /// There are no references to the items, and the transaction is borrowed for `'t`.
    #[inline]
    pub(in crate::raw) unsafe fn after(endpoint: &Endpoint<T>, position: HeldPosition) -> Self {
        let hold = &endpoint.hold;
        // SAFETY: by contract; these are the held items from the position on.
        let items = |block| unsafe { BlockItems::new(block) };
        let block = hold.in_one_block(position);
        let more = match block {
            Some(_) => Vec::new(),
            None => hold.by_blocks(position).into_iter().map(items).collect(),
        };
        Self {
            block: items(block.unwrap_or((ptr::null(), 0))),
            more: more.into_iter(),
        }
    }

    /// All held items.
    pub(in crate::raw) fn all(endpoint: &Endpoint<T>, _: Unborrowed<'t>) -> Self {
        // SAFETY: there are no references to held items, and the transaction is borrowed for `'t`.
        unsafe { Self::after(endpoint, HeldPosition::default()) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<ItemRef<'t, T>> {
        loop {
            if let Some(item) = self.block.next() {
                return Some(item);
            }
            self.block = self.more.next()?;
        }
    }

    /// The remaining items, for a loop that keeps the next slot in a register.
    #[inline]
    pub(crate) fn rest(self) -> impl Iterator<Item = ItemRef<'t, T>> {
        iter::once(self.block).chain(self.more).flatten()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let behind = self.more.as_slice().iter().map(|block| block.left);
        self.block.left + behind.sum::<usize>()
    }
}
