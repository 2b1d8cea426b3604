//! Panics of user code.

use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs another user's code, such as a waiter's waker: false if it panicked. The panic must not reach a
/// caller that publishes, or that has taken items.
pub(crate) fn swallow_panic(run: impl FnOnce()) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
        return true;
    };
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
    false
}
