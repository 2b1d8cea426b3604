//! Held items, each delivered once: those that one call has added to a transaction's hold, or all of them.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::{HeldPosition, ItemRef};
use crate::raw::shard::HeldSlot;
use std::marker::PhantomData;
use std::ops::Range;
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
    current: Range<*const HeldSlot<T>>,
    more: vec::IntoIter<Range<*const HeldSlot<T>>>,
    left: usize,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are the only references to the items, and to their delivery metadata, which nothing else changes;
// only the slot of an item that was delivered is marked as gone.
unsafe impl<T: Send> Send for HeldItems<'_, T> {}

impl<'t, T> HeldItems<'t, T> {
    /// The items that were put into the hold from `position` on; `left` is their number.
    ///
    /// # Safety
    ///
    /// There are no references to the items, and the transaction is borrowed for `'t`.
    pub(in crate::raw) unsafe fn after(
        endpoint: &Endpoint<T>,
        position: HeldPosition,
        left: usize,
    ) -> Self {
        // SAFETY: `len` slots follow in the block.
        let part = |(first, len): (*const HeldSlot<T>, usize)| first..unsafe { first.add(len) };
        let mut parts = endpoint.hold.places_from(position).map(part);
        let current = parts.next().unwrap_or(ptr::null()..ptr::null());
        let more = parts.collect::<Vec<_>>().into_iter();
        Self {
            current,
            more,
            left,
            items: PhantomData,
        }
    }

    /// All held items.
    pub(in crate::raw) fn all(endpoint: &Endpoint<T>, _: Unborrowed<'t>) -> Self {
        // SAFETY: there are no references to held items, and the transaction is borrowed for `'t`.
        unsafe { Self::after(endpoint, HeldPosition::default(), endpoint.held()) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<ItemRef<'t, T>> {
        loop {
            if self.left == 0 {
                return None;
            }
            while self.current.is_empty() {
                self.current = self.more.next()?;
            }
            let slot = self.current.start;
            // SAFETY: the slot is within the block, was filled, and is delivered only here, once: the range advances.
            // The item does not move while the transaction is borrowed, and the block is alive while it has items.
            unsafe {
                self.current.start = slot.add(1);
                let delivery = (*slot).delivery();
                if !delivery.is_gone() {
                    self.left -= 1;
                    return Some(ItemRef::new((*slot).item(), delivery.attempts));
                }
            }
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}
