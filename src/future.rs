//! Futures that wait for an item or for room: of queues, handles and transactions.
//!
//! They are `Send` if the items are, cancel safe, and need no particular runtime: see
//! [Waiting](crate::guide::waiting#cancel-safety). Their types need to be named only to store a future in a field.

// The waiter of a future is stored in its handle. It leaves the wait queue when the future is ready or dropped; the
// next use of the handle removes the waiter of a forgotten future.

mod batch;
mod idle;
mod owned;
mod pop_batch;

pub use batch::StageBatchAsync;
pub use idle::WaitIdle;
pub use owned::{OwnedPop, OwnedPush, OwnedPushBatch};
pub(crate) use pop_batch::AnyCell;
pub use pop_batch::{PopBatchAsync, TakeBatchAsync};

use crate::core::put::{Put, Register};
use crate::core::shared::Shared;
use crate::core::wait::DONE;
use crate::core::{CellOf, Local};
use crate::order::Order;
use crate::raw::Borrow;
use crate::wait::WakeTarget;
use crate::{Fifo, Item, PopError, PushError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of [`Handle::pop_async`](crate::Handle::pop_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct TakeAsync<'h, T, O: Order<T> = Fifo> {
    cell: Option<&'h mut CellOf<T, O>>,
}

impl<'h, T, O: Order<T>> TakeAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>) -> Self {
        cell.begin_waiting();
        Self { cell: Some(cell) }
    }
}

impl<T, O: Order<T>> TakeAsync<'_, T, O> {
    /// Polls for an item where none was found at once.
    #[inline(never)]
    fn wait(&mut self, context: &Context<'_>) -> Poll<Result<T, PopError>> {
        let cell = self.cell.as_mut().expect(DONE);
        let wake_target = WakeTarget::task(context.waker());
        let Poll::Ready(popped) = cell.get_mut().wait_to_pop(&wake_target) else {
            return Poll::Pending;
        };
        cell.end_ready();
        self.cell = None;
        Poll::Ready(popped)
    }
}

impl<T, O: Order<T>> Future for TakeAsync<'_, T, O> {
    type Output = Result<T, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let cell = self.cell.take().expect(DONE);
        let Some(stored) = cell.get_mut().claim_at_once() else {
            self.cell = Some(cell);
            return self.wait(context);
        };
        cell.end_ready();
        cell.get_mut()
            .deliver_at_once(stored, |item| Poll::Ready(Ok(item)))
    }
}

impl<T, O: Order<T>> Drop for TakeAsync<'_, T, O> {
    fn drop(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.end_waiting();
        }
    }
}

/// The future of [`Handle::push_async`](crate::Handle::push_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushAsync<'h, T, O: Order<T> = Fifo> {
    cell: &'h mut CellOf<T, O>,
    item: Option<T>,
}

impl<'h, T, O: Order<T>> PushAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>, item: T) -> Self {
        cell.begin_waiting();
        let item = Some(item);
        Self { cell, item }
    }
}

impl<T, O: Order<T>> PushAsync<'_, T, O> {
    /// Polls for room, and pushes the item as it is registered.
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<(), PushError<T>>> {
        let Self { cell, item } = self;
        let wake_target = WakeTarget::task(context.waker());
        Local::poll_put(
            &mut cell.get_mut(),
            item,
            Put::Publish,
            &wake_target,
            register,
        )
    }
}

/// The item is never pinned.
impl<T, O: Order<T>> Unpin for PushAsync<'_, T, O> {}

impl<T, O: Order<T>> Future for PushAsync<'_, T, O> {
    type Output = Result<(), PushError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}

impl<T, O: Order<T>> Drop for PushAsync<'_, T, O> {
    fn drop(&mut self) {
        self.cell.end_waiting();
    }
}

