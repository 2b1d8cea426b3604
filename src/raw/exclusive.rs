//! A value that only its owner uses.

/// Gives access by `&mut` only, so that sharing it gives none: [`Sync`] whatever it holds.
pub(crate) struct Exclusive<T>(T);

// SAFETY: a shared reference to it leads to nothing: its only field is private, and its methods take it by
// `&mut` or by value.
unsafe impl<T> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    pub(crate) fn into_inner(self) -> T {
        self.0
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
