//! A value that is only accessible by exclusive reference.

/// Gives access by `&mut` only, and is therefore [`Sync`] for every `T`.
pub(crate) struct Exclusive<T>(T);

// SAFETY: a shared reference gives no access: the only field is private, and the methods take `&mut self` or `self`.
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
