//! Panics of user code.

use std::any::Any;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs another user's code, such as a waiter's waker: false if it panicked. The panic must not reach a
/// caller that publishes, or that has taken items.
pub(crate) fn swallow_panic(run: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(drop_payload)
        .is_ok()
}

/// Drops what a panic carried, whose destructor may panic too.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
}
