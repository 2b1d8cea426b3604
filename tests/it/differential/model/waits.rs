//! Calls that may wait, and their waiters.

use super::ops::Then;
use requeue::PushError;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Outcome<R> {
    Answer(R),
    /// The future is pending, and was dropped.
    Dropped,
    /// The future is pending, and was forgotten.
    Forgotten(Waiter),
}

impl<R> Outcome<R> {
    pub(crate) fn map<S>(self, answer: impl FnOnce(R) -> S) -> Outcome<S> {
        match self {
            Self::Answer(result) => Outcome::Answer(answer(result)),
            Self::Dropped => Outcome::Dropped,
            Self::Forgotten(waiter) => Outcome::Forgotten(waiter),
        }
    }

    /// The result of a pending future that was polled with this waiter.
    pub(crate) fn of(
        mut future: impl Future<Output = R> + Unpin,
        waiter: Waiter,
        then: Then,
    ) -> Self {
        match then {
            Then::Drop => Self::Dropped,
            Then::Forget => {
                mem::forget(future);
                Self::Forgotten(waiter)
            }
            Then::Poll => match waiter.poll(&mut future) {
                Poll::Ready(result) => Self::Answer(result),
                Poll::Pending => Self::Dropped,
            },
        }
    }

    /// The same for a future that has not been polled.
    pub(crate) fn of_new(mut future: impl Future<Output = R> + Unpin, then: Then) -> Self {
        let waiter = Waiter::default();
        match waiter.poll(&mut future) {
            Poll::Ready(result) => Self::Answer(result),
            Poll::Pending => Self::of(future, waiter, then),
        }
    }
}

/// A pending future, and whether it was woken since its last poll.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiter(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Waiter {
    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        self.0 .0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.0));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    fn is_woken(&self) -> bool {
        self.0 .0.load(Ordering::Relaxed)
    }
}

/// Pending futures: each waits for an item, or for room for this many items.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Vec<(Waiter, usize)>);

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn join(&mut self, waiter: &Waiter, items: usize) {
        self.0.push((waiter.clone(), items));
    }

    pub(crate) fn leave(&mut self, waiter: &Waiter) {
        self.0
            .retain(|(other, _)| !Arc::ptr_eq(&other.0, &waiter.0));
    }

    /// Whether a future waits for room for several items. It may keep the room that it has found so far.
    pub(crate) fn may_gather(&self) -> bool {
        self.0.iter().any(|(_, items)| *items > 1)
    }

    /// If there is enough for each waiter, at least one is woken.
    pub(crate) fn check(&self, is_enough: impl Fn(usize) -> bool) {
        let content = self.0.iter().all(|(_, items)| is_enough(*items));
        let woken = self.0.iter().any(|(waiter, _)| waiter.is_woken());
        assert!(
            self.is_empty() || !content || woken,
            "no waiter is awake: {self:?}"
        );
    }

    /// A woken waiter may wait again in its old place, and a timer does not count as a wake-up of the wait queue.
    pub(crate) fn check_count(&self, waiting: usize) {
        let asleep = self.0.iter().filter(|(waiter, _)| !waiter.is_woken());
        let known = asleep.count()..=self.0.len();
        assert!(known.contains(&waiting), "{waiting} waiters: {self:?}");
    }

    pub(crate) fn check_all_woken(&self) {
        assert!(self.0.iter().all(|(waiter, _)| waiter.is_woken()));
    }
}

/// The result of the push of one item, as that of a batch.
pub(crate) fn as_batch<T>(pushed: Result<(), PushError<T>>) -> Result<usize, PushError<Vec<T>>> {
    match pushed {
        Ok(()) => Ok(1),
        Err(PushError::Full(item)) => Err(PushError::Full(vec![item])),
        Err(PushError::Closed(item)) => Err(PushError::Closed(vec![item])),
        Err(refused) => panic!("neither full nor closed: {refused:?}"),
    }
}
