//! The futures of pushes that wait for room: of an item and of a batch, each by a handle, in a transaction, and without
//! either. Those of one kind are made from one text.

use super::owned::{Calls, PooledWaiter};
use super::Borrowing;
use crate::core::pool::Pool;
use crate::core::put::{Load, Put};
use crate::core::shared::Shared;
use crate::core::wait::{self, DONE};
use crate::core::{CellOf, Local};
use crate::order::{Order, PlaceOf};
use crate::raw::Borrow;
use crate::wait::{WaitKind, WakeTarget};
use crate::{Fifo, PushError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The implementations of a future.
macro_rules! push_future {
    ($($future:ident<$($lifetime:lifetime,)? T, O> of $load:ty: $pushed:ty)+) => { $(
        /// What is pushed is never pinned.
        impl<T, O: Order<T>> Unpin for $future<$($lifetime,)? T, O> {}

        impl<T, O: Order<T>> Future for $future<$($lifetime,)? T, O> {
            type Output = Result<$pushed, PushError<$load>>;

            #[track_caller]
            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                self.0.poll(&WakeTarget::task(context.waker()))
            }
        }

        impl<T, O: Order<T>> fmt::Debug for $future<$($lifetime,)? T, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        }
    )+ };
}

push_future! {
    PushAsync<'_, T, O> of T: ()
    PushBatchAsync<'_, T, O> of Vec<T>: usize
    StageAsync<'_, T, O> of T: ()
    StageBatchAsync<'_, T, O> of Vec<T>: usize
    OwnedPush<T, O> of T: ()
    OwnedPushBatch<T, O> of Vec<T>: usize
}

/// A push by a handle.
struct Pushing<'h, T, O: Order<T>, L> {
    cell: &'h mut CellOf<T, O>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<'h, T, O: Order<T>, L: Load<T, O>> Pushing<'h, T, O, L> {
    fn new(cell: &'h mut CellOf<T, O>, load: L, place: PlaceOf<T, O>) -> Self {
        cell.begin_waiting();
        let load = Some(load);
        Self { cell, load, place }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let (mut local, load) = (self.cell.get_mut(), &mut self.load);
        Local::poll_put(&mut local, load, Put::Publish, wake_target, self.place)
    }
}

impl<T, O: Order<T>, L> Drop for Pushing<'_, T, O, L> {
    fn drop(&mut self) {
        self.cell.end_waiting();
    }
}

/// The future of [`Handle::push_async`](crate::Handle::push_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushAsync<'h, T, O: Order<T> = Fifo>(Pushing<'h, T, O, T>);

impl<'h, T, O: Order<T>> PushAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>, item: T, place: PlaceOf<T, O>) -> Self {
        Self(Pushing::new(cell, item, place))
    }
}

/// The future of [`Handle::push_batch_async`](crate::Handle::push_batch_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushBatchAsync<'h, T, O: Order<T> = Fifo>(Pushing<'h, T, O, Vec<T>>);

impl<'h, T, O: Order<T>> PushBatchAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>, items: Vec<T>, place: PlaceOf<T, O>) -> Self {
        Self(Pushing::new(cell, items, place))
    }
}

/// A push in a transaction.
struct Staging<'t, T, O: Order<T>, L> {
    borrowing: Option<Borrowing<'t, T, O>>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<'t, T, O: Order<T>, L: Load<T, O>> Staging<'t, T, O, L> {
    fn new(local: Borrow<'t, Local<T, O>>, load: L, place: PlaceOf<T, O>) -> Self {
        Self {
            borrowing: Some(Borrowing::new(local)),
            load: Some(load),
            place,
        }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let Borrowing { local } = self.borrowing.as_mut().expect(DONE);
        let load = &mut self.load;
        let poll = Local::poll_put(local, load, Put::Stage, wake_target, self.place);
        if poll.is_ready() {
            self.borrowing = None;
        }
        poll
    }
}

