//! Panics of code that is not this crate's.

use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs user code of somebody else, as a waiter's waker: false if it panicked. Whoever publishes, or
/// has something in hand, is not to suffer for it.
pub(crate) fn swallow_panic(run: impl FnOnce()) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
        return true;
    };
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
    false
}
