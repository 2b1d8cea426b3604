//! The futures of pushes that wait for room: of an item and of a batch, each by a handle, in a transaction, and without
//! either. Those of one kind are made from one text.

use super::owned::{Calls, PooledWaiter};
use super::Borrowing;
use crate::core::pool::Pool;
use crate::core::put::{Load, Put};
use crate::core::shared::Shared;
use crate::core::wait::{self, DONE};
use crate::core::{CellOf, Local};
use crate::order::{Order, PlaceOf};
use crate::raw::Borrow;
use crate::wait::{WaitKind, WakeTarget};
use crate::{Fifo, PushError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A future of a push that is made of `$inner`, and the arguments of that.
macro_rules! push_future {
    (
        $(#[$on:meta])*
        $future:ident<$($lifetime:lifetime,)? T, O>($inner:ident of $load:ty: $pushed:ty),
        $($arg:ident: $type:ty),+
    ) => {
        $(#[$on])*
        ///
        /// # Panics
        ///
        /// If it is polled after completion.
        #[must_use = "a future does nothing unless it is awaited"]
        pub struct $future<$($lifetime,)? T, O: Order<T> = Fifo>($inner<$($lifetime,)? T, O, $load>);

        impl<$($lifetime,)? T, O: Order<T>> $future<$($lifetime,)? T, O> {
            pub(crate) fn new($($arg: $type,)+ load: $load, place: PlaceOf<T, O>) -> Self {
                Self($inner::new($($arg,)+ load, place))
            }
        }

        /// What is pushed is never pinned.
        impl<$($lifetime,)? T, O: Order<T>> Unpin for $future<$($lifetime,)? T, O> {}

        impl<$($lifetime,)? T, O: Order<T>> Future for $future<$($lifetime,)? T, O> {
            type Output = Result<$pushed, PushError<$load>>;

            #[track_caller]
            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                self.0.poll(&WakeTarget::task(context.waker()))
            }
        }

        impl<$($lifetime,)? T, O: Order<T>> fmt::Debug for $future<$($lifetime,)? T, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        }
    };
}

push_future! {
    /// The future of [`Handle::push_async`](crate::Handle::push_async).
    PushAsync<'h, T, O>(Pushing of T: ()), cell: &'h mut CellOf<T, O>
}

push_future! {
    /// The future of [`Handle::push_batch_async`](crate::Handle::push_batch_async).
    PushBatchAsync<'h, T, O>(Pushing of Vec<T>: usize), cell: &'h mut CellOf<T, O>
}

push_future! {
    /// The future of [`Transaction::push_async`](crate::Transaction::push_async).
    StageAsync<'t, T, O>(Staging of T: ()), local: Borrow<'t, Local<T, O>>
}

push_future! {
    /// The future of [`Transaction::push_batch_async`](crate::Transaction::push_batch_async).
    StageBatchAsync<'t, T, O>(Staging of Vec<T>: usize), local: Borrow<'t, Local<T, O>>
}

push_future! {
    /// The future of [`Queue::push_async`](crate::Queue::push_async). It borrows nothing, so it may outlive the
    /// [`Queue`](crate::Queue) it came from.
    OwnedPush<T, O>(OwnedPushing of T: ()), shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>
}

push_future! {
    /// The future of [`Queue::push_batch_async`](crate::Queue::push_batch_async). It borrows nothing, so it may outlive
    /// the [`Queue`](crate::Queue) it came from.
    OwnedPushBatch<T, O>(OwnedPushing of Vec<T>: usize), shared: &Arc<Shared<T, O>>, pool: &Arc<Pool<T, O>>
}

/// A push by a handle.
struct Pushing<'h, T, O: Order<T>, L> {
    cell: &'h mut CellOf<T, O>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<'h, T, O: Order<T>, L: Load<T, O>> Pushing<'h, T, O, L> {
    fn new(cell: &'h mut CellOf<T, O>, load: L, place: PlaceOf<T, O>) -> Self {
        cell.begin_waiting();
        let load = Some(load);
        Self { cell, load, place }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let (mut local, load) = (self.cell.get_mut(), &mut self.load);
        Local::poll_put(&mut local, load, Put::Publish, wake_target, self.place)
    }
}

impl<T, O: Order<T>, L> Drop for Pushing<'_, T, O, L> {
    fn drop(&mut self) {
        self.cell.end_waiting();
    }
}

/// A push in a transaction.
struct Staging<'t, T, O: Order<T>, L> {
    borrowing: Option<Borrowing<'t, T, O>>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<'t, T, O: Order<T>, L: Load<T, O>> Staging<'t, T, O, L> {
    fn new(local: Borrow<'t, Local<T, O>>, load: L, place: PlaceOf<T, O>) -> Self {
        Self {
            borrowing: Some(Borrowing(local)),
            load: Some(load),
            place,
        }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let Borrowing(local) = self.borrowing.as_mut().expect(DONE);
        let load = &mut self.load;
        let poll = Local::poll_put(local, load, Put::Stage, wake_target, self.place);
        if poll.is_ready() {
            self.borrowing = None;
        }
        poll
    }
}

impl<T, O: Order<T>> StageAsync<'_, T, O> {
    /// Ends the wait, and returns the item, unless it was pushed.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn end(&mut self) -> Option<T> {
        self.0.borrowing = None;
        self.0.load.take()
    }
}

/// A push without a handle.
struct OwnedPushing<T, O: Order<T>, L> {
    calls: Option<Calls<T, O>>,
    load: Option<L>,
    place: PlaceOf<T, O>,
}

impl<T, O: Order<T>, L: Load<T, O>> OwnedPushing<T, O, L> {
    fn new(
        shared: &Arc<Shared<T, O>>,
        pool: &Arc<Pool<T, O>>,
        load: L,
        place: PlaceOf<T, O>,
    ) -> Self {
        Self {
            calls: Some(Calls::new(shared, pool)),
            load: Some(load),
            place,
        }
    }

    #[track_caller]
    fn poll(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<L::Pushed, PushError<L>>> {
        let (calls, load, place) = (self.calls.as_mut().expect(DONE), &mut self.load, self.place);
        let at_once = calls.waiter.is_none() && !calls.is_serving_pushes();
        let Calls { pool, waiter, .. } = calls;
        let attempt =
            |load: &mut Option<L>| pool.call(|cell| cell.settled().put_unless_full(load, place));
        let poll = if let Some(pushed) = at_once.then(|| attempt(load)).flatten() {
            Poll::Ready(pushed)
        } else {
            let mut user = waiter
                .get_or_insert_with(|| PooledWaiter::new(pool))
                .get_mut();
            let items = load.as_ref().expect(DONE).as_slice();
            if L::KIND == WaitKind::One && user.is_worth_waiting(items) {
                let attempt = |_: &mut _| attempt(load);
                wait::poll_room(&mut user, L::KIND, wake_target, attempt)
            } else {
                // The waiter also pushes a batch, since it has gathered the room for it.
                Local::poll_put(&mut user, load, Put::Publish, wake_target, place)
            }
        };
        if poll.is_ready() {
            self.calls = None;
        }
        poll
    }
}
