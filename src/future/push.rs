//! The futures of pushes that wait for room: of an item and of a batch, each by a handle, in a transaction, and without
//! either.

use super::{waiting, User};
use crate::bound::Room;
use crate::core::pool::{CheckedOut, Pool};
use crate::core::put::{Load, Put, To};
use crate::core::wait::DONE;
use crate::core::weights::Weights;
use crate::order::Order;
use crate::wait::WakeTarget;
use crate::{Fifo, PushError};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

future! {
    /// The future of [`Handle::push_async`](crate::Handle::push_async).
    PushAsync<'h, T, O>(Pushing<'h, T, O, T>) -> Result<(), PushError<T>>
}

future! {
    /// The future of [`Handle::push_batch_async`](crate::Handle::push_batch_async).
    PushBatchAsync<'h, T, O>(Pushing<'h, T, O, Vec<T>>) -> Result<usize, PushError<Vec<T>>>
}

future! {
    /// The future of [`Transaction::push_async`](crate::Transaction::push_async).
    StageAsync<'t, T, O>(Pushing<'t, T, O, T>) -> Result<(), PushError<T>>
}

future! {
    /// The future of [`Transaction::push_batch_async`](crate::Transaction::push_batch_async).
    StageBatchAsync<'t, T, O>(Pushing<'t, T, O, Vec<T>>) -> Result<usize, PushError<Vec<T>>>
}

future! {
    /// The future of [`Queue::push_async`](crate::Queue::push_async). It borrows nothing, so it may outlive the
    /// [`Queue`](crate::Queue) it came from.
    OwnedPush<T, O>(OwnedPushing<T, O, T>) -> Result<(), PushError<T>>
}

future! {
    /// The future of [`Queue::push_batch_async`](crate::Queue::push_batch_async). It borrows nothing, so it may outlive
    /// the [`Queue`](crate::Queue) it came from.
    OwnedPushBatch<T, O>(OwnedPushing<T, O, Vec<T>>) -> Result<usize, PushError<Vec<T>>>
}

type PollPush<K, L> = Poll<Result<K, PushError<L>>>;

/// A push by a handle, or in a transaction.
pub(crate) struct Pushing<'u, T, O: Order<T>, L> {
    user: User<'u, T, O>,
    load: Option<L>,
    weights: Weights,
    to: To<T, O>,
}

impl<'u, T, O: Order<T>, L: Load<T, O>> Pushing<'u, T, O, L> {
    pub(crate) fn new(mut user: User<'u, T, O>, load: L, to: To<T, O>) -> Self {
        let weights = user.local().shared().weigh(load.as_slice());
        Self {
            user,
            load: Some(load),
            weights,
            to,
        }
    }

    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> PollPush<L::Pushed, L> {
        let (put, local) = (self.user.put(), self.user.local());
        let (load, weights) = (&mut self.load, &self.weights);
        local.poll_put(load, weights, put, wake_target, self.to)
    }
}

impl<T, O: Order<T>> StageAsync<'_, T, O> {
    /// Ends the wait, and returns the item, unless it was pushed.
    #[cfg(feature = "workers")]
    pub(crate) fn end(&mut self) -> Option<T> {
        self.0.take()?.load
    }
}

/// A push without a handle: each attempt uses that of the thread that it runs on.
pub(crate) struct OwnedPushing<T, O: Order<T>, L> {
    pool: Arc<Pool<T, O>>,
    /// Only if it has waited.
    waiter: Option<CheckedOut<T, O>>,
    load: Option<L>,
    weights: Weights,
    to: To<T, O>,
}

impl<T, O: Order<T>, L: Load<T, O>> OwnedPushing<T, O, L> {
    pub(crate) fn new(pool: &Arc<Pool<T, O>>, load: L, to: To<T, O>) -> Self {
        Self {
            pool: Arc::clone(pool),
            waiter: None,
            weights: pool.shared().weigh(load.as_slice()),
            load: Some(load),
            to,
        }
    }

    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> PollPush<L::Pushed, L> {
        let (pool, load, to) = (&self.pool, &mut self.load, self.to);
        let weights = &self.weights;
        let gathers = weights.gather(L::GATHERS);
        let attempt = |load: &mut Option<L>| {
            pool.call(|cell| cell.settled().put_unless_full(load, weights, to))
        };
        // Newcomers leave the room that becomes free to a waiter.
        let is_serving = |room: &Arc<Room>| room.wait_queue.word().is_serving();
        if self.waiter.is_none() && !pool.shared().room().is_some_and(is_serving) {
            if let Some(pushed) = attempt(load) {
                return Poll::Ready(pushed);
            }
        }
        let waiter = self.waiter.get_or_insert_with(|| waiting(pool));
        let user = waiter.get_mut();
        let room = user.worthwhile_room(load.as_ref().expect(DONE), weights);
        let by_thread = !gathers && pool.shared().unique().is_none();
        if let Some(room) = room.filter(|_| by_thread) {
            user.poll_room(&room, gathers, wake_target, |_| attempt(load))
        } else {
            // The waiter also pushes what gathers room, since it has that, and what waits for a key.
            user.poll_put(load, weights, Put::Publish, wake_target, to)
        }
    }
}
