//! A grip: the one reference to a held item.

use super::tag::Tag;
use std::ops::{Deref, DerefMut};

/// An item that a transaction holds, and its tag. Each held item has one grip at most.
pub(crate) struct Grip<'t, T> {
    item: &'t mut T,
    tag: Tag,
}

impl<T> Grip<'_, T> {
    /// # Safety
    ///
    /// The item is held and does not move while `'t` lasts, unless by the end of this grip, and this is
    /// its only grip.
    #[inline]
    pub(super) unsafe fn new(item: *mut T, tag: Tag) -> Self {
        // SAFETY: by contract.
        let item = unsafe { &mut *item };
        Self { item, tag }
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    /// Where the item is while it is held.
    pub(crate) fn address(&self) -> usize {
        let item: *const T = self.item;
        item as usize
    }

    pub(super) fn into_raw(self) -> *const T {
        self.item
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
