//! A header and a row of elements in one allocation.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::ptr::{self, NonNull};

/// A header followed by `len` elements, in one allocation.
///
/// Rows are shared between threads by address; nothing here takes `&mut` to a whole row.
#[repr(C)]
pub(in crate::raw) struct Row<H, E> {
    header: H,
    len: usize,
    /// Aligns the row, and so the end of this struct, for its elements.
    elements: [E; 0],
}

impl<H, E> Row<H, E> {
    /// Allocates a row of `len` elements.
    ///
    /// # Panics
    ///
    /// When the row would be larger than the address space.
    pub(in crate::raw) fn new(
        header: H,
        len: usize,
        mut element: impl FnMut() -> E,
    ) -> NonNull<Self> {
        let layout = Self::layout(len);
        let elements = [];
        let empty = Self {
            header,
            len,
            elements,
        };
        // SAFETY: the layout holds `len`, so its size is not zero.
        let Some(row) = NonNull::new(unsafe { alloc(layout) }.cast::<Self>()) else {
            handle_alloc_error(layout)
        };
        // SAFETY: fresh memory of the layout of a header and `len` elements.
        unsafe {
            row.as_ptr().write(empty);
            for index in 0..len {
                Self::element(row, index).write(element());
            }
        }
        row
    }

    /// The header.
    ///
    /// # Safety
    ///
    /// The row is not freed while `'a` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn header<'a>(row: NonNull<Self>) -> &'a H {
        // SAFETY: the row is alive; the header is never written through another path.
        unsafe { &*ptr::addr_of!((*row.as_ptr()).header) }
    }

    /// The element at `index`.
    ///
    /// # Safety
    ///
    /// The row is not freed while `'a` lasts, and `index` is less than its length.
    #[inline]
    pub(in crate::raw) unsafe fn get<'a>(row: NonNull<Self>, index: usize) -> &'a E {
        // SAFETY: in bounds and initialised since `new`.
        unsafe { &*Self::element(row, index) }
    }

    /// The number of elements.
    ///
    /// # Safety
    ///
    /// The row is alive.
    #[inline]
    pub(in crate::raw) unsafe fn len(row: NonNull<Self>) -> usize {
        // SAFETY: the row is alive, and its length never changes.
        unsafe { (*row.as_ptr()).len }
    }

    /// Frees the row. Items in its slots are not dropped.
    ///
    /// # Safety
    ///
    /// The row came from [`Row::new`] and is not used any more.
    pub(in crate::raw) unsafe fn free(row: NonNull<Self>) {
        // SAFETY: the caller has exclusive access, and the layout follows from the length.
        unsafe {
            let len = Self::len(row);
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(Self::element(row, 0), len));
            ptr::drop_in_place(row.as_ptr());
            dealloc(row.as_ptr().cast(), Self::layout(len));
        }
    }

    /// The address of the first element, whether the row is alive or not.
    #[inline]
    pub(in crate::raw) fn start(row: NonNull<Self>) -> *mut E {
        row.as_ptr().wrapping_add(1).cast()
    }

    /// The address of the element at `index`.
    ///
    /// # Safety
    ///
    /// The row is alive or just allocated, and `index` is at most its length.
    #[inline]
    pub(in crate::raw) unsafe fn element(row: NonNull<Self>, index: usize) -> *mut E {
        // SAFETY: the elements start where the struct ends, which is aligned for them.
        unsafe { Self::start(row).add(index) }
    }

    /// The layout of a row with `len` elements.
    pub(in crate::raw) fn layout(len: usize) -> Layout {
        let elements = Layout::array::<E>(len);
        let whole = elements.and_then(|elements| Layout::new::<Self>().extend(elements));
        whole.expect("the row fits into the address space").0
    }
}
