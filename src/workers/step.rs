//! The loop of a worker, which threads and tasks have in common, and the steps of a run: it takes items, and commits or aborts.

use super::caught::Caught;
use super::failure::{Payload, RunError, Success};
use super::pause::{for_at_most_by, sleep, BACKOFF};
use super::pool::WorkerPool;
use super::worker::{Ran, Worker};
use crate::backend::{AbortCause, Backend, Cancelled, Committed, Tx};
use crate::policy::telemetry::RunSpan;
use crate::sync::swallow_panic;
use crate::{Backoff, Clock, Wait};
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// The size of the batches of a pool, and how long a worker that holds an item waits for the others.
#[derive(Clone, Copy)]
pub(super) struct Batches {
    pub(super) max: usize,
    pub(super) linger: Duration,
}

/// Why a worker has committed nothing.
pub(super) enum Stop<E> {
    /// By a command.
    Interrupted,
    /// The queue is closed and drained.
    Closed,
    /// An error of the queue.
    Error(E),
    /// The run failed or panicked.
    Failed(RunError),
}

impl<E> Stop<E> {
    pub(super) fn failed(error: impl Debug) -> Self {
        Self::Failed(RunError::of(error))
    }

    pub(super) fn panicked(payload: Payload) -> Self {
        Self::Failed(RunError::of_panic(payload))
    }
}

/// How a step ended.
pub(super) type Stepped<B> = Result<Ran, Stop<<B as Backend>::Error>>;
/// How a step ended, its transaction, unless that is gone, and the span of its last run.
pub(super) type Left<B> = (Stepped<B>, Option<<B as Backend>::Tx>, RunSpan);

/// What a worker does after a step.
pub(super) enum Settled {
    /// It goes on.
    Ended,
    /// It goes on after a pause: the queue has an error, and nothing could be taken.
    NothingTaken,
    /// It ends: the queue is closed and drained.
    Closed,
}

/// The delivery of an item that a run owns, which ends when this is dropped.
pub(super) struct Own<A> {
    pub(super) attempts: u32,
    pub(super) since: u64,
    #[allow(dead_code)] // its drop is its use
    pub(super) delivery: A,
}

/// That of a run whose items are held by its transaction.
pub(super) const NOT_OWN: Option<Own<()>> = None;

/// A worker of a queue.
pub(super) struct QueueWorker<B> {
    pub(super) queue: B,
    pub(super) pool: Arc<WorkerPool>,
    pub(super) worker: Arc<Worker>,
    pub(super) backoff: Backoff,
    /// How long a run of a task may take, by this clock.
    pub(super) run_timeout: Option<(Duration, Arc<dyn Clock>)>,
    /// How many commits of a task may be under way while it goes on.
    pub(super) commits_in_flight: usize,
}

impl<B> Drop for QueueWorker<B> {
    fn drop(&mut self) {
        self.pool.end(&self.worker);
    }
}

impl<B: Backend> QueueWorker<B> {
    /// Works until it is stopped, or the queue is closed and drained.
    pub(super) async fn work<S>(&self, mut step: impl FnMut(B::Tx) -> S)
    where
        S: Future<Output = Left<B>>,
    {
        let (mut kept, mut errors) = (None, 0u32);
        while self.worker.go_on().await {
            let tx = kept.take().unwrap_or_else(|| self.begin());
            let (stepped, tx, span) = unless_panicked::<B>(pin!(step(tx))).await;
            kept = tx;
            let settled = self.settle(stepped, kept.as_mut(), span).await;
            self.worker.rest(); // after the hooks, which may block
            match settled {
                Settled::Closed => break,
                Settled::Ended => errors = 0,
                Settled::NothingTaken => {
                    errors = errors.saturating_add(1);
                    unless_interrupted(&self.worker, sleep(BACKOFF.delay(errors))).await;
                }
            }
            #[cfg(feature = "tokio")]
            tokio::task::consume_budget().await;
        }
    }

    fn begin(&self) -> B::Tx {
        self.queue.begin(Some(Arc::clone(self.worker.name())))
    }

    /// Waits for an item.
    pub(super) async fn take<I>(
        &self,
        popping: impl Future<Output = Result<Option<I>, B::Error>>,
    ) -> Result<I, Stop<B::Error>> {
        let popped = unless_interrupted(&self.worker, popping).await;
        popped
            .ok_or(Stop::Interrupted)?
            .map_err(Stop::Error)?
            .ok_or(Stop::Closed)
    }

