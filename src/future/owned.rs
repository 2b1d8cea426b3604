//! Futures without a handle: each poll uses the handle of the thread that it runs on.

use crate::bound::Room;
use crate::core::pool::{CheckedOut, Pool};
use crate::core::put::{Put, Register};
use crate::core::shared::Shared;
use crate::core::wait::{self, DONE};
use crate::core::{CellOf, Local};
use crate::order::Order;
use crate::wait::{WaitKind, WakeTarget};
use crate::{Fifo, PopError, PushError};
use std::fmt;
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
    queue: Option<Calls<T, O>>,
    /// Only if it has waited.
    waiter: Option<PooledWaiter<T, O>>,
}

impl<T, O: Order<T>> OwnedPop<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>) -> Self {
        Self {
            queue: Some(Calls::new(shared, pool)),
            waiter: None,
        }
    }
}

/// Nothing in it is pinned.
impl<T, O: Order<T>> Unpin for OwnedPop<T, O> {}

impl<T, O: Order<T>> Future for OwnedPop<T, O> {
    type Output = Result<T, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, waiter } = &mut *self;
        let calls = queue.as_ref().expect(DONE);
        let is_newcomer = waiter.is_none() && !calls.shared.word().is_serving();
        let look = || calls.call(|cell| cell.settled().pop_visible());
        let poll = if let Some(popped) = is_newcomer.then(look).flatten() {
            Poll::Ready(popped)
        } else {
            let mut user = waiter.get_or_insert_with(|| calls.waiter()).get_mut();
            let wake_target = WakeTarget::task(context.waker());
            let attempt = |_: &mut _| calls.call(|cell| cell.settled().pop_unless_empty());
            wait::wait_for_item(&mut user, &wake_target, attempt)
        };
        if poll.is_ready() {
            (self.queue, self.waiter) = (None, None);
        }
        poll
    }
}

/// Calls on a queue, each with the handle of the thread that it runs on.
struct Calls<T, O: Order<T>> {
    shared: Arc<Shared<T, O>>,
    pool: Arc<Pool<T, O>>,
}

impl<T, O: Order<T>> Calls<T, O> {
    fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
        }
    }

    fn call<R>(&self, call: impl FnOnce(&mut CellOf<T, O>) -> R) -> R {
        self.pool.call(call)
    }

    /// Whether newcomers leave the room that becomes free to a waiter.
    fn is_serving_pushes(&self) -> bool {
        let is_serving = |room: &Arc<Room>| room.wait_queue.word().is_serving();
        self.shared.room().is_some_and(is_serving)
    }

    fn waiter(&self) -> PooledWaiter<T, O> {
        PooledWaiter::new(self.pool.check_out())
    }
}

/// A handle of the pool, to wait with. It waits no more when this is dropped.
struct PooledWaiter<T, O: Order<T>>(CheckedOut<T, O>);

impl<T, O: Order<T>> PooledWaiter<T, O> {
    fn new(mut cell: CheckedOut<T, O>) -> Self {
        cell.begin_waiting();
        Self(cell)
    }

    fn get_mut(&mut self) -> &mut Local<T, O> {
        self.0.get_mut()
    }
}

impl<T, O: Order<T>> Drop for PooledWaiter<T, O> {
    fn drop(&mut self) {
        self.0.end_waiting();
    }
}

/// The future of [`Queue::push_async`](crate::Queue::push_async). It borrows nothing, so it may outlive the
/// [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPush<T, O: Order<T> = Fifo> {
    queue: Option<Calls<T, O>>,
    /// Only if it has waited.
    waiter: Option<PooledWaiter<T, O>>,
    item: Option<T>,
}

impl<T, O: Order<T>> OwnedPush<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>, item: T) -> Self {
        Self {
            queue: Some(Calls::new(shared, pool)),
            waiter: None,
            item: Some(item),
        }
    }
}

impl<T, O: Order<T>> OwnedPush<T, O> {
    /// Polls for room, and pushes the item as it is registered.
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<(), PushError<T>>> {
        let Self {
            queue,
            waiter,
            item,
        } = self;
        let calls = queue.as_ref().expect(DONE);
        let at_once = waiter.is_none() && !calls.is_serving_pushes();
        let attempt = |item: &mut Option<T>| {
            calls.call(|cell| cell.settled().put_unless_full(item, &register))
        };
        let poll = if let Some(pushed) = at_once.then(|| attempt(item)).flatten() {
            Poll::Ready(pushed)
        } else {
            let mut user = waiter.get_or_insert_with(|| calls.waiter()).get_mut();
            let wake_target = WakeTarget::task(context.waker());
            let poll = if user.is_worth_waiting(item.as_slice()) {
                let attempt = |_: &mut _| attempt(item);
                wait::poll_room(&mut user, WaitKind::One, &wake_target, attempt).map(Some)
            } else {
                Poll::Ready(attempt(item))
            };
            let full = || Err(PushError::Full(item.take().expect(DONE)));
            poll.map(|pushed| pushed.unwrap_or_else(full))
        };
        if poll.is_ready() {
            (*queue, *waiter) = (None, None);
        }
        poll
    }
}

/// The item is never pinned.
impl<T, O: Order<T>> Unpin for OwnedPush<T, O> {}

impl<T, O: Order<T>> Future for OwnedPush<T, O> {
    type Output = Result<(), PushError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}

/// The future of [`Queue::push_batch_async`](crate::Queue::push_batch_async). It borrows nothing, so it may outlive
/// the [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPushBatch<T, O: Order<T> = Fifo> {
    queue: Option<Calls<T, O>>,
    /// Only if it has waited. Then it also pushes the items, since it has gathered the room for them.
    waiter: Option<PooledWaiter<T, O>>,
    items: Option<Vec<T>>,
}

impl<T, O: Order<T>> OwnedPushBatch<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>, items: Vec<T>) -> Self {
        Self {
            queue: Some(Calls::new(shared, pool)),
            waiter: None,
            items: Some(items),
        }
    }
}

impl<T, O: Order<T>> OwnedPushBatch<T, O> {
    /// As `poll_as` of [`PushBatchAsync`](super::PushBatchAsync).
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<usize, PushError<Vec<T>>>> {
        let Self {
            queue,
            waiter,
            items,
        } = self;
        let calls = queue.as_ref().expect(DONE);
        let at_once = waiter.is_none() && !calls.is_serving_pushes();
        let push = || calls.call(|cell| cell.settled().put_unless_full(items, &register));
        let poll = if let Some(pushed) = at_once.then(push).flatten() {
            Poll::Ready(pushed)
        } else {
            let mut user = waiter.get_or_insert_with(|| calls.waiter()).get_mut();
            let wake_target = WakeTarget::task(context.waker());
            Local::poll_put(&mut user, items, Put::Publish, &wake_target, register)
        };
        if poll.is_ready() {
            (*queue, *waiter) = (None, None);
        }
        poll
    }
}

/// The items are never pinned.
impl<T, O: Order<T>> Unpin for OwnedPushBatch<T, O> {}

impl<T, O: Order<T>> Future for OwnedPushBatch<T, O> {
    type Output = Result<usize, PushError<Vec<T>>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}

macro_rules! debug_owned {
    ($($future:ident)+) => {
        $(impl<T, O: Order<T>> fmt::Debug for $future<T, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        })+
    };
}

debug_owned!(OwnedPop OwnedPush OwnedPushBatch);
