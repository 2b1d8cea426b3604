//! An open transaction, which aborts unless it is closed.

use super::seat::Seat;
use std::mem::ManuallyDrop;
use std::ptr;

/// Borrows a seat for one transaction; dropping it aborts.
pub(crate) struct Open<'h, T>(&'h mut Seat<T>);

impl<'h, T> Open<'h, T> {
    /// Begins a transaction, after ending a forgotten one.
    #[inline]
    pub(crate) fn new(seat: &'h mut Seat<T>) -> Self {
        seat.settle();
        Self(seat)
    }

    #[inline]
    pub(crate) fn seat(&self) -> &Seat<T> {
        self.0
    }

    pub(crate) fn seat_mut(&mut self) -> &mut Seat<T> {
        self.0
    }

    /// Ends the borrow without an abort.
    #[inline]
    pub(crate) fn close(self) -> &'h mut Seat<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the reference is moved out of a value that is neither used nor dropped again.
        unsafe { ptr::read(&this.0) }
    }
}

impl<T> Drop for Open<'_, T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
