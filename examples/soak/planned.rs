//! Panics on purpose.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// The payload of a panic on purpose.
struct Planned;

/// Panics, and prints nothing.
pub(crate) fn panic() -> ! {
    resume_unwind(Box::new(Planned))
}

/// Runs `call`. `false` if it panicked on purpose; other panics go on.
pub(crate) fn survives(call: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(()) => true,
        Err(payload) if payload.is::<Planned>() => false,
        Err(payload) => resume_unwind(payload),
    }
}