    /// Waits for the first item of a batch, and then for the others as long as it lingers. A worker that is interrupted
    /// goes on with the items that it has, if any.
    pub(super) async fn take_batch<I, F>(
        &self,
        Batches { max, linger }: Batches,
        pop: impl Fn(usize, Wait) -> F,
    ) -> Result<Vec<I>, Stop<B::Error>>
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
            match unless_interrupted(&self.worker, pop(max - items.len(), until)).await {
                Some(Ok(more)) if !more.is_empty() => items.extend(more),
                _ => break,
            }
        }
        Ok(items)
    }

    #[inline]
    pub(super) async fn commit(&self, tx: &mut B::Tx, ran: Ran) -> Stepped<B> {
        let Committed { given_up } = tx.commit().await.map_err(Stop::Error)?;
        Ok(ran.but(given_up))
    }

    /// Commits a run, with the delivery of the item that it owns, if any, and tells of it.
    pub(super) async fn commit_and_tell<A>(
        &self,
        tx: &mut B::Tx,
        ran: Ran,
        own: Option<Own<A>>,
    ) -> Stepped<B> {
        let success = self.success(tx, own.as_ref());
        let Committed { given_up } = tx.commit().await.map_err(Stop::Error)?;
        drop(own);
        Ok(self.committed(ran.but(given_up), success))
    }

    /// Whether anybody wants to know of a run that is committed.
    #[inline]
    pub(super) fn tells(&self) -> bool {
        self.pool.hooks.success.is_some()
    }

    /// What is to be told of a run that is about to be committed.
    pub(super) fn success<A>(&self, tx: &mut B::Tx, own: Option<&Own<A>>) -> Option<Success> {
        if !self.tells() {
            return None;
        }
        let (held, attempts) = tx.deliveries();
        let own = own.map_or((0, tx.since()), |own| (own.attempts, own.since));
        Some(Success {
            worker: Arc::clone(self.worker.name()),
            items: held + usize::from(own.0 > 0),
            attempts: attempts.max(own.0),
            took: self.queue.now() - self.queue.instant(own.1),
        })
    }

    /// Calls the hook after a commit. Its panics are caught and ignored.
    pub(super) fn committed(&self, ran: Ran, success: Option<Success>) -> Ran {
        if let (Ran::Done, Some(success), Some(hook)) = (ran, success, &self.pool.hooks.success) {
            swallow_panic(|| hook(&success));
        }
        ran
    }

    /// Drives a run of a task, for as long as one may take, and until it is cancelled.
    pub(super) async fn drive<Y: Into<Ran>, E: Debug>(
        &self,
        running: impl Future<Output = thread::Result<Result<Y, E>>>,
        cancelled: Option<Cancelled>,
    ) -> Stepped<B> {
        let running = unless_cancelled(running, cancelled);
        let ended = match &self.run_timeout {
            None => running.await,
            Some((limit, clock)) => {
                let ended = for_at_most_by(&**clock, *limit, running).await;
                ended.unwrap_or_else(|| Err(format!("the run took longer than {limit:?}").into()))
            }
        };
        match ended {
            Ok(Ok(ran)) => ran.map(Into::into).map_err(Stop::failed),
            Ok(Err(panic)) => Err(Stop::panicked(panic)),
            Err(text) => Err(Stop::Failed(RunError::with(text))),
        }
    }

    /// Records how a step ended; aborts and reports a run that failed, in its span, unless `tx` is gone.
    pub(super) async fn settle(
        &self,
        stepped: Stepped<B>,
        tx: Option<&mut B::Tx>,
        span: RunSpan,
    ) -> Settled {
        let (worker, pool) = (&self.worker, &self.pool);
        let (error, of_run) = match stepped {
            Ok(ran) => {
                worker.count(ran);
                return Settled::Ended;
            }
            Err(Stop::Interrupted) => return Settled::Ended,
            Err(Stop::Closed) => return Settled::Closed,
            Err(Stop::Failed(error)) => (error, true),
            Err(Stop::Error(error)) => {
                let text = error.to_string().into();
                if B::is_fatal(&error) {
                    pool.end_by(&text);
                }
                (RunError::with(text), false)
            }
        };
        let (reason, ran) = error.kind();
        let mut given_back = (0, 0);
        if let Some(tx) = tx {
            given_back = tx.deliveries();
            let cause = AbortCause::new(reason, Arc::clone(&error.text), self.backoff);
            // A queue that cannot be reached gives the items back when it notices.
            let abort = pin!(async { tx.abort(cause).await });
            let _ = within(&span, abort).await;
        }
        // Otherwise nothing could be taken, because of an error of the queue.
        let has_run = of_run || given_back.0 > 0;
        if has_run {
            worker.count(ran);
        }
        error.report(worker, given_back, &pool.hooks);
        if has_run {
            Settled::Ended
        } else {
            Settled::NothingTaken
        }
    }
}

/// Waits for a step. One that panics has lost its transaction.
pub(super) async fn unless_panicked<B: Backend>(
    step: impl Future<Output = Left<B>> + Unpin,
) -> Left<B> {
    let gone = |panic| (Err(Stop::panicked(panic)), None, RunSpan::none());
    Caught::new(step).await.unwrap_or_else(gone)
}

/// Waits for the future, or says that the run is cancelled.
async fn unless_cancelled<F: Future>(
    running: F,
    cancelled: Option<Cancelled>,
) -> Result<F::Output, Arc<str>> {
    let Some(mut cancelled) = cancelled else {
        return Ok(running.await);
    };
    let mut running = pin!(running);
    poll_fn(|context| match running.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Ok(ended)),
        Poll::Pending => {
            let cancelled = cancelled.as_mut().poll(context);
            cancelled.map(|()| Err("the run was cancelled".into()))
        }
    })
    .await
}

/// Polls the future inside the span.
pub(super) fn within<'s, F: Future + Unpin + 's>(
    span: &'s RunSpan,
    mut future: F,
) -> impl Future<Output = F::Output> + Unpin + 's {
    poll_fn(move |context| span.in_scope(|| Pin::new(&mut future).poll(context)))
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::block::block_on;
    use super::{unless_cancelled, Cancelled};
    use std::future::{pending, ready};

    #[test]
    fn a_run_that_is_cancelled_ends_unless_it_has_ended() {
        let cancelled = || Some(Box::pin(ready(())) as Cancelled);
        let waits = block_on(unless_cancelled(pending::<()>(), cancelled()));
        assert_eq!(waits, Err("the run was cancelled".into()));
        assert_eq!(block_on(unless_cancelled(ready(7), cancelled())), Ok(7));
        assert_eq!(block_on(unless_cancelled(ready(7), None)), Ok(7));
    }
}
