//! Dropping items whose destructors may panic.

/// Drops all that `next` gives. When a destructor panics the others still run, and the panic goes
/// on afterwards; `next` must be consistent between calls.
pub(super) fn drop_all<T>(next: impl FnMut() -> Option<T>) {
    let mut rest = Rest(next);
    while let Some(item) = (rest.0)() {
        drop(item);
    }
}

struct Rest<T, F: FnMut() -> Option<T>>(F);

impl<T, F: FnMut() -> Option<T>> Drop for Rest<T, F> {
    fn drop(&mut self) {
        while let Some(item) = (self.0)() {
            drop(item);
        }
    }
}
