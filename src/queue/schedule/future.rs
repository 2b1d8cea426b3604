//! Futures of pushes with a priority that wait for room.

use crate::core::wait::DONE;
use crate::PushError;
use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

/// The future of [`PushWith::push_async`](super::PushWith::push_async) and
/// [`PushWith::push_batch_async`](super::PushWith::push_batch_async): it waits and pushes as `F` does, and returns the tickets
/// `K`. The future of a queue's view borrows nothing.
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushWithAsync<F, K> {
    push: F,
    tickets: Option<K>,
}

impl<F, K> PushWithAsync<F, K> {
    pub(super) fn new(push: F, tickets: K) -> Self {
        let tickets = Some(tickets);
        Self { push, tickets }
    }
}

/// The items are never pinned.
impl<F, K> Unpin for PushWithAsync<F, K> {}

impl<F, R, I, K> Future for PushWithAsync<F, K>
where
    F: Future<Output = Result<R, PushError<I>>> + Unpin,
{
    type Output = Result<K, PushError<I>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let pushed = ready!(Pin::new(&mut self.push).poll(context));
        let tickets = self.tickets.take().expect(DONE);
        Poll::Ready(pushed.map(|_| tickets))
    }
}

debug_struct!([F, K] PushWithAsync<F, K>);
