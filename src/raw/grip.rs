//! A grip: the one reference to a held item.

use super::tag::Stored;
use std::ops::{Deref, DerefMut};

/// An item that a transaction holds, and how often it was delivered. Each held item has one grip at most.
pub(crate) struct Grip<'t, T> {
    item: &'t mut T,
    attempts: u32,
}

impl<T> Grip<'_, T> {
    /// # Safety
    ///
    /// The item is held and does not move while `'t` lasts, unless by the end of this grip, and this is
    /// its only grip.
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

    /// Where the item is while it is held.
    pub(crate) fn address(&self) -> usize {
        let item: *const T = self.item;
        item as usize
    }
}

impl<'t, T, M> Grip<'t, Stored<T, M>> {
    /// The grip of the item alone.
    #[inline]
    pub(crate) fn project(self) -> Grip<'t, T> {
        Grip {
            item: &mut self.item.item,
            attempts: self.attempts,
        }
    }
}

impl<T> Deref for Grip<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.item
    }
}

impl<T> DerefMut for Grip<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.item
    }
}
