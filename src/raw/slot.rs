//! Slots: memory for one item.

use crate::sync::UnsafeCell;
use std::mem::MaybeUninit;

/// Memory for one item. Whether it is filled is known from positions stored elsewhere, so an item
/// takes its own size and nothing more.
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
    /// The slot is vacant, and nobody else accesses it meanwhile.
    #[inline]
    pub(super) unsafe fn fill(&self, item: T) {
        self.0.with_mut(|slot| {
            // SAFETY: the caller has exclusive access.
            unsafe { (*slot).write(item) };
        });
    }

    /// Moves the item out; the slot is vacant afterwards.
    ///
    /// # Safety
    ///
    /// The slot is filled, the fill happens before this call, and nobody else accesses it meanwhile.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        self.0.with_mut(|slot| {
            // SAFETY: the caller has exclusive access, and the slot is filled.
            unsafe { (*slot).assume_init_read() }
        })
    }

    /// The address of the item.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.with_mut(<*mut MaybeUninit<T>>::cast)
    }
}
