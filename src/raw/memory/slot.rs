//! Slots: memory for one item.

use crate::sync::{with_moved, UnsafeCell};
use std::mem::MaybeUninit;

/// Memory for one item. Whether it is filled is known from positions stored elsewhere, so an item
/// takes its own size and nothing more.
pub(in crate::raw) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    #[inline]
    pub(in crate::raw) fn vacant() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Fills the slot.
    ///
    /// # Safety
    ///
    /// The slot is vacant, and nobody else accesses it meanwhile.
    #[inline]
    pub(in crate::raw) unsafe fn fill(&self, item: T) {
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
    pub(in crate::raw) unsafe fn take(&self) -> T {
        with_moved(&self.0, |slot| {
            // SAFETY: the caller has exclusive access, and the slot is filled.
            unsafe { (*slot).assume_init_read() }
        })
    }

    /// The address of the item.
    #[inline]
    pub(in crate::raw) fn as_ptr(&self) -> *mut T {
        self.0.with_mut(<*mut MaybeUninit<T>>::cast)
    }
}
