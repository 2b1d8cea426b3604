//! The workers of a pool, and the wait for their end.

use super::failure::Hooks;
use super::pause::{for_at_most, sleep, BACKOFF};
use super::worker::{Command, Worker};
use super::{AnyQueue, Report, WorkerStatus};
use crate::sync::{lock, swallow_panic, Mutex};
use std::future::{poll_fn, Future};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// The pause between two checks whether stopped workers are idle.
const IDLE_CHECK_PAUSE: Duration = Duration::from_millis(1);

/// How often stopped workers are checked. One that is idle for longer is blocked by user code outside of a run, such as a
/// clock, or is a task that is not polled.
const MAX_IDLE_CHECKS: usize = 1_000;

/// How long a `join` of a debug build waits until it reports for what.
const JOIN_REPORT_DELAY: Duration = Duration::from_secs(1);

/// The workers of a pool.
pub(super) struct WorkerPool {
    workers: Vec<Arc<Worker>>,
    pub(super) hooks: Hooks,
    /// The error of the queue that has ended the pool.
    error: Mutex<Option<Arc<str>>>,
    /// Woken when a worker has ended.
    waiter: Mutex<Option<Waker>>,
}

impl WorkerPool {
    pub(super) fn new(prefix: &str, count: usize, hooks: Hooks) -> Arc<Self> {
        let worker = |index| Arc::new(Worker::new(format!("{prefix}-{index}").into()));
        Arc::new(Self {
            workers: (0..count).map(worker).collect(),
            hooks,
            error: Mutex::default(),
            waiter: Mutex::default(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub(super) fn worker(&self, index: usize) -> &Arc<Worker> {
        let Some(worker) = self.workers.get(index) else {
            let (count, last) = (self.len(), self.len() - 1);
            panic!("no worker {index}: the pool has {count}, numbered 0 to {last}");
        };
        worker
    }

    pub(super) fn command_all(&self, command: Command) {
        self.workers
            .iter()
            .for_each(|worker| worker.command(command));
    }

    pub(super) fn status(&self, queue: &AnyQueue<'_>) -> Vec<WorkerStatus> {
        let instant = |since| queue.0.instant(since);
        let workers = self.workers.iter();
        workers.map(|worker| worker.status(&instant)).collect()
    }

    /// The report of a pool that has ended, with what is left in the queue.
    pub(super) async fn report(&self, queue: &AnyQueue<'_>) -> Report {
        queue.0.pool_ended().await;
        let left = queue.0.left().await;
        let mut report = Report::of(self.status(queue));
        let fatal = lock(&self.error).clone();
        match left {
            Ok(left) => (report.left, report.error) = (left, fatal),
            Err(error) => report.error = fatal.or(Some(error)),
        }
        report
    }

    /// Stops all workers because of an error of the queue.
    pub(super) fn end_by(&self, error: &Arc<str>) {
        lock(&self.error).get_or_insert_with(|| Arc::clone(error));
        self.command_all(Command::Stop);
    }

    /// Marks a worker as ended.
    pub(super) fn end(&self, worker: &Worker) {
        worker.end();
        let waiter = lock(&self.waiter).take();
        swallow_panic(|| waiter.into_iter().for_each(Waker::wake));
    }

    /// Waits until all workers have ended. One that ends is seen, or wakes the waiter, which was there before.
    pub(super) fn all_ended(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            let last = lock(&self.waiter).replace(context.waker().clone());
            drop(last);
            if self.workers.iter().all(|worker| worker.has_ended()) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
    }

    /// Waits until all workers have ended. Reports once, if asked to, when they wait for the close of the queue: all
    /// workers of an open queue are idle.
    pub(super) async fn join(&self, queue: &AnyQueue<'_>, may_report: bool) {
        let may_report = cfg!(debug_assertions) && may_report;
        while may_report
            && for_at_most(JOIN_REPORT_DELAY, self.all_ended())
                .await
                .is_none()
        {
            if !queue.0.is_closed() && self.workers.iter().all(|worker| worker.is_idle()) {
                self.report_wait();
                break;
            }
        }
        self.all_ended().await;
    }

    /// By an event of `tracing` if that feature is enabled, otherwise on the standard error.
    fn report_wait(&self) {
        let (count, first) = (self.len(), self.workers[0].name());
        let what = format!(
            "`join` waits for {count} idle workers, the first of which is `{first}`: they end when their queue is \
             closed, and nobody has called `close`"
        );
        swallow_panic(|| {
            #[cfg(feature = "tracing")]
            tracing::warn!(target: "requeue", "{what}");
            #[cfg(not(feature = "tracing"))]
            eprintln!("requeue: {what}");
        });
    }

    /// Closes the queue and waits until nothing is left in it, for at most `limit`; then stops the workers, and waits until
    /// each runs or has ended, but not for long. So a worker that only waited for an item is not taken for a stuck one.
    pub(super) async fn finish(&self, queue: &AnyQueue<'_>, limit: Duration) {
        let closed = queue.0.close().await;
        // After the close: a worker that is not paused notices it.
        self.command_all(Command::Work);
        match closed {
            Ok(true) => _ = for_at_most(limit, self.all_ended()).await,
            Ok(false) => _ = for_at_most(limit, nothing_left(queue)).await,
            Err(error) => self.end_by(&error),
        }
        self.command_all(Command::Stop);
        let is_idle = |worker: &Arc<Worker>| worker.is_idle();
        for _ in 0..MAX_IDLE_CHECKS {
            if !self.workers.iter().any(is_idle) {
                break;
            }
            // The end of a worker is noticed; the begin of a run is not, to keep that cheap.
            for_at_most(IDLE_CHECK_PAUSE, self.all_ended()).await;
        }
    }
}

/// Waits until nothing is left in the queue, by asking from time to time.
async fn nothing_left(queue: &AnyQueue<'_>) {
    let mut asked = 0;
    while !matches!(queue.0.left().await, Ok(0)) {
        asked += 1;
        sleep(BACKOFF.delay(asked)).await;
    }
}