/// The future of [`Handle::push_batch_async`](crate::Handle::push_batch_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushBatchAsync<'h, T, O: Order<T> = Fifo> {
    cell: &'h mut CellOf<T, O>,
    items: Option<Vec<T>>,
}

impl<'h, T, O: Order<T>> PushBatchAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>, items: Vec<T>) -> Self {
        cell.begin_waiting();
        let items = Some(items);
        Self { cell, items }
    }
}

impl<T, O: Order<T>> PushBatchAsync<'_, T, O> {
    /// Polls for room, and pushes the items as they are registered.
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<usize, PushError<Vec<T>>>> {
        let Self { cell, items } = self;
        let wake_target = WakeTarget::task(context.waker());
        Local::poll_put(
            &mut cell.get_mut(),
            items,
            Put::Publish,
            &wake_target,
            register,
        )
    }
}

impl<T, O: Order<T>> Unpin for PushBatchAsync<'_, T, O> {}

impl<T, O: Order<T>> Future for PushBatchAsync<'_, T, O> {
    type Output = Result<usize, PushError<Vec<T>>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}

impl<T, O: Order<T>> Drop for PushBatchAsync<'_, T, O> {
    fn drop(&mut self) {
        self.cell.end_waiting();
    }
}

/// A transaction borrowed by a future.
pub(crate) struct Borrowing<'t, T, O: Order<T>> {
    pub(crate) local: Borrow<'t, Local<T, O>>,
}

impl<'t, T, O: Order<T>> Borrowing<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>) -> Self {
        Self { local }
    }
}

impl<T, O: Order<T>> Drop for Borrowing<'_, T, O> {
    fn drop(&mut self) {
        self.local.stop_waiting();
    }
}

/// The future of [`Transaction::pop_async`](crate::Transaction::pop_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PopAsync<'t, T, O: Order<T> = Fifo> {
    borrowing: Option<Borrowing<'t, T, O>>,
}

impl<'t, T, O: Order<T>> PopAsync<'t, T, O> {
    #[track_caller]
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>) -> Self {
        let borrowing = Some(Borrowing::new(local));
        Self { borrowing }
    }
}

impl<'t, T, O: Order<T>> Future for PopAsync<'t, T, O> {
    type Output = Result<Item<'t, T>, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Borrowing { local } = self.borrowing.as_mut().expect(DONE);
        let poll = local.poll_pop(Some(&WakeTarget::task(context.waker())), false);
        if poll.is_ready() {
            self.borrowing = None;
        }
        poll.map(|held| held.map(Item::new))
    }
}

/// The future of [`Transaction::push_async`](crate::Transaction::push_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct StageAsync<'t, T, O: Order<T> = Fifo> {
    borrowing: Option<Borrowing<'t, T, O>>,
    item: Option<T>,
}

impl<'t, T, O: Order<T>> StageAsync<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>, item: T) -> Self {
        Self {
            borrowing: Some(Borrowing::new(local)),
            item: Some(item),
        }
    }
}

impl<T, O: Order<T>> StageAsync<'_, T, O> {
    /// Polls for room, and stages the item as it is registered.
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<(), PushError<T>>> {
        let Self { borrowing, item } = self;
        let Borrowing { local } = borrowing.as_mut().expect(DONE);
        let wake_target = WakeTarget::task(context.waker());
        let poll = Local::poll_put(local, item, Put::Stage, &wake_target, register);
        if poll.is_ready() {
            *borrowing = None;
        }
        poll
    }
}

impl<T, O: Order<T>> Unpin for StageAsync<'_, T, O> {}

impl<T, O: Order<T>> Future for StageAsync<'_, T, O> {
    type Output = Result<(), PushError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}

macro_rules! debug {
    ($($future:ident)+) => {
        $(impl<T, O: Order<T>> fmt::Debug for $future<'_, T, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        })+
    };
}

debug!(TakeAsync PushAsync PushBatchAsync PopAsync PopBatchAsync StageAsync StageBatchAsync TakeBatchAsync);
