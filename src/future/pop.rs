//! Futures that wait for items, and the one that waits for an idle queue.

use super::{waiting, User};
use crate::core::pool::{CheckedOut, Pool};
use crate::core::pop_batch::Batch;
use crate::core::shared::Shared;
use crate::core::wait::DONE;
use crate::core::{CellOf, Local};
use crate::item::Items;
use crate::order::Order;
use crate::raw::{Borrow, Gathering};
use crate::wait::{Waiter, WakeTarget};
use crate::{Delivery, Fifo, Item, PopError};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The future of [`Handle::pop_async`](crate::Handle::pop_async).
///
/// # Panics
///
/// If it is polled after completion.
// Written by hand: made by `future!` it needs 414 instead of 385 instructions for a wait, and 497 if it also leaves the wait
// queue once more.
#[must_use = "a future does nothing unless it is awaited"]
pub struct TakeAsync<'h, T, O: Order<T> = Fifo>(Option<&'h mut CellOf<T, O>>);

impl<'h, T, O: Order<T>> TakeAsync<'h, T, O> {
    pub(crate) fn new(cell: &'h mut CellOf<T, O>) -> Self {
        cell.begin_waiting();
        Self(Some(cell))
    }

    /// Polls for an item where none was found at once.
    #[inline(never)]
    fn wait(&mut self, context: &Context<'_>) -> Poll<Result<T, PopError>> {
        let cell = self.0.as_mut().expect(DONE);
        let wake_target = WakeTarget::task(context.waker());
        let Poll::Ready(popped) = cell.get_mut().wait_to_pop(&wake_target) else {
            return Poll::Pending;
        };
        cell.end_ready();
        self.0 = None;
        Poll::Ready(popped)
    }
}

impl<T, O: Order<T>> Future for TakeAsync<'_, T, O> {
    type Output = Result<T, PopError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let cell = self.0.take().expect(DONE);
        let Some(stored) = cell.get_mut().claim_at_once() else {
            self.0 = Some(cell);
            return self.wait(context);
        };
        cell.end_ready();
        cell.get_mut()
            .deliver_at_once(stored, |item| Poll::Ready(Ok(item)))
    }
}

impl<T, O: Order<T>> Drop for TakeAsync<'_, T, O> {
    fn drop(&mut self) {
        if let Some(cell) = &mut self.0 {
            cell.end_waiting();
        }
    }
}

debug_struct!([T, O: Order<T>] TakeAsync<'_, T, O>);

future! {
    /// The future of `pop_batch_async` and `pop_batch_timeout_async` of [`Handle`](crate::Handle::pop_batch_async) and
    /// [`Queue`](crate::Queue::pop_batch_async).
    TakeBatchAsync<'i, T, O>(TakingBatch<'i, T, O>) -> usize
}

pub(crate) struct TakingBatch<'i, T, O: Order<T>> {
    pub(crate) user: User<'i, T, O>,
    pub(crate) batch: Batch,
    pub(crate) items: &'i mut Vec<T>,
}

impl<T, O: Order<T>> TakingBatch<'_, T, O> {
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<usize> {
        let Self { user, batch, items } = self;
        let poll = user.local().poll_pop_batch(wake_target, batch, items);
        poll.map(|()| batch.taken())
    }
}

future! {
    /// The future of [`Transaction::pop_async`](crate::Transaction::pop_async).
    PopAsync<'t, T, O>(Borrowing<'t, T, O>) -> Result<Item<'t, T>, PopError>
}

/// A transaction borrowed by a future.
pub(crate) struct Borrowing<'t, T, O: Order<T>>(pub(crate) Borrow<'t, Local<T, O>>);

impl<'t, T, O: Order<T>> Borrowing<'t, T, O> {
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<Item<'t, T>, PopError>> {
        let held = self.0.poll_pop(Some(wake_target), false);
        held.map(|held| held.map(Item::new))
    }
}

impl<T, O: Order<T>> Drop for Borrowing<'_, T, O> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}

future! {
    /// The future of [`Transaction::pop_batch_async`](crate::Transaction::pop_batch_async) and
    /// [`Transaction::pop_batch_timeout_async`](crate::Transaction::pop_batch_timeout_async).
    PopBatchAsync<'t, T, O>(HoldingBatch<'t, T, O>) -> Items<'t, T, O>
}

