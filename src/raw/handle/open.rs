//! An open transaction, which aborts unless it is closed.

use crate::raw::handle::cell::{Borrow, LocalCell, Session};
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

/// An open transaction on a cell; dropping it aborts.
///
/// It is a `&'h mut LocalCell<L>`, except that `L` need not outlive `'h`: an owned transaction, which owns its cell,
/// borrows it for `'static`, whatever the items borrow.
pub(crate) struct Open<'h, L: Session> {
    cell: NonNull<LocalCell<L>>,
    borrow: PhantomData<(&'h mut (), *mut L)>,
}

// SAFETY: it is an exclusive reference.
unsafe impl<L: Session + Send> Send for Open<'_, L> {}

impl<'h, L: Session> Open<'h, L> {
    /// Begins a transaction.
    #[inline]
    pub(crate) fn new(cell: &'h mut LocalCell<L>) -> Self {
        cell.settled();
        Self {
            cell: NonNull::from(cell),
            borrow: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn cell(&self) -> &LocalCell<L> {
        // SAFETY: borrowed for `'h`, or kept alive for its `Owner` while `self` lives.
        unsafe { self.cell.as_ref() }
    }

    #[inline]
    pub(crate) fn cell_mut(&mut self) -> &mut LocalCell<L> {
        // SAFETY: as in `cell`, exclusively.
        unsafe { self.cell.as_mut() }
    }

    /// See [`LocalCell::borrow`].
    #[inline(always)] // the push and pop of a transaction
    #[track_caller]
    pub(crate) fn borrow(&self) -> Borrow<'_, L> {
        self.cell().borrow()
    }

    /// Ends the borrow without an abort.
    #[inline]
    pub(crate) fn close(self) -> &'h mut LocalCell<L> {
        let mut cell = self.cell;
        mem::forget(self);
        // SAFETY: borrowed for `'h`, exclusively, and `self` is not used any more. A cell with an owner is leaked
        // then: only `Owner::close` would free it.
        unsafe { cell.as_mut() }
    }
}

impl<L: Session> Drop for Open<'_, L> {
    fn drop(&mut self) {
        self.cell_mut().abort();
    }
}

/// The owner of a cell while a transaction is open on it. Dropping it leaks the cell.
pub(crate) struct Owner<L: Session>(NonNull<LocalCell<L>>);

// SAFETY: all it does is to return the cell.
unsafe impl<L: Session + Send> Send for Owner<L> {}

impl<L: Session> Owner<L> {
    /// Begins a transaction on a cell, which stays allocated until [`Owner::close`].
    pub(crate) fn begin(mut cell: Box<LocalCell<L>>) -> (Self, Open<'static, L>) {
        cell.settled();
        let cell = NonNull::from(Box::leak(cell));
        let open = Open {
            cell,
            borrow: PhantomData,
        };
        (Self(cell), open)
    }

    /// Ends the transaction without an abort, and returns the cell.
    ///
    /// # Panics
    ///
    /// If the transaction belongs to another cell.
    #[allow(clippy::unnecessary_box_returns)] // it came as one
    pub(crate) fn close(self, open: Open<'static, L>) -> Box<LocalCell<L>> {
        assert!(
            self.0 == open.cell,
            "the transaction belongs to another cell"
        );
        mem::forget(open);
        // SAFETY: it came from a box, in `begin`, and was borrowed by `open` alone, which is forgotten.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}
