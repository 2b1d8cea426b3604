//! Dropping items whose destructors may panic.

use crate::sync::defer_with;

/// Drops all values that `next` returns. If a destructor panics the others still run, and the panic
/// continues afterwards; `next` must leave its state consistent between calls.
pub(in crate::raw) fn drop_all<T>(next: impl FnMut() -> Option<T>) {
    let mut next = defer_with(next, |next| while next().is_some() {});
    while next().is_some() {}
}
