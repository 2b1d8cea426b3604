//! Guards that run a function at the end of a scope, also when user code panics in it.

use std::mem;

/// A guard that runs a function with a value when it is dropped.
#[must_use = "the function runs when this is dropped"]
pub(crate) struct Defer<V, F: FnMut(&mut V)> {
    value: V,
    run: F,
}

/// Returns a guard that runs `run` when it is dropped.
pub(crate) fn defer(mut run: impl FnMut()) -> Defer<(), impl FnMut(&mut ())> {
    defer_with((), move |()| run())
}

/// Returns a guard that dereferences to the value, and runs `run` with it when it is dropped.
pub(crate) fn defer_with<V, F: FnMut(&mut V)>(value: V, run: F) -> Defer<V, F> {
    Defer { value, run }
}

impl<V, F: FnMut(&mut V)> Defer<V, F> {
    /// Cancels the function, and forgets the value.
    pub(crate) fn cancel(self) {
        mem::forget(self);
    }
}

impl<V, F: FnMut(&mut V)> Drop for Defer<V, F> {
    fn drop(&mut self) {
        (self.run)(&mut self.value);
    }
}

deref!([V, F: FnMut(&mut V)] Defer<V, F> => V, |defer| &defer.value, &mut defer.value);
