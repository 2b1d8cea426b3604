//! The place of one item.

use crate::sync::UnsafeCell;
use std::mem::MaybeUninit;

/// The place of one item. Whether it is filled is known from positions kept elsewhere, so an item
/// costs its own size and nothing more.
pub(super) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    #[inline]
    pub(super) fn vacant() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Fills the slot.
    ///
    /// # Safety
    ///
    /// The slot is vacant, and nobody else touches it meanwhile.
    #[inline]
    pub(super) unsafe fn fill(&self, item: T) {
        self.0.with_mut(|place| {
            // SAFETY: the caller has the slot alone.
            unsafe { (*place).write(item) };
        });
    }

    /// Moves the item out; the slot is vacant afterwards.
    ///
    /// # Safety
    ///
    /// The slot is filled, the fill happens before this call, and nobody else touches it meanwhile.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        self.0.with_mut(|place| {
            // SAFETY: the caller has the slot alone, and it is filled.
            unsafe { (*place).assume_init_read() }
        })
    }

    /// The address of the item.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.with_mut(<*mut MaybeUninit<T>>::cast)
    }
}
