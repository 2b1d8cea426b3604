//! Panics of futures.

use std::any::Any;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

/// A future whose output is its result or its panic, also a panic of its destructor: it is dropped when it has ended.
pub(super) struct Caught<F>(Option<Pin<Box<F>>>);

impl<F: Future> Caught<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = thread::Result<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let future = &mut self.0;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let poll = future
                .as_mut()
                .expect("not ended yet")
                .as_mut()
                .poll(context);
            if poll.is_ready() {
                drop(future.take());
            }
            poll
        }));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(payload) => {
                let dropped = AssertUnwindSafe(|| drop(future.take()));
                let _ = catch_unwind(dropped).map_err(std::mem::forget);
                Poll::Ready(Err(payload))
            }
        }
    }
}

/// The text of a panic payload.
pub(crate) fn text_of_panic(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text").into()
}
