//! The workers of a pool, and the wait for their end.

use super::failure::{Hooks, Trouble};
use super::worker::{Command, Worker};
use super::{AnyQueue, Report, WorkerStatus};
use crate::sync::{lock, swallow_panic, Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// The pause between two checks whether stopped workers are idle.
pub(super) const IDLE_CHECK_PAUSE: Duration = Duration::from_millis(1);

/// How often stopped workers are checked. One that is idle for longer is blocked by user code outside of a run, such as a
/// clock, or is a task that is not polled.
pub(super) const MAX_IDLE_CHECKS: usize = 1_000;

/// How long a `join` of a debug build waits until it reports for what.
pub(super) const JOIN_REPORT_DELAY: Duration = Duration::from_secs(1);

/// Reports in a debug build what a `join` waits for: by an event of `tracing` if that feature is enabled, otherwise on the
/// standard error.
pub(super) fn report_wait(what: &str) {
    swallow_panic(|| {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "requeue", "{what}");
        #[cfg(not(feature = "tracing"))]
        eprintln!("requeue: {what}");
    });
}

/// The workers of a pool.
pub(super) struct WorkerPool {
    workers: Vec<Arc<Worker>>,
    hooks: Hooks,
    /// The error of the queue that has ended the pool.
    error: Mutex<Option<Arc<str>>>,
    /// Workers that have not ended.
    present: Mutex<usize>,
    /// Notified when one has ended.
    gone: Condvar,
}

impl WorkerPool {
    pub(super) fn new(prefix: &str, count: usize, hooks: Hooks) -> Arc<Self> {
        let name = |index| format!("{prefix}-{index}").into();
        Arc::new(Self {
            workers: (0..count)
                .map(name)
                .map(Worker::new)
                .map(Arc::new)
                .collect(),
            hooks,
            error: Mutex::default(),
            present: Mutex::new(0),
            gone: Condvar::new(),
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
        self.statuses(queue).collect()
    }

    fn statuses<'s>(&'s self, queue: &'s AnyQueue<'_>) -> impl Iterator<Item = WorkerStatus> + 's {
        let instant = |since| queue.instant(since);
        self.workers
            .iter()
            .map(move |worker| worker.status(&instant))
    }

    pub(super) fn report(&self, queue: &AnyQueue<'_>) -> Report {
        let error = lock(&self.error).clone();
        Report {
            error,
            ..Report::of(self.statuses(queue))
        }
    }

    /// Stops all workers because of an error of the queue.
    pub(super) fn end_by(&self, error: &Arc<str>) {
        lock(&self.error).get_or_insert_with(|| Arc::clone(error));
        self.command_all(Command::Stop);
    }

    /// Waits until all workers have ended, or the timeout elapses. Returns whether they have ended.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let mut present = lock(&self.present);
        self.gone
            .wait_while_for(&mut present, |present| *present > 0, timeout);
        *present == 0
    }

    /// Waits until each worker runs or has ended, after all were stopped, but not for long. So a worker that only waited for
    /// an item is not taken for a stuck one.
    pub(super) fn wait_for_idle(&self) {
        let mut present = lock(&self.present);
        for _ in 0..MAX_IDLE_CHECKS {
            if *present == 0 || !self.has_idle() {
                return;
            }
            // The end of a worker is notified; the begin of a run is not, to keep that cheap.
            self.gone.wait_for(&mut present, IDLE_CHECK_PAUSE);
        }
    }

    /// Whether a worker neither runs nor has ended.
    pub(super) fn has_idle(&self) -> bool {
        self.workers.iter().any(|worker| worker.is_idle())
    }

    /// What a `join` waits for, if that is the close of the queue: all workers of an open queue are idle.
    pub(super) fn what_it_waits_for(&self, queue: &AnyQueue<'_>) -> Option<String> {
        if queue.is_closed() || !self.workers.iter().all(|worker| worker.is_idle()) {
            return None;
        }
        let (count, first) = (self.len(), self.workers.first()?.name());
        Some(format!(
            "`join` waits for {count} idle workers, the first of which is `{first}`: they end when their queue is \
             closed, and nobody has called `close`"
        ))
    }

    /// Calls the hooks for a failed run.
    pub(super) fn report_failure(&self, trouble: Trouble) {
        trouble.report(&self.hooks);
    }
}

/// Marks a worker as present: it has ended when this is dropped.
pub(super) struct WorkerGuard {
    pool: Arc<WorkerPool>,
    worker: Arc<Worker>,
}

impl WorkerGuard {
    pub(super) fn new(pool: &Arc<WorkerPool>, index: usize) -> Self {
        *lock(&pool.present) += 1;
        let worker = Arc::clone(pool.worker(index));
        let pool = Arc::clone(pool);
        Self { pool, worker }
    }

    pub(super) fn pool(&self) -> &WorkerPool {
        &self.pool
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Counts and reports a failed run.
    #[cold]
    pub(super) fn record_failure(&self, trouble: Trouble) {
        self.worker().count(trouble.ran());
        self.pool.report_failure(trouble);
        self.worker().rest(); // after the hooks, which may block
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        self.worker().end();
        let mut present = lock(&self.pool.present);
        *present -= 1;
        self.pool.gone.notify_all();
    }
}
