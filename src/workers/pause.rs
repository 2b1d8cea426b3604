//! Waits by a clock, which need no runtime.

use crate::{Backoff, Clock, SystemClock};
use std::future::{pending, poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// When the items of a failed run are delivered again, if neither the pool nor the queue says otherwise. Also the pauses
/// after errors of the queue.
pub(super) const BACKOFF: Backoff =
    Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// Waits for the future, for at most the given time of the system's clock.
pub(super) fn for_at_most<F: Future>(
    limit: Duration,
    future: F,
) -> impl Future<Output = Option<F::Output>> {
    for_at_most_by(&SystemClock, limit, future)
}

/// Waits for the future, for at most the given time of a clock.
pub(super) async fn for_at_most_by<F: Future>(
    clock: &dyn Clock,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let until = clock.now().checked_add(limit);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if until.is_some_and(|until| clock.now() >= until) => Poll::Ready(None),
        Poll::Pending => {
            if let Some(until) = until {
                clock.wake_at(until, context.waker());
            }
            Poll::Pending
        }
    })
    .await
}

/// Sleeps for a time.
pub(super) async fn sleep(pause: Duration) {
    let _: Option<()> = for_at_most(pause, pending()).await;
}
