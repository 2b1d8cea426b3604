//! HeldSlot items, each given out once: those that one call has added to a transaction's hold, or all of it.

use super::block::HeldSlot;
use super::cell::Unborrowed;
use super::endpoint::Endpoint;
use super::hold::HeldPosition;
use super::item_ref::ItemRef;
use std::marker::PhantomData;
use std::ops::Range;
use std::{ptr, vec};

/// The places of such items. Taking one out of here touches nothing else of the hold: so this may be on another thread
/// than the transaction.
pub(crate) struct HeldItems<'t, T> {
    current: Range<*const HeldSlot<T>>,
    more: vec::IntoIter<Range<*const HeldSlot<T>>>,
    left: usize,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are references to items that nobody else has, and their deliveries, which nobody else changes.
unsafe impl<T: Send> Send for HeldItems<'_, T> {}

impl<'t, T> HeldItems<'t, T> {
    /// What was put into the hold from `spot` on, so many items.
    ///
    /// # Safety
    ///
    /// The items were given out to nobody, and the transaction is borrowed for `'t`.
    pub(super) unsafe fn after(endpoint: &Endpoint<T>, spot: HeldPosition, left: usize) -> Self {
        // SAFETY: so many places follow in the block.
        let part = |(first, len): (*const HeldSlot<T>, usize)| first..unsafe { first.add(len) };
        let mut parts = endpoint.places_from(spot).map(part);
        let current = parts.next().unwrap_or(ptr::null()..ptr::null());
        let more = parts.collect::<Vec<_>>().into_iter();
        Self {
            current,
            more,
            left,
            items: PhantomData,
        }
    }

    /// All that is held.
    pub(super) fn all(endpoint: &Endpoint<T>, _: Unborrowed<'t>) -> Self {
        // SAFETY: nobody uses a held item by reference, and the transaction is borrowed for `'t`.
        unsafe { Self::after(endpoint, HeldPosition::default(), endpoint.held()) }
    }

    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<ItemRef<'t, T>> {
        loop {
            if self.left == 0 {
                return None;
            }
            while self.current.is_empty() {
                self.current = self.more.next()?;
            }
            let place = self.current.start;
            // SAFETY: within the part, filled once, and given out here alone, once: the range moves on. The item stays
            // where it is while the transaction is borrowed, and so does the block while an item of it is left.
            unsafe {
                self.current.start = place.add(1);
                let delivery = (*place).delivery();
                if !delivery.is_gone() {
                    self.left -= 1;
                    return Some(ItemRef::new((*place).item(), delivery.attempts));
                }
            }
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}
