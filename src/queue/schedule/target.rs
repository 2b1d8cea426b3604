//! The targets of pushes with a time or a priority: a queue, a handle, or a transaction.

use crate::core::put::{Put, To};
use crate::core::shared::Shared;
use crate::core::Local;
use crate::future::{
    OwnedPush, OwnedPushBatch, OwnedPushing, PushAsync, PushBatchAsync, Pushing, StageAsync,
    StageBatchAsync, User,
};
use crate::order::Order;
use crate::{Handle, Queue, Transaction};

/// The target of a [`PushWith`](super::PushWith) view: a queue, a handle or a transaction. Sealed.
///
/// ```
/// use requeue::schedule::{PushTo, PushWith};
///
/// fn push_twice<P: PushTo<Item = u32> + Copy>(view: PushWith<P>, item: u32) {
///     for _ in 0..2 {
///         view.push(item).unwrap();
///     }
/// }
///
/// let queue = requeue::Queue::unbounded();
/// push_twice(queue.at(queue.now()), 7);
/// assert_eq!(queue.len(), 2);
/// ```
#[allow(private_bounds)] // sealed
pub trait PushTo: PushTarget {}

impl<P: PushTarget> PushTo for P {}

mod sealed {
    /// The associated types of a [`PushTo`](super::PushTo).
    pub trait Types {
        /// The type of the items.
        type Item: Send;
        /// The order of the queue.
        type Order: crate::order::Order<Self::Item>;
        /// The future of a push that waits for room.
        type Push;
        /// The future of a batch that waits for room.
        type PushBatch;
    }
}

/// The place of an item in the queue of a target, and its times.
pub(crate) type Destination<P> = To<<P as sealed::Types>::Item, <P as sealed::Types>::Order>;

/// The operations of a view on its target.
pub(crate) trait PushTarget: sealed::Types + Sized {
    const PUT: Put;

    /// Calls `inspect` with the shared state of the queue. Ends a forgotten transaction.
    #[track_caller]
    fn with_shared<R>(&mut self, inspect: impl FnOnce(&Shared<Self::Item, Self::Order>) -> R) -> R;

    /// Calls `put` with the handle that puts.
    #[track_caller]
    fn with_local<R>(self, put: impl FnOnce(&mut Local<Self::Item, Self::Order>) -> R) -> R;

    #[track_caller]
    fn push_async(self, item: Self::Item, to: Destination<Self>) -> Self::Push;

    #[track_caller]
    fn push_batch_async(self, items: Vec<Self::Item>, to: Destination<Self>) -> Self::PushBatch;
}

macro_rules! target {
    (
        $target:ty, $put:expr, $push:ty, $batch:ty,
        |$this:ident, $call:ident| $shared:expr, $local:expr, $attempt:ident[$($part:expr),+]
    ) => {
        impl<'t, T: Send, O: Order<T>> sealed::Types for $target {
            type Item = T;
            type Order = O;
            type Push = $push;
            type PushBatch = $batch;
        }

        impl<'t, T: Send, O: Order<T>> PushTarget for $target {
            const PUT: Put = $put;

            #[inline]
            fn with_shared<R>(&mut self, $call: impl FnOnce(&Shared<T, O>) -> R) -> R {
                let $this = self;
                $call($shared)
            }

            #[inline]
            fn with_local<R>(self, $call: impl FnOnce(&mut Local<T, O>) -> R) -> R {
                let $this = self;
                $local
            }

            fn push_async(self, item: T, to: To<T, O>) -> $push {
                let $this = self;
                <$push>::new($attempt::new($($part,)+ item, to))
            }

            fn push_batch_async(self, items: Vec<T>, to: To<T, O>) -> $batch {
                let $this = self;
                <$batch>::new($attempt::new($($part,)+ items, to))
            }
        }
    };
}

target! {
    &'t Queue<T, O>, Put::Publish, OwnedPush<T, O>, OwnedPushBatch<T, O>,
    |queue, put| queue.shared(), queue.call(|cell| put(cell.settled())), OwnedPushing[queue.pool()]
}

target! {
    &'t mut Handle<T, O>, Put::Publish, PushAsync<'t, T, O>, PushBatchAsync<'t, T, O>,
    |handle, put| handle.local().shared(), put(handle.local()), Pushing[User::handle(handle.cell())]
}

target! {
    &'t Transaction<'_, T, O>, Put::Stage, StageAsync<'t, T, O>, StageBatchAsync<'t, T, O>,
    |tx, put| tx.local().shared(), put(&mut tx.local()), Pushing[User::Transaction(tx.local())]
}
