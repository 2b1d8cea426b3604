//! Held items, each delivered once: those that one call has added to a transaction's hold, or all of them.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::{HeldPosition, ItemRef};
use crate::raw::memory::DeliveryMeta;
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
    /// Those of one block whose delivery metadata may be [unwritten](crate::raw::hold::Hold::is_unwritten).
    unwritten: BlockItems<'t, T, false>,
    block: BlockItems<'t, T, true>,
    /// Those of the blocks behind.
    more: vec::IntoIter<BlockItems<'t, T, true>>,
}

/// The same over the slots of one block. Without `WRITTEN` delivery metadata, which it does not read, all items are delivered for
/// the first time.
struct BlockItems<'t, T, const WRITTEN: bool> {
    /// The next slot, and the number of items from it on. Behind the last one there may be slots whose items were removed; they
    /// are never read, since the transaction may reuse them.
    next: *const HeldSlot<T>,
    left: usize,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are the only references to the items, and to their delivery metadata, which nothing else changes;
// only the slot of an item that was delivered is marked as gone. Unwritten metadata is not accessed.
unsafe impl<T: Send, const WRITTEN: bool> Send for BlockItems<'_, T, WRITTEN> {}

impl<T, const WRITTEN: bool> BlockItems<'_, T, WRITTEN> {
    const NONE: Self = Self {
        next: ptr::null(),
        left: 0,
        items: PhantomData,
    };

    /// The `left` items from this slot on.
    ///
    /// # Safety
    ///
    /// So many items are in this slot and behind it in its block, there are no references to them, and the transaction is
    /// borrowed for `'t`. Without `WRITTEN` metadata there are no gaps between them.
    #[inline]
    unsafe fn new((next, left): (*const HeldSlot<T>, usize)) -> Self {
        let items = PhantomData;
        Self { next, left, items }
    }
}

impl<'t, T, const WRITTEN: bool> Iterator for BlockItems<'t, T, WRITTEN> {
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
                let delivery = if WRITTEN {
                    (*slot).delivery()
                } else {
                    DeliveryMeta::first(0)
                };
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
    pub(in crate::raw) unsafe fn after(endpoint: &mut Endpoint<T>, position: HeldPosition) -> Self {
        let hold = &mut endpoint.hold;
        let mut items = Self {
            unwritten: BlockItems::NONE,
            block: BlockItems::NONE,
            more: Vec::new().into_iter(),
        };
        // SAFETY: by contract; these are the held items from the position on.
        unsafe {
            match hold.in_one_block(position) {
                Some(block) if hold.is_unwritten() => items.unwritten = BlockItems::new(block),
                Some(block) => items.block = BlockItems::new(block),
                None => {
                    let blocks = hold.by_blocks(position).into_iter();
                    let blocks: Vec<_> = blocks.map(|block| BlockItems::new(block)).collect();
                    items.more = blocks.into_iter();
                }
            }
        }
        items
    }

    /// All held items.
    pub(in crate::raw) fn all(endpoint: &mut Endpoint<T>, _: Unborrowed<'t>) -> Self {
        // SAFETY: there are no references to held items, and the transaction is borrowed for `'t`.
        unsafe { Self::after(endpoint, HeldPosition::default()) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<ItemRef<'t, T>> {
        if let Some(item) = self.unwritten.next() {
            return Some(item);
        }
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
        let written = iter::once(self.block).chain(self.more).flatten();
        self.unwritten.chain(written)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let behind = self.more.as_slice().iter().map(|block| block.left);
        self.unwritten.left + self.block.left + behind.sum::<usize>()
    }
}
