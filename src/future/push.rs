//! The futures of pushes that wait for room: of an item and of a batch, each by a handle, in a transaction, and without
//! either.

use super::{waiting, User};
use crate::bound::Room;
use crate::core::later::{Items, Later};
use crate::core::pool::{CheckedOut, Pool};
use crate::core::put::Put;
use crate::core::shared::Shared;
use crate::core::wait::DONE;
use crate::core::weights::Weights;
use crate::order::{Order, PlaceOf, Terms};
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
    load: Option<Later<T, L>>,
    weights: Weights,
    place: PlaceOf<T, O>,
}

impl<'u, T, O: Order<T>, L: Items<T, O>> Pushing<'u, T, O, L> {
    pub(crate) fn new(
        mut user: User<'u, T, O>,
        load: L,
        (place, terms): (PlaceOf<T, O>, Terms),
    ) -> Self {
        let weights = user.local().shared().weigh(load.as_slice());
        let load = Some(Later::new(load, terms));
        Self {
            user,
            load,
            weights,
            place,
        }
    }

    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> PollPush<L::Pushed, L> {
        let (put, local) = (self.user.put(), self.user.local());
        let (load, weights) = (&mut self.load, &self.weights);
        let poll = local.poll_put(load, weights, put, wake_target, self.place);
        poll.map_err(|error| error.map(Later::into_load))
    }
}

impl<T, O: Order<T>> StageAsync<'_, T, O> {
    /// Ends the wait, and returns the item, unless it was pushed.
    #[cfg(feature = "workers")]
    pub(crate) fn end(&mut self) -> Option<T> {
        self.0.take()?.load.map(Later::into_load)
    }
}

/// A push without a handle: each attempt uses that of the thread that it runs on.
pub(crate) struct OwnedPushing<T, O: Order<T>, L> {
    shared: Arc<Shared<T, O>>,
    pool: Arc<Pool<T, O>>,
    /// Only if it has waited.
    waiter: Option<CheckedOut<T, O>>,
    load: Option<Later<T, L>>,
    weights: Weights,
    place: PlaceOf<T, O>,
}

impl<T, O: Order<T>, L: Items<T, O>> OwnedPushing<T, O, L> {
    pub(crate) fn new(
        shared: &Arc<Shared<T, O>>,
        pool: &Arc<Pool<T, O>>,
        load: L,
        (place, terms): (PlaceOf<T, O>, Terms),
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
            waiter: None,
            weights: shared.weigh(load.as_slice()),
            load: Some(Later::new(load, terms)),
            place,
        }
    }

    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> PollPush<L::Pushed, L> {
        let poll = self.poll_later(wake_target);
        poll.map_err(|error| error.map(Later::into_load))
    }

    fn poll_later(&mut self, wake_target: &WakeTarget<'_>) -> PollPush<L::Pushed, Later<T, L>> {
        let (pool, load, place) = (&self.pool, &mut self.load, self.place);
        let weights = &self.weights;
        let gathers = weights.gather(L::GATHERS);
        let attempt = |load: &mut Option<Later<T, L>>| {
            pool.call(|cell| cell.settled().put_unless_full(load, weights, place))
        };
        // Newcomers leave the room that becomes free to a waiter.
        let is_serving = |room: &Arc<Room>| room.wait_queue.word().is_serving();
        if self.waiter.is_none() && !self.shared.room().is_some_and(is_serving) {
            if let Some(pushed) = attempt(load) {
                return Poll::Ready(pushed);
            }
        }
        let waiter = self.waiter.get_or_insert_with(|| waiting(pool));
        let user = waiter.get_mut();
        let room = user.worthwhile_room(load.as_ref().expect(DONE), weights);
        let by_thread = !gathers && self.shared.unique().is_none();
        if let Some(room) = room.filter(|_| by_thread) {
            user.poll_room(&room, gathers, wake_target, |_| attempt(load))
        } else {
            // The waiter also pushes what gathers room, since it has that, and what waits for a key.
            user.poll_put(load, weights, Put::Publish, wake_target, place)
        }
    }
}