/// The future of [`Transaction::push_async`](crate::Transaction::push_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct StageAsync<'t, T, O: Order<T> = Fifo>(Staging<'t, T, O, T>);

impl<'t, T, O: Order<T>> StageAsync<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>, item: T, place: PlaceOf<T, O>) -> Self {
        Self(Staging::new(local, item, place))
    }

    /// Ends the wait, and returns the item, unless it was pushed.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn end(&mut self) -> Option<T> {
        self.0.borrowing = None;
        self.0.load.take()
    }
}

/// The future of [`Transaction::push_batch_async`](crate::Transaction::push_batch_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct StageBatchAsync<'t, T, O: Order<T> = Fifo>(Staging<'t, T, O, Vec<T>>);

impl<'t, T, O: Order<T>> StageBatchAsync<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>, items: Vec<T>, place: PlaceOf<T, O>) -> Self {
        Self(Staging::new(local, items, place))
    }
}

/// A push without a handle.
struct OwnedPushing<T, O: Order<T>, L> {
    queue: Option<Calls<T, O>>,
    /// Only if it has waited.
    waiter: Option<PooledWaiter<T, O>>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<T, O: Order<T>, L: Load<T, O>> OwnedPushing<T, O, L> {
    fn new(
        shared: &Arc<Shared<T, O>>,
        pool: &Arc<Pool<T, O>>,
        load: L,
        place: PlaceOf<T, O>,
    ) -> Self {
        Self {
            queue: Some(Calls::new(shared, pool)),
            waiter: None,
            load: Some(load),
            place,
        }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let Self {
            queue,
            waiter,
            load,
            place,
        } = self;
        let calls = queue.as_ref().expect(DONE);
        let attempt =
            |load: &mut Option<L>| calls.call(|cell| cell.settled().put_unless_full(load, *place));
        let at_once = waiter.is_none() && !calls.is_serving_pushes();
        let poll = if let Some(pushed) = at_once.then(|| attempt(load)).flatten() {
            Poll::Ready(pushed)
        } else {
            let mut user = waiter.get_or_insert_with(|| calls.waiter()).get_mut();
            let items = load.as_ref().expect(DONE).as_slice();
            if L::KIND == WaitKind::One && user.is_worth_waiting(items) {
                let attempt = |_: &mut _| attempt(load);
                wait::poll_room(&mut user, L::KIND, wake_target, attempt)
            } else {
                // The waiter also pushes a batch, since it has gathered the room for it.
                Local::poll_put(&mut user, load, Put::Publish, wake_target, *place)
            }
        };
        if poll.is_ready() {
            (*queue, *waiter) = (None, None);
        }
        poll
    }
}

/// The future of [`Queue::push_async`](crate::Queue::push_async). It borrows nothing, so it may outlive the
/// [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPush<T, O: Order<T> = Fifo>(OwnedPushing<T, O, T>);

impl<T, O: Order<T>> OwnedPush<T, O> {
    pub(crate) fn new(
        shared: &Arc<Shared<T, O>>,
        pool: &Arc<Pool<T, O>>,
        item: T,
        place: PlaceOf<T, O>,
    ) -> Self {
        Self(OwnedPushing::new(shared, pool, item, place))
    }
}

/// The future of [`Queue::push_batch_async`](crate::Queue::push_batch_async). It borrows nothing, so it may outlive
/// the [`Queue`](crate::Queue) it came from.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPushBatch<T, O: Order<T> = Fifo>(OwnedPushing<T, O, Vec<T>>);

impl<T, O: Order<T>> OwnedPushBatch<T, O> {
    pub(crate) fn new(
        shared: &Arc<Shared<T, O>>,
        pool: &Arc<Pool<T, O>>,
        items: Vec<T>,
        place: PlaceOf<T, O>,
    ) -> Self {
        Self(OwnedPushing::new(shared, pool, items, place))
    }
}
