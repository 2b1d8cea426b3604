//! A header and a row of elements in one allocation.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::mem::{align_of, size_of};
use std::ptr::{self, NonNull};
use std::slice;

/// A header followed by `len` elements, and by a few values of another type, in one allocation.
///
/// Rows are shared between threads by address; nothing here takes `&mut` to a whole row.
#[repr(C)]
pub(in crate::raw) struct Row<H, E, X> {
    header: H,
    len: u32,
    extras: u32,
    /// These align the row, and so the end of this struct, for its elements and extras.
    elements: [E; 0],
    aligned: [X; 0],
}

impl<H, E, X> Row<H, E, X> {
    /// Allocates a row of `len` elements and `extras` extras.
    ///
    /// # Panics
    ///
    /// When the row would be larger than the address space, or has more than 2³² elements.
    pub(in crate::raw) fn new(
        header: H,
        len: usize,
        mut element: impl FnMut() -> E,
        extras: usize,
        mut extra: impl FnMut() -> X,
    ) -> NonNull<Self> {
        let layout = Self::layout(len, extras);
        let count = |count| u32::try_from(count).expect("the row has fewer than 2³² elements");
        let empty = Self {
            header,
            len: count(len),
            extras: count(extras),
            elements: [],
            aligned: [],
        };
        // SAFETY: the layout holds `len`, so its size is not zero.
        let Some(row) = NonNull::new(unsafe { alloc(layout) }.cast::<Self>()) else {
            handle_alloc_error(layout)
        };
        // SAFETY: fresh memory of the layout of a header, `len` elements and `extras` extras.
        unsafe {
            row.as_ptr().write(empty);
            for index in 0..len {
                Self::element(row, index).write(element());
            }
            let first = Self::first_extra(row);
            for index in 0..extras {
                first.add(index).write(extra());
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
        unsafe { (*row.as_ptr()).len as usize }
    }

    /// The extras.
    ///
    /// # Safety
    ///
    /// The row is not freed while `'a` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn extras<'a>(row: NonNull<Self>) -> &'a [X] {
        // SAFETY: as for `len` and `get`.
        unsafe {
            let count = (*row.as_ptr()).extras as usize;
            slice::from_raw_parts(Self::first_extra(row), count)
        }
    }

    /// Frees the row. Items in its slots are not dropped.
    ///
    /// # Safety
    ///
    /// The row came from [`Row::new`] and is not used any more.
    pub(in crate::raw) unsafe fn free(row: NonNull<Self>) {
        // SAFETY: the caller has exclusive access, and the layout follows from the numbers.
        unsafe {
            let (len, extras) = (Self::len(row), (*row.as_ptr()).extras as usize);
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(Self::element(row, 0), len));
            let first = Self::first_extra(row);
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(first, extras));
            ptr::drop_in_place(row.as_ptr());
            dealloc(row.as_ptr().cast(), Self::layout(len, extras));
        }
    }

    /// The size of a row in bytes.
    ///
    /// # Safety
    ///
    /// The row is alive.
    pub(in crate::raw) unsafe fn bytes(row: NonNull<Self>) -> usize {
        // SAFETY: by contract.
        let (len, extras) = unsafe { (Self::len(row), (*row.as_ptr()).extras as usize) };
        Self::layout(len, extras).size()
    }

    /// The address of the element at `index`.
    ///
    /// # Safety
    ///
    /// The row is alive or just allocated, and `index` is at most its length.
    #[inline]
    pub(in crate::raw) unsafe fn element(row: NonNull<Self>, index: usize) -> *mut E {
        // SAFETY: the elements start where the struct ends, which is aligned for them.
        unsafe { row.as_ptr().add(1).cast::<E>().add(index) }
    }

    /// The address of the first extra, behind the elements.
    ///
    /// # Safety
    ///
    /// The row is alive, and its length is set.
    #[inline]
    unsafe fn first_extra(row: NonNull<Self>) -> *mut X {
        // SAFETY: within the allocation: `layout` puts the extras there.
        unsafe {
            let end = size_of::<Self>() + Self::len(row) * size_of::<E>();
            let offset = end.next_multiple_of(align_of::<X>());
            row.as_ptr().cast::<u8>().add(offset).cast()
        }
    }

    fn layout(len: usize, extras: usize) -> Layout {
        let elements = Layout::array::<E>(len).and_then(|elements| {
            let size = size_of::<Self>() + elements.size();
            Layout::from_size_align(size, align_of::<Self>())
        });
        let whole = elements.and_then(|elements| elements.extend(Layout::array::<X>(extras)?));
        whole.expect("the row fits into the address space").0
    }
}
