//! The only reference to a held item.

use crate::raw::memory::Stored;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{addr_of_mut, NonNull};

/// An item held by a transaction, and the number of its deliveries. Each held item has at most one reference.
pub(crate) struct ItemRef<'t, T> {
    /// Not a reference: a function that takes one by value must not use the item otherwise until it returns, and those
    /// that end a delivery do.
    item: NonNull<T>,
    attempts: u32,
    /// As `&'t mut T`, but nothing requires that `T` outlives `'t`: functions for any lifetime take such a reference.
    borrow: PhantomData<(&'t (), *mut T)>,
}

// SAFETY: it is used as a `&mut T`.
unsafe impl<T: Send> Send for ItemRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ItemRef<'_, T> {}

impl<T> ItemRef<'_, T> {
    /// # Safety
    ///
    /// The item is held and does not move during `'t`, except by means of this reference, which is the only one.
    #[inline]
    pub(in crate::raw) unsafe fn new(item: *mut T, attempts: u32) -> Self {
        // SAFETY: by contract.
        let item = unsafe { NonNull::new_unchecked(item) };
        Self::at(item, attempts)
    }

    #[inline]
    fn at(item: NonNull<T>, attempts: u32) -> Self {
        Self {
            item,
            attempts,
            borrow: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The address of the item while it is held.
    pub(crate) fn address(&self) -> usize {
        self.item.as_ptr() as usize
    }
}

impl<'t, T, M> ItemRef<'t, Stored<T, M>> {
    /// The reference to the item alone.
    #[inline]
    pub(crate) fn project(self) -> ItemRef<'t, T> {
        // SAFETY: the item of a live value.
        let item = unsafe { NonNull::new_unchecked(addr_of_mut!((*self.item.as_ptr()).item)) };
        ItemRef::at(item, self.attempts)
    }
}

impl<T> Deref for ItemRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: by the contract of `new`.
        unsafe { self.item.as_ref() }
    }
}

impl<T> DerefMut for ItemRef<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: by the contract of `new`.
        unsafe { self.item.as_mut() }
    }
}
