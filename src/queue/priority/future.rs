//! Futures of pushes with a priority that wait for room.

use super::options::PushOptions;
use super::PriorityError;
use crate::core::wait::DONE;
use crate::future::{
    OwnedPush, OwnedPushBatch, PushAsync, PushBatchAsync, StageAsync, StageBatchAsync,
};
use crate::order::priority::{Prioritized, Ticket};
use crate::PushError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that pushes when there is room; its tickets are passed to each poll.
pub(crate) trait Waiting<I, K>: Unpin {
    /// Polls for room, and pushes the items with these tickets.
    #[track_caller]
    fn poll_with(
        &mut self,
        context: &Context<'_>,
        options: PushOptions,
        tickets: &K,
    ) -> Poll<Result<(), PushError<I>>>;
}

macro_rules! one {
    ($future:ty, |$push:ident, $context:ident, $register:ident| $poll:expr) => {
        impl<T: Send, O: Prioritized<T>> Waiting<T, Ticket> for $future {
            fn poll_with(
                &mut self,
                $context: &Context<'_>,
                options: PushOptions,
                ticket: &Ticket,
            ) -> Poll<Result<(), PushError<T>>> {
                let ($push, $register) = (self, options.register(*ticket));
                $poll
            }
        }
    };
}

one!(OwnedPush<T, O>, |push, context, register| push
    .poll_as(context, register));
one!(PushAsync<'_, T, O>, |push, context, register| push
    .poll_as(context, register));
one!(StageAsync<'_, T, O>, |push, context, register| {
    push.poll_as(context, register)
});

macro_rules! batches {
    ($($future:ty)+) => {
        $(impl<T: Send, O: Prioritized<T>> Waiting<Vec<T>, Vec<Ticket>> for $future {
            fn poll_with(
                &mut self,
                context: &Context<'_>,
                options: PushOptions,
                tickets: &Vec<Ticket>,
            ) -> Poll<Result<(), PushError<Vec<T>>>> {
                let poll = self.poll_as(context, options.register_nth(tickets));
                poll.map_ok(drop)
            }
        })+
    };
}

batches! {
    OwnedPushBatch<T, O>
    PushBatchAsync<'_, T, O>
    StageBatchAsync<'_, T, O>
}

/// The future of [`PushWith::push_async`](super::PushWith::push_async) and
/// [`PushWith::push_batch_async`](super::PushWith::push_batch_async): it waits as `F` does, pushes the items `I` and
/// returns the tickets `K`. The future of a queue's view borrows nothing.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushWithAsync<F, I, K> {
    /// The waiting push, or the items whose priority is out of range.
    state: Option<Result<(F, PushOptions, K), I>>,
}

impl<F, I, K> PushWithAsync<F, I, K> {
    pub(super) fn new(state: Result<(F, PushOptions, K), I>) -> Self {
        let state = Some(state);
        Self { state }
    }
}

/// The items are never pinned.
impl<F, I, K> Unpin for PushWithAsync<F, I, K> {}

impl<F: Waiting<I, K>, I: Send, K> Future for PushWithAsync<F, I, K> {
    type Output = Result<K, PriorityError<I>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (mut push, options, tickets) = match self.state.take().expect(DONE) {
            Ok(waiting) => waiting,
            Err(items) => return Poll::Ready(Err(PriorityError::OutOfRange(items))),
        };
        let Poll::Ready(pushed) = push.poll_with(context, options, &tickets) else {
            self.state = Some(Ok((push, options, tickets)));
            return Poll::Pending;
        };
        Poll::Ready(match pushed {
            Ok(()) => Ok(tickets),
            Err(refused) => Err(refused.into()),
        })
    }
}

impl<F, I, K> fmt::Debug for PushWithAsync<F, I, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushWithAsync").finish_non_exhaustive()
    }
}
