//! An open transaction, which aborts unless it is closed.

use std::mem::ManuallyDrop;
use std::ptr;

/// What transactions begin and end on.
pub(crate) trait Session {
    /// Ends what a forgotten transaction left.
    fn begin(&mut self);
    /// Undoes the transaction.
    fn abort(&mut self);
}

/// Borrows a session for one transaction; dropping it aborts.
pub(crate) struct Open<'h, S: Session>(&'h mut S);

impl<'h, S: Session> Open<'h, S> {
    /// Begins a transaction.
    #[inline]
    pub(crate) fn new(session: &'h mut S) -> Self {
        session.begin();
        Self(session)
    }

    #[inline]
    pub(crate) fn get(&self) -> &S {
        self.0
    }

    pub(crate) fn get_mut(&mut self) -> &mut S {
        self.0
    }

    /// Ends the borrow without an abort.
    #[inline]
    pub(crate) fn close(self) -> &'h mut S {
        let this = ManuallyDrop::new(self);
        // SAFETY: the reference is moved out of a value that is neither used nor dropped again.
        unsafe { ptr::read(&this.0) }
    }
}

impl<S: Session> Drop for Open<'_, S> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
