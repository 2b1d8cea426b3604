//! The steps of a run, which threads and tasks have in common: it takes items, and commits or aborts.

use super::failure::{RunError, Trouble};
use super::pool::WorkerGuard;
use super::worker::{Ran, Worker};
use crate::backend::{AbortCause, Backend, Committed, Tx};
use crate::{Backoff, Clock, SystemClock, Wait};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// When the items of a failed run are delivered again, if neither the pool nor the queue says otherwise. Also the pauses
/// after errors of the queue.
pub(super) const BACKOFF: Backoff =
    Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// The size of the batches of a pool, and how long a worker that holds an item waits for the others.
#[derive(Clone, Copy)]
pub(super) struct Batches {
    pub(super) max: usize,
    pub(super) linger: Duration,
}

/// What a worker did.
pub(super) enum RunStep {
    Ran(Ran),
    Failed(Box<Trouble>),
    /// Nothing could be taken, because of an error of the queue.
    Unreachable(Box<Trouble>),
    /// By a command.
    Interrupted,
    /// The queue is closed and drained.
    Closed,
}

/// How the function of a run ended.
pub(super) type Ended = Result<Ran, RunError>;

/// Why a worker takes nothing.
pub(super) enum Missing<E> {
    Interrupted,
    Closed,
    Error(E),
}

/// A worker of a queue.
pub(super) struct QueueWorker<B> {
    pub(super) queue: B,
    pub(super) guard: WorkerGuard,
    pub(super) backoff: Backoff,
}

impl<B: Backend> QueueWorker<B> {
    #[inline]
    pub(super) fn worker(&self) -> &Worker {
        self.guard.worker()
    }

    pub(super) fn begin(&self) -> B::Tx {
        self.queue.begin(Some(Arc::clone(self.worker().name())))
    }

    /// Waits for an item.
    pub(super) async fn take<I>(
        &self,
        popping: impl Future<Output = Result<Option<I>, B::Error>>,
    ) -> Result<I, Missing<B::Error>> {
        let popped = unless_interrupted(self.worker(), popping).await;
        popped
            .ok_or(Missing::Interrupted)?
            .map_err(Missing::Error)?
            .ok_or(Missing::Closed)
    }

    /// Waits for the first item of a batch, and then for the others as long as it lingers. A worker that is interrupted
    /// goes on with the items that it has, if any.
    pub(super) async fn take_batch<I, F>(
        &self,
        Batches { max, linger }: Batches,
        pop: impl Fn(usize, Wait) -> F,
    ) -> Result<Vec<I>, Missing<B::Error>>
    where
        F: Future<Output = Result<Vec<I>, B::Error>>,
    {
        let first = pop(max, Wait::Forever);
        let first = async {
            first
                .await
                .map(|items| Some(items).filter(|items| !items.is_empty()))
        };
        let mut items = self.take(first).await?;
        if linger.is_zero() {
            return Ok(items);
        }
        let until = self.queue.now().checked_add(linger);
        let until = until.map_or(Wait::Forever, Wait::Until);
        while items.len() < max {
            // An error is met again by the next run.
            match unless_interrupted(self.worker(), pop(max - items.len(), until)).await {
                Some(Ok(more)) if !more.is_empty() => items.extend(more),
                _ => break,
            }
        }
        Ok(items)
    }

    /// Commits, or aborts if the run failed.
    pub(super) async fn end(&self, tx: &mut B::Tx, ended: Ended) -> RunStep {
        match ended {
            Ok(ran) => self.commit(tx, ran).await,
            Err(error) => self.fail(tx, error).await,
        }
    }

    /// Commits, or aborts if that is impossible.
    #[inline]
    pub(super) async fn commit(&self, tx: &mut B::Tx, ran: Ran) -> RunStep {
        match tx.commit().await {
            Ok(Committed { given_up: false }) => RunStep::Ran(ran),
            Ok(_) => RunStep::Ran(ran.given_up()),
            Err(error) => self.fail_by(tx, error).await,
        }
    }

    /// Aborts after an error of the queue.
    #[cold]
    pub(super) async fn fail_by(&self, tx: &mut B::Tx, error: B::Error) -> RunStep {
        let text: Arc<str> = error.to_string().into();
        if B::is_fatal(&error) {
            self.guard.pool().end_by(&text);
        }
        drop(error);
        match self.fail(tx, RunError::with(text)).await {
            RunStep::Failed(trouble) if trouble.failure.items == 0 => RunStep::Unreachable(trouble),
            failed => failed,
        }
    }

    /// Aborts.
    #[cold]
    pub(super) async fn fail(&self, tx: &mut B::Tx, error: RunError) -> RunStep {
        let deliveries = tx.deliveries();
        let cause = AbortCause::new(error.reason, Arc::clone(&error.text), self.backoff);
        // A queue that cannot be reached gives the items back when it notices.
        let _ = tx.abort(cause).await;
        RunStep::Failed(Box::new(Trouble::new(self.worker(), deliveries, error)))
    }

    /// Reports a run whose transaction cannot be ended.
    pub(super) fn fail_without(&self, error: RunError) -> RunStep {
        RunStep::Failed(Box::new(Trouble::new(self.worker(), (0, 0), error)))
    }

    /// Ends a run that has taken nothing.
    pub(super) async fn end_without(&self, tx: &mut B::Tx, missing: Missing<B::Error>) -> RunStep {
        match missing {
            Missing::Interrupted => RunStep::Interrupted,
            Missing::Closed => RunStep::Closed,
            Missing::Error(error) => self.fail_by(tx, error).await,
        }
    }

    /// Records what the worker did. Returns whether it goes on: after `errors` of the queue in a row, not at once.
    pub(super) async fn settle(&self, step: RunStep, errors: &mut u32) -> bool {
        let before = std::mem::take(errors);
        match step {
            RunStep::Ran(ran) => self.worker().end_run(ran),
            RunStep::Interrupted => {}
            RunStep::Closed => return false,
            RunStep::Failed(trouble) => self.guard.record_failure(*trouble),
            RunStep::Unreachable(trouble) => {
                *errors = before.saturating_add(1);
                self.guard.pool().report_failure(*trouble);
                self.worker().rest();
                let pause = sleep(BACKOFF.delay(*errors));
                let _ = unless_interrupted(self.worker(), pause).await;
            }
        }
        true
    }
}

/// Waits for the future; `None` if the worker is interrupted first.
pub(super) async fn unless_interrupted<F: Future>(worker: &Worker, future: F) -> Option<F::Output> {
    let (mut future, mut waits) = (pin!(future), false);
    poll_fn(|context| {
        let mut polled = Poll::Ready(None);
        if !worker.is_interrupted() {
            polled = future.as_mut().poll(context).map(Some);
            if polled.is_pending() && worker.poll_interrupted(context.waker()).is_ready() {
                polled = Poll::Ready(None);
            }
        }
        if polled.is_ready() && waits {
            worker.end_wait();
        }
        waits = polled.is_pending();
        polled
    })
    .await
}

/// Sleeps for a time.
pub(super) async fn sleep(pause: Duration) {
    let until = SystemClock.now() + pause;
    poll_fn(|context| {
        if SystemClock.now() >= until {
            return Poll::Ready(());
        }
        SystemClock.wake_at(until, context.waker());
        Poll::Pending
    })
    .await;
}
