//! Runs that fail, and panics of user code.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// A run that failed, for [`WorkersBuilder::on_error`](crate::WorkersBuilder::on_error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// The number of items that were given back.
    pub items: usize,
    /// How often one of them was delivered at most.
    pub attempts: u32,
    /// The `Debug` output of the error, or the message of the panic.
    pub error: String,
    /// Whether the run panicked.
    pub panicked: bool,
}

pub(super) type Hook = Arc<dyn Fn(&Failure) + Send + Sync>;

/// Runs code of users whose panics are ignored.
pub(super) fn swallow_panic(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// The text of an error.
pub(super) fn text_of(error: impl Debug) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| format!("{error:?}")));
    swallow_panic(|| drop(error));
    text.unwrap_or_else(|_| "an error whose `Debug` panics".to_owned())
}

pub(super) fn text_of_panic(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

/// Drops what was committed. Its destructor is code of users.
pub(super) fn drop_committed<R>(committed: R) {
    swallow_panic(|| drop(committed));
}
