//! The future that waits for a queue to be idle.

use crate::core::shared::Shared;
use crate::core::wait::DONE;
use crate::order::Order;
use crate::wait::{Waiter, WakeTarget};
use crate::Fifo;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The future of [`Queue::wait_idle_async`](crate::Queue::wait_idle_async). It borrows nothing, so it may outlive the
/// [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct WaitIdle<T, O: Order<T> = Fifo> {
    shared: Option<Arc<Shared<T, O>>>,
    waiter: Waiter,
}

impl<T, O: Order<T>> WaitIdle<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>) -> Self {
        Self {
            shared: Some(Arc::clone(shared)),
            waiter: Waiter::default(),
        }
    }

    fn end(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.waiter.release(shared.idle_waiters());
        }
    }
}

impl<T, O: Order<T>> Future for WaitIdle<T, O> {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { shared, waiter } = &mut *self;
        let wake_target = WakeTarget::task(context.waker());
        let poll = shared.as_ref().expect(DONE).poll_idle(waiter, &wake_target);
        if poll.is_ready() {
            self.end();
        }
        poll
    }
}

impl<T, O: Order<T>> Drop for WaitIdle<T, O> {
    fn drop(&mut self) {
        self.end();
    }
}

debug_opaque!([T, O: Order<T>] WaitIdle<T, O>, "WaitIdle");
