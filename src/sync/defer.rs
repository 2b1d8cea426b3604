//! What is to run at the end of a scope, also when user code panics in it.

use std::mem;
use std::ops::{Deref, DerefMut};

/// Runs something with a value when it is dropped.
#[must_use = "it runs when this is dropped"]
pub(crate) struct Defer<V, F: FnMut(&mut V)> {
    value: V,
    run: F,
}

/// Runs `run` when it is dropped.
pub(crate) fn defer(mut run: impl FnMut()) -> Defer<(), impl FnMut(&mut ())> {
    defer_with((), move |()| run())
}

/// Runs `run` with the value when it is dropped, and lends it out until then.
pub(crate) fn defer_with<V, F: FnMut(&mut V)>(value: V, run: F) -> Defer<V, F> {
    Defer { value, run }
}

impl<V, F: FnMut(&mut V)> Defer<V, F> {
    /// Runs nothing after all, and forgets the value.
    pub(crate) fn cancel(self) {
        mem::forget(self);
    }
}

impl<V, F: FnMut(&mut V)> Drop for Defer<V, F> {
    fn drop(&mut self) {
        (self.run)(&mut self.value);
    }
}

impl<V, F: FnMut(&mut V)> Deref for Defer<V, F> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V, F: FnMut(&mut V)> DerefMut for Defer<V, F> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.value
    }
}
