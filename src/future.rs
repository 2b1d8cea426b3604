//! Futures that wait for an item or for room: of queues, handles and transactions.
//!
//! They are `Send` if the items are, cancel safe, and need no particular runtime: see
//! [Waiting](crate::guide::waiting#cancel-safety). Their types need to be named only to store a future in a field.

// The waiter of a future is stored in its handle. It leaves the wait queue when the future is ready or dropped; the
// next use of the handle removes the waiter of a forgotten future.

/// A future that polls its attempt until that is ready, and then drops it.
macro_rules! future {
    ($(#[$on:meta])* $future:ident<$($lifetime:lifetime,)? T, O>($attempt:ty) -> $output:ty) => {
        $(#[$on])*
        ///
        /// # Panics
        ///
        /// If it is polled after completion.
        #[must_use = "a future does nothing unless it is awaited"]
        pub struct $future<$($lifetime,)? T, O: Order<T> = Fifo>(Option<$attempt>);

        impl<$($lifetime,)? T, O: Order<T>> $future<$($lifetime,)? T, O> {
            pub(crate) fn new(attempt: $attempt) -> Self {
                Self(Some(attempt))
            }
        }

        /// Nothing in it is pinned.
        impl<$($lifetime,)? T, O: Order<T>> Unpin for $future<$($lifetime,)? T, O> {}

        impl<$($lifetime,)? T, O: Order<T>> Future for $future<$($lifetime,)? T, O> {
            type Output = $output;

            #[track_caller]
            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<$output> {
                let attempt = self.0.as_mut().expect(DONE);
                let poll = attempt.poll(&WakeTarget::task(context.waker()));
                if poll.is_ready() {
                    self.0 = None;
                }
                poll
            }
        }

        debug_struct!([$($lifetime,)? T, O: Order<T>] $future<$($lifetime,)? T, O>);
    };
}

mod pop;
mod push;

pub(crate) use pop::{Borrowing, HoldingBatch, OwnedPopping, TakingBatch, WaitingIdle};
pub use pop::{OwnedPop, PopAsync, PopBatchAsync, QueueTake, TakeAsync, TakeBatchAsync, WaitIdle};
pub use push::{OwnedPush, OwnedPushBatch, PushAsync, PushBatchAsync, StageAsync, StageBatchAsync};
pub(crate) use push::{OwnedPushing, Pushing};

use crate::core::pool::{CheckedOut, Pool};
use crate::core::put::Put;
use crate::core::{CellOf, Local};
use crate::order::Order;
use crate::raw::Borrow;
use std::sync::Arc;

/// What a future waits with. It waits no more when this is dropped.
pub(crate) enum User<'u, T, O: Order<T>> {
    Handle(&'u mut CellOf<T, O>),
    Pooled(CheckedOut<T, O>),
    Transaction(Borrow<'u, Local<T, O>>),
}

impl<'u, T, O: Order<T>> User<'u, T, O> {
    pub(crate) fn handle(cell: &'u mut CellOf<T, O>) -> Self {
        cell.begin_waiting();
        Self::Handle(cell)
    }

    pub(crate) fn pooled(pool: &Arc<Pool<T, O>>) -> Self {
        Self::Pooled(waiting(pool))
    }

    fn local(&mut self) -> &mut Local<T, O> {
        match self {
            Self::Handle(cell) => cell.get_mut(),
            Self::Pooled(cell) => cell.get_mut(),
            Self::Transaction(local) => local,
        }
    }

    fn put(&self) -> Put {
        match self {
            Self::Handle(_) | Self::Pooled(_) => Put::Publish,
            Self::Transaction(_) => Put::Stage,
        }
    }
}

impl<T, O: Order<T>> Drop for User<'_, T, O> {
    fn drop(&mut self) {
        match self {
            Self::Handle(cell) => cell.end_waiting(),
            Self::Pooled(_) => {} // by its own drop
            Self::Transaction(local) => local.stop_waiting(),
        }
    }
}

/// A handle of the pool, to wait with. It waits no more when it goes back.
fn waiting<T, O: Order<T>>(pool: &Arc<Pool<T, O>>) -> CheckedOut<T, O> {
    let mut cell = pool.check_out();
    cell.begin_waiting();
    cell
}