pub(crate) struct HoldingBatch<'t, T, O: Order<T>> {
    pub(crate) gathering: Gathering<'t, Local<T, O>>,
    pub(crate) batch: Batch,
}

impl<'t, T, O: Order<T>> HoldingBatch<'t, T, O> {
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Items<'t, T, O>> {
        let Self { gathering, batch } = self;
        let poll = gathering.poll_pop_batch(wake_target, batch);
        poll.map(|()| Items::new(gathering.give_out()))
    }
}

impl<T, O: Order<T>> Drop for HoldingBatch<'_, T, O> {
    fn drop(&mut self) {
        self.gathering.stop_waiting();
    }
}

future! {
    /// The future of [`Queue::pop_async`](crate::Queue::pop_async). It borrows nothing, so it may outlive the
    /// [`Queue`](crate::Queue) it came from.
    OwnedPop<T, O>(OwnedPopping<T, O>) -> Result<T, PopError>
}

/// What a pop without a handle makes of an item.
pub(crate) trait Popped<T, O: Order<T>>: Sized {
    /// Takes one; `None` if waiting may help.
    fn attempt(local: &mut Local<T, O>) -> Option<Result<Self, PopError>>;
}

impl<T, O: Order<T>> Popped<T, O> for T {
    fn attempt(local: &mut Local<T, O>) -> Option<Result<T, PopError>> {
        local.pop_unless_empty()
    }
}

impl<T, O: Order<T>> Popped<T, O> for Delivery<T, O> {
    fn attempt(local: &mut Local<T, O>) -> Option<Result<Self, PopError>> {
        Some(local.take_unless_empty()?.map(Delivery))
    }
}

/// A pop without a handle: each attempt uses that of the thread that it runs on.
pub(crate) struct OwnedPopping<T, O: Order<T>, R = T> {
    pool: Arc<Pool<T, O>>,
    /// Only if it has waited.
    waiter: Option<CheckedOut<T, O>>,
    popped: PhantomData<fn() -> R>,
}

impl<T, O: Order<T>, R: Popped<T, O>> OwnedPopping<T, O, R> {
    pub(crate) fn new(pool: &Arc<Pool<T, O>>) -> Self {
        Self {
            pool: Arc::clone(pool),
            waiter: None,
            popped: PhantomData,
        }
    }

    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<R, PopError>> {
        let pool = &self.pool;
        if self.waiter.is_none() && !pool.shared().word().is_serving() {
            let visible = |cell: &mut CellOf<T, O>| cell.settled().take_visible(R::attempt);
            if let Some(popped) = pool.call(visible) {
                return Poll::Ready(popped);
            }
        }
        let waiter = self.waiter.get_or_insert_with(|| waiting(pool));
        waiter.get_mut().poll_item_slowly(wake_target, |_| {
            pool.call(|cell| R::attempt(cell.settled()))
        })
    }
}

future! {
    /// The future of [`Queue::take_async`](crate::Queue::take_async). It borrows nothing, so it may outlive the
    /// [`Queue`](crate::Queue) it came from.
    QueueTake<T, O>(OwnedPopping<T, O, Delivery<T, O>>) -> Result<Delivery<T, O>, PopError>
}

future! {
    /// The future of [`Queue::wait_idle_async`](crate::Queue::wait_idle_async). It borrows nothing, so it may outlive the
    /// [`Queue`](crate::Queue) it came from.
    WaitIdle<T, O>(WaitingIdle<T, O>) -> ()
}

pub(crate) struct WaitingIdle<T, O: Order<T>> {
    shared: Arc<Shared<T, O>>,
    waiter: Waiter,
}

impl<T, O: Order<T>> WaitingIdle<T, O> {
    pub(crate) fn new(shared: &Arc<Shared<T, O>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            waiter: Waiter::default(),
        }
    }

    pub(crate) fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<()> {
        self.shared.poll_idle(&mut self.waiter, wake_target)
    }
}

impl<T, O: Order<T>> Drop for WaitingIdle<T, O> {
    fn drop(&mut self) {
        self.waiter.release(self.shared.idle_waiters());
    }
}
