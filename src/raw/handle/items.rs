//! Held items, each delivered once: those that one call has added to a transaction's hold, or all of them.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::{HeldPosition, ItemRef};
use crate::raw::shard::HeldSlot;
use std::marker::PhantomData;
use std::{ptr, vec};

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
    /// The next slot, and the items from it on that are left in its block. Behind the last one there may be slots whose items
    /// were removed; they are never read, since the transaction may reuse them.
    next: *const HeldSlot<T>,
    left: usize,
    /// The same of the blocks behind.
    more: vec::IntoIter<(*const HeldSlot<T>, usize)>,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are the only references to the items, and to their delivery metadata, which nothing else changes;
// only the slot of an item that was delivered is marked as gone.
unsafe impl<T: Send> Send for HeldItems<'_, T> {}

impl<'t, T> HeldItems<'t, T> {
    /// The items that were put into the hold from `position` on.
    ///
    /// # Safety
    ///
    /// There are no references to the items, and the transaction is borrowed for `'t`.
    #[inline]
    pub(in crate::raw) unsafe fn after(endpoint: &Endpoint<T>, position: HeldPosition) -> Self {
        let hold = &endpoint.hold;
        let ((next, left), more) = match hold.in_one_block(position) {
            Some(items) => (items, Vec::new()),
            None => ((ptr::null(), 0), hold.by_blocks(position)),
        };
        Self {
            next,
            left,
            more: more.into_iter(),
            items: PhantomData,
        }
    }

    /// All held items.
    pub(in crate::raw) fn all(endpoint: &Endpoint<T>, _: Unborrowed<'t>) -> Self {
        // SAFETY: there are no references to held items, and the transaction is borrowed for `'t`.
        unsafe { Self::after(endpoint, HeldPosition::default()) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<ItemRef<'t, T>> {
        if self.left == 0 {
            (self.next, self.left) = self.more.next()?;
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

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let behind = self.more.as_slice().iter().map(|(_, left)| left);
        self.left + behind.sum::<usize>()
    }
}
