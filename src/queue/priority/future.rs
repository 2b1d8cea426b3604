//! Futures of pushes with a priority that wait for room.

use super::PriorityError;
use crate::core::wait::DONE;
use crate::PushError;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

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
    state: Option<Result<(F, K), I>>,
}

impl<F, I, K> PushWithAsync<F, I, K> {
    pub(super) fn new(state: Result<(F, K), I>) -> Self {
        let state = Some(state);
        Self { state }
    }
}

/// The items are never pinned.
impl<F, I, K> Unpin for PushWithAsync<F, I, K> {}

impl<F, R, I: Send, K> Future for PushWithAsync<F, I, K>
where
    F: Future<Output = Result<R, PushError<I>>> + Unpin,
{
    type Output = Result<K, PriorityError<I>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (mut push, tickets) = match self.state.take().expect(DONE) {
            Ok(waiting) => waiting,
            Err(items) => return Poll::Ready(Err(PriorityError::OutOfRange(items))),
        };
        let Poll::Ready(pushed) = Pin::new(&mut push).poll(context) else {
            self.state = Some(Ok((push, tickets)));
            return Poll::Pending;
        };
        Poll::Ready(match pushed {
            Ok(_) => Ok(tickets),
            Err(refused) => Err(refused.into()),
        })
    }
}

debug_struct!([F, I, K] PushWithAsync<F, I, K>);
