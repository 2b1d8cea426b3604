//! Futures that wait for an item or for room: of queues, handles and transactions.
//!
//! They are `Send` if the items are, cancel safe, and need no particular runtime: see
//! [Waiting](crate::guide::waiting#cancel-safety). Their types need to be named only to store a future in a field.

// The waiter of a future is stored in its handle. It leaves the wait queue when the future is ready or dropped; the
// next use of the handle removes the waiter of a forgotten future.

mod idle;
mod owned;
mod pop_batch;
mod push;

pub use idle::WaitIdle;
pub use owned::OwnedPop;
pub(crate) use pop_batch::AnyCell;
pub use pop_batch::{PopBatchAsync, TakeBatchAsync};
pub use push::{OwnedPush, OwnedPushBatch, PushAsync, PushBatchAsync, StageAsync, StageBatchAsync};

use crate::core::wait::DONE;
use crate::core::{CellOf, Local};
use crate::order::Order;
use crate::raw::Borrow;
use crate::wait::WakeTarget;
use crate::{Fifo, Item, PopError};
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

/// A transaction borrowed by a future.
pub(crate) struct Borrowing<'t, T, O: Order<T>>(pub(crate) Borrow<'t, Local<T, O>>);

impl<T, O: Order<T>> Drop for Borrowing<'_, T, O> {
    fn drop(&mut self) {
        self.0.stop_waiting();
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
        let borrowing = Some(Borrowing(local));
        Self { borrowing }
    }
}

impl<'t, T, O: Order<T>> Future for PopAsync<'t, T, O> {
    type Output = Result<Item<'t, T>, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Borrowing(local) = self.borrowing.as_mut().expect(DONE);
        let poll = local.poll_pop(Some(&WakeTarget::task(context.waker())), false);
        if poll.is_ready() {
            self.borrowing = None;
        }
        poll.map(|held| held.map(Item::new))
    }
}

debug_opaque!([T, O: Order<T>] TakeAsync<'_, T, O>, "TakeAsync");
debug_opaque!([T, O: Order<T>] PopAsync<'_, T, O>, "PopAsync");
debug_opaque!([T, O: Order<T>] PopBatchAsync<'_, T, O>, "PopBatchAsync");
debug_opaque!([T, O: Order<T>] TakeBatchAsync<'_, T, O>, "TakeBatchAsync");
