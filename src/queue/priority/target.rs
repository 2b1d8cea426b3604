//! The targets of pushes with a priority: a queue, a handle, or a transaction.

use crate::core::put::Put;
use crate::core::shared::Shared;
use crate::core::Local;
use crate::future::{
    OwnedPush, OwnedPushBatch, PushAsync, PushBatchAsync, StageAsync, StageBatchAsync,
};
use crate::order::priority::{Prioritized, PushOptions};
use crate::time::Wait;
use crate::{Handle, PushError, Queue, Transaction};

/// The target of a [`PushWith`](super::PushWith) view: a queue, a handle or a transaction. Sealed.
///
/// ```
/// use requeue::priority::{PushTo, PushWith};
///
/// fn push_twice<P: PushTo<Item = u32> + Copy>(view: PushWith<P>, item: u32) {
///     for _ in 0..2 {
///         view.push(item).unwrap();
///     }
/// }
///
/// let queue = requeue::PriorityQueue::by_priority();
/// push_twice(queue.priority(1), 7);
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
        type Order: crate::order::priority::Prioritized<Self::Item>;
        /// The future of a push that waits for room.
        type Push;
        /// The future of a batch that waits for room.
        type PushBatch;
    }
}

macro_rules! types {
    ($target:ty, $push:ty, $batch:ty) => {
        impl<'t, T: Send, O: Prioritized<T>> sealed::Types for $target {
            type Item = T;
            type Order = O;
            type Push = $push;
            type PushBatch = $batch;
        }
    };
}

types!(
    &'t Queue<T, O>,
    OwnedPush<T, O>,
    OwnedPushBatch<T, O>
);
types!(
    &'t mut Handle<T, O>,
    PushAsync<'t, T, O>,
    PushBatchAsync<'t, T, O>
);
types!(
    &'t Transaction<'_, T, O>,
    StageAsync<'t, T, O>,
    StageBatchAsync<'t, T, O>
);

/// The operations of a view on its target.
pub(crate) trait PushTarget: sealed::Types + Sized {
    /// How an item is put.
    const PUT: Put;

    /// Calls `inspect` with the shared state of the queue. Ends a forgotten transaction.
    #[track_caller]
    fn with_shared<R>(&mut self, inspect: impl FnOnce(&Shared<Self::Item, Self::Order>) -> R) -> R;

    /// Calls `put` with the handle that puts an item.
    #[track_caller]
    fn with_local<R>(self, put: impl FnOnce(&mut Local<Self::Item, Self::Order>) -> R) -> R;

    #[track_caller]
    fn push_async(self, item: Self::Item, place: PushOptions) -> Self::Push;

    /// Pushes all items, when there is room.
    #[track_caller]
    fn push_batch(
        self,
        items: Vec<Self::Item>,
        place: PushOptions,
        wait: Wait,
    ) -> Result<usize, PushError<Vec<Self::Item>>>;

    #[track_caller]
    fn push_batch_async(self, items: Vec<Self::Item>, place: PushOptions) -> Self::PushBatch;
}

impl<T: Send, O: Prioritized<T>> PushTarget for &Queue<T, O> {
    const PUT: Put = Put::Publish;

    #[inline]
    fn with_shared<R>(&mut self, inspect: impl FnOnce(&Shared<T, O>) -> R) -> R {
        inspect(self.shared())
    }

    #[inline]
    fn with_local<R>(self, put: impl FnOnce(&mut Local<T, O>) -> R) -> R {
        self.call(|cell| put(cell.settled()))
    }

    fn push_async(self, item: T, place: PushOptions) -> Self::Push {
        OwnedPush::new(self.shared(), self.pool(), item, place)
    }

    fn push_batch(
        self,
        items: Vec<T>,
        place: PushOptions,
        wait: Wait,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.call(|cell| Local::put_waiting(&mut cell.settled(), items, Put::Publish, wait, place))
    }

    fn push_batch_async(self, items: Vec<T>, place: PushOptions) -> Self::PushBatch {
        OwnedPushBatch::new(self.shared(), self.pool(), items, place)
    }
}

impl<T: Send, O: Prioritized<T>> PushTarget for &mut Handle<T, O> {
    const PUT: Put = Put::Publish;

    #[inline]
    fn with_shared<R>(&mut self, inspect: impl FnOnce(&Shared<T, O>) -> R) -> R {
        inspect(self.local().shared())
    }

    #[inline]
    fn with_local<R>(self, put: impl FnOnce(&mut Local<T, O>) -> R) -> R {
        put(self.local())
    }

    fn push_async(self, item: T, place: PushOptions) -> Self::Push {
        PushAsync::new(self.cell(), item, place)
    }

    fn push_batch(
        self,
        items: Vec<T>,
        place: PushOptions,
        wait: Wait,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut local = self.local();
        Local::put_waiting(&mut local, items, Put::Publish, wait, place)
    }

    fn push_batch_async(self, items: Vec<T>, place: PushOptions) -> Self::PushBatch {
        PushBatchAsync::new(self.cell(), items, place)
    }
}

impl<T: Send, O: Prioritized<T>> PushTarget for &Transaction<'_, T, O> {
    const PUT: Put = Put::Stage;

    #[inline]
    fn with_shared<R>(&mut self, inspect: impl FnOnce(&Shared<T, O>) -> R) -> R {
        inspect(self.local().shared())
    }

    #[inline]
    fn with_local<R>(self, put: impl FnOnce(&mut Local<T, O>) -> R) -> R {
        put(&mut self.local())
    }

    fn push_async(self, item: T, place: PushOptions) -> Self::Push {
        StageAsync::new(self.local(), item, place)
    }

    fn push_batch(
        self,
        items: Vec<T>,
        place: PushOptions,
        wait: Wait,
    ) -> Result<usize, PushError<Vec<T>>> {
        Local::put_waiting(&mut self.local(), items, Put::Stage, wait, place)
    }

    fn push_batch_async(self, items: Vec<T>, place: PushOptions) -> Self::PushBatch {
        StageBatchAsync::new(self.local(), items, place)
    }
}
