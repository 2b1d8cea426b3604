//! An open transaction, which aborts unless it is closed.

use super::cell::{Borrow, LocalCell, Session};
use std::mem::ManuallyDrop;
use std::ptr;

/// Has a cell for one transaction; dropping it aborts.
pub(crate) struct Open<'h, L: Session>(&'h mut LocalCell<L>);

impl<'h, L: Session> Open<'h, L> {
    /// Begins a transaction.
    #[inline]
    pub(crate) fn new(cell: &'h mut LocalCell<L>) -> Self {
        cell.settled();
        Self(cell)
    }

    #[inline]
    pub(crate) fn cell(&self) -> &LocalCell<L> {
        self.0
    }

    #[inline]
    pub(crate) fn cell_mut(&mut self) -> &mut LocalCell<L> {
        self.0
    }

    /// See [`LocalCell::borrow`].
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push and pop of a transaction
    #[track_caller]
    pub(crate) fn borrow(&self) -> Borrow<'_, L> {
        self.0.borrow()
    }

    /// Ends the borrow without an abort.
    #[inline]
    pub(crate) fn close(self) -> &'h mut LocalCell<L> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the reference is moved out of a value that is neither used nor dropped again.
        unsafe { ptr::read(&this.0) }
    }
}

impl<L: Session> Drop for Open<'_, L> {
    fn drop(&mut self) {
        self.0.end_forgotten();
        let (local, unborrowed) = self.0.whole();
        local.abort(&unborrowed);
    }
}
