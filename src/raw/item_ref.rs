//! The only reference to a held item.

use super::entry::Stored;
use std::ops::{Deref, DerefMut};
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
use std::ptr::NonNull;

/// An item held by a transaction, and the number of its deliveries. Each held item has at most one reference.
pub(crate) struct ItemRef<'t, T> {
    item: &'t mut T,
    attempts: u32,
}

impl<T> ItemRef<'_, T> {
    /// # Safety
    ///
    /// The item is held and does not move during `'t`, except by means of this reference, which is the only one.
    #[inline]
    pub(super) unsafe fn new(item: *mut T, attempts: u32) -> Self {
        // SAFETY: by contract.
        let item = unsafe { &mut *item };
        Self { item, attempts }
    }

    #[inline]
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The address of the item while it is held.
    pub(crate) fn address(&self) -> usize {
        let item: *const T = self.item;
        item as usize
    }

    /// The address of the item, and the number of its deliveries.
    #[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
    pub(super) fn into_parts(self) -> (NonNull<T>, u32) {
        (NonNull::from(self.item), self.attempts)
    }
}

impl<'t, T, M> ItemRef<'t, Stored<T, M>> {
    /// The reference to the item alone.
    #[inline]
    pub(crate) fn project(self) -> ItemRef<'t, T> {
        ItemRef {
            item: &mut self.item.item,
            attempts: self.attempts,
        }
    }
}

impl<T> Deref for ItemRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.item
    }
}

impl<T> DerefMut for ItemRef<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.item
    }
}
