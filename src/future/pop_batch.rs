//! Futures of batches that wait for items: popped, or held by a transaction.

use crate::core::pool::CheckedOut;
use crate::core::pop_batch::Batch;
use crate::core::wait::DONE;
use crate::core::{CellOf, Local};
use crate::item::Items;
use crate::order::Order;
use crate::raw::{Borrow, Gathering};
use crate::wait::WakeTarget;
use crate::Fifo;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The cell of a handle, or one made for this future.
pub(crate) enum AnyCell<'h, T, O: Order<T>> {
    Borrowed(&'h mut CellOf<T, O>),
    Own(CheckedOut<T, O>),
}

impl<T, O: Order<T>> AnyCell<'_, T, O> {
    fn get(&mut self) -> &mut CellOf<T, O> {
        match self {
            Self::Borrowed(cell) => cell,
            Self::Own(cell) => cell,
        }
    }
}

/// The future of `pop_batch_async` and `pop_batch_timeout_async` of [`Handle`](crate::Handle::pop_batch_async) and
/// [`Queue`](crate::Queue::pop_batch_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct TakeBatchAsync<'i, T, O: Order<T> = Fifo> {
    cell: Option<AnyCell<'i, T, O>>,
    batch: Batch,
    items: &'i mut Vec<T>,
}

impl<'i, T, O: Order<T>> TakeBatchAsync<'i, T, O> {
    pub(crate) fn new(mut cell: AnyCell<'i, T, O>, batch: Batch, items: &'i mut Vec<T>) -> Self {
        cell.get().begin_waiting();
        let cell = Some(cell);
        Self { cell, batch, items }
    }
}

impl<T, O: Order<T>> Future for TakeBatchAsync<'_, T, O> {
    type Output = usize;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let this = &mut *self;
        let cell = this.cell.as_mut().expect(DONE).get();
        let wake_target = WakeTarget::task(context.waker());
        let local = cell.get_mut();
        let poll = local.poll_pop_batch(&wake_target, &mut this.batch, this.items);
        if poll.is_ready() {
            cell.end_waiting();
            this.cell = None;
        }
        poll.map(|()| this.batch.taken())
    }
}

impl<T, O: Order<T>> Drop for TakeBatchAsync<'_, T, O> {
    fn drop(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.get().end_waiting();
        }
    }
}

/// The future of [`Transaction::pop_batch_async`](crate::Transaction::pop_batch_async) and
/// [`Transaction::pop_batch_timeout_async`](crate::Transaction::pop_batch_timeout_async).
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PopBatchAsync<'t, T, O: Order<T> = Fifo> {
    gathering: Option<Gathering<'t, Local<T, O>>>,
    batch: Batch,
}

impl<'t, T, O: Order<T>> PopBatchAsync<'t, T, O> {
    pub(crate) fn new(local: Borrow<'t, Local<T, O>>, batch: Batch) -> Self {
        let gathering = Some(local.gather());
        Self { gathering, batch }
    }

    /// Leaves the wait queue, gives the transaction back, and gives out what it holds of the batch.
    #[track_caller]
    fn end(&mut self) -> Items<'t, T, O> {
        let mut gathering = self.gathering.take().expect(DONE);
        gathering.stop_waiting();
        Items::new(gathering.give_out())
    }
}

impl<'t, T, O: Order<T>> Future for PopBatchAsync<'t, T, O> {
    type Output = Items<'t, T, O>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { gathering, batch } = &mut *self;
        let gathering = gathering.as_mut().expect(DONE);
        let poll = gathering.poll_pop_batch(&WakeTarget::task(context.waker()), batch);
        poll.map(|()| self.end())
    }
}

impl<T, O: Order<T>> Drop for PopBatchAsync<'_, T, O> {
    fn drop(&mut self) {
        if let Some(gathering) = &mut self.gathering {
            gathering.stop_waiting();
        }
    }
}
