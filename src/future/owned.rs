//! Futures without a handle: each poll uses the handle of the thread that it runs on.

use crate::bound::Room;
use crate::core::pool::{CheckedOut, Pool};
use crate::core::shared::Shared;
use crate::core::wait::{self, DONE};
use crate::core::Local;
use crate::order::Order;
use crate::wait::WakeTarget;
use crate::{Fifo, PopError};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The future of [`Queue::pop_async`](crate::Queue::pop_async). It borrows nothing, so it may outlive the
/// [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPop<T, O: Order<T> = Fifo> {
    calls: Option<Calls<T, O>>,
}

impl<T, O: Order<T>> OwnedPop<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>) -> Self {
        let calls = Some(Calls::new(shared, pool));
        Self { calls }
    }
}

/// Nothing in it is pinned.
impl<T, O: Order<T>> Unpin for OwnedPop<T, O> {}

impl<T, O: Order<T>> Future for OwnedPop<T, O> {
    type Output = Result<T, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Calls {
            shared,
            pool,
            waiter,
        } = self.calls.as_mut().expect(DONE);
        let is_newcomer = waiter.is_none() && !shared.word().is_serving();
        let look = || pool.call(|cell| cell.settled().pop_visible());
        let poll = if let Some(popped) = is_newcomer.then(look).flatten() {
            Poll::Ready(popped)
        } else {
            let mut user = waiter
                .get_or_insert_with(|| PooledWaiter::new(pool))
                .get_mut();
            let wake_target = WakeTarget::task(context.waker());
            let attempt = |_: &mut _| pool.call(|cell| cell.settled().pop_unless_empty());
            wait::wait_for_item(&mut user, &wake_target, attempt)
        };
        if poll.is_ready() {
            self.calls = None;
        }
        poll
    }
}

/// Calls on a queue, each with the handle of the thread that it runs on.
pub(super) struct Calls<T, O: Order<T>> {
    shared: Arc<Shared<T, O>>,
    pub(super) pool: Arc<Pool<T, O>>,
    /// Only if it has waited.
    pub(super) waiter: Option<PooledWaiter<T, O>>,
}

impl<T, O: Order<T>> Calls<T, O> {
    pub(super) fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
            waiter: None,
        }
    }

    /// Whether newcomers leave the room that becomes free to a waiter.
    pub(super) fn is_serving_pushes(&self) -> bool {
        let is_serving = |room: &Arc<Room>| room.wait_queue.word().is_serving();
        self.shared.room().is_some_and(is_serving)
    }
}

/// A handle of the pool, to wait with. It waits no more when this is dropped.
pub(super) struct PooledWaiter<T, O: Order<T>>(CheckedOut<T, O>);

impl<T, O: Order<T>> PooledWaiter<T, O> {
    pub(super) fn new(pool: &Arc<Pool<T, O>>) -> Self {
        let mut cell = pool.check_out();
        cell.begin_waiting();
        Self(cell)
    }

    pub(super) fn get_mut(&mut self) -> &mut Local<T, O> {
        self.0.get_mut()
    }
}

impl<T, O: Order<T>> Drop for PooledWaiter<T, O> {
    fn drop(&mut self) {
        self.0.end_waiting();
    }
}

debug_opaque!([T, O: Order<T>] OwnedPop<T, O>, "OwnedPop");
