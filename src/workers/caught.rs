//! Panics of futures.

use crate::sync::swallow_panic;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

/// A future whose output is its result or its panic, also a panic of its destructor: it is dropped when it has ended.
pub(super) struct Caught<F>(Option<F>);

impl<F> Caught<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(future))
    }
}

/// A future that is dropped early panics no more than one that ends.
impl<F> Drop for Caught<F> {
    fn drop(&mut self) {
        swallow_panic(|| drop(self.0.take()));
    }
}

impl<F: Future + Unpin> Future for Caught<F> {
    type Output = thread::Result<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self(future) = &mut *self;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let poll = Pin::new(future.as_mut().expect("not ended yet")).poll(context);
            if poll.is_ready() {
                drop(future.take());
            }
            poll
        }));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(payload) => {
                swallow_panic(|| drop(future.take()));
                Poll::Ready(Err(payload))
            }
        }
    }
}
