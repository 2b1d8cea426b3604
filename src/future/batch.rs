//! The future of a batch that waits for room in a transaction.

use super::Borrowing;
use crate::core::put::{Put, Register};
use crate::core::shared::Shared;
use crate::core::wait::DONE;
use crate::core::Local;
use crate::order::Order;
use crate::raw::Borrow;
use crate::wait::WakeTarget;
use crate::{Fifo, PushError};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of [`Transaction::push_batch_async`](crate::Transaction::push_batch_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct StageBatchAsync<'t, T, O: Order<T> = Fifo> {
    borrowing: Option<Borrowing<'t, T, O>>,
    items: Option<Vec<T>>,
}

impl<'t, T, O: Order<T>> StageBatchAsync<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>, items: Vec<T>) -> Self {
        Self {
            borrowing: Some(Borrowing::new(local)),
            items: Some(items),
        }
    }
}

impl<T, O: Order<T>> StageBatchAsync<'_, T, O> {
    /// Polls for room, and stages the items as they are registered.
    #[track_caller]
    pub(crate) fn poll_as(
        &mut self,
        context: &Context<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<usize, PushError<Vec<T>>>> {
        let Self { borrowing, items } = self;
        let Borrowing { local } = borrowing.as_mut().expect(DONE);
        let wake_target = WakeTarget::task(context.waker());
        let poll = Local::poll_put(local, items, Put::Stage, &wake_target, register);
        if poll.is_ready() {
            *borrowing = None;
        }
        poll
    }
}

/// The items are never pinned.
impl<T, O: Order<T>> Unpin for StageBatchAsync<'_, T, O> {}

impl<T, O: Order<T>> Future for StageBatchAsync<'_, T, O> {
    type Output = Result<usize, PushError<Vec<T>>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_as(context, Shared::register)
    }
}
