//! The workers of a pool, and the wait for their end.

use super::failure::Trouble;
use super::worker::{Command, Worker};
use super::{AnyQueue, Failure, Report, WorkerStatus};
use crate::sync::{lock, swallow_panic, Condvar, Mutex};
use crate::time::Time;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Called for each panic with the worker's name and the payload.
pub(super) type PanicHook = Arc<dyn Fn(&str, &(dyn Any + Send)) + Send + Sync>;

/// Called for each run that failed or panicked.
pub(super) type ErrorHook = Arc<dyn Fn(&Failure) + Send + Sync>;

/// The hooks for failures and panics.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) on_error: Option<ErrorHook>,
    pub(super) on_panic: Option<PanicHook>,
}

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
    workers: Vec<Worker>,
    hooks: Hooks,
    /// The time of the queue.
    time: Time,
    /// Workers that have not ended.
    present: Mutex<usize>,
    /// Notified when one has ended.
    gone: Condvar,
}

impl WorkerPool {
    pub(super) fn new(prefix: &str, count: usize, hooks: Hooks, time: Time) -> Arc<Self> {
        let name = |index| format!("{prefix}-{index}").into();
        Arc::new(Self {
            workers: (0..count).map(name).map(Worker::new).collect(),
            hooks,
            time,
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
    pub(super) fn worker(&self, index: usize) -> &Worker {
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

    pub(super) fn status(&self) -> Vec<WorkerStatus> {
        self.statuses().collect()
    }

    fn statuses(&self) -> impl Iterator<Item = WorkerStatus> + '_ {
        self.workers.iter().map(|worker| worker.status(&self.time))
    }

    pub(super) fn report(&self) -> Report {
        Report::of(self.statuses())
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
        self.workers.iter().any(Worker::is_idle)
    }

    /// What a `join` waits for, if that is the close of the queue: all workers of an open queue are idle.
    pub(super) fn what_it_waits_for(&self, queue: &AnyQueue<'_>) -> Option<String> {
        if queue.is_closed() || !self.workers.iter().all(Worker::is_idle) {
            return None;
        }
        let (count, first) = (self.len(), self.workers.first()?.name());
        Some(format!(
            "`join` waits for {count} idle workers, the first of which is `{first}`: they end when their queue is \
             closed, and nobody has called `close`"
        ))
    }

    /// Calls the hooks for a failed run. Panics of the hooks, or of the payload's destructor, are caught and ignored.
    pub(super) fn report_failure(&self, Trouble { failure, payload }: Trouble) {
        if let Some(hook) = &self.hooks.on_error {
            swallow_panic(|| hook(&failure));
        }
        if let (Some(hook), Some(payload)) = (&self.hooks.on_panic, &payload) {
            swallow_panic(|| hook(&failure.worker, &**payload));
        }
        swallow_panic(|| drop(payload));
    }
}

/// Marks a worker as present: it has ended when this is dropped.
pub(super) struct WorkerGuard {
    pool: Arc<WorkerPool>,
    index: usize,
}

impl WorkerGuard {
    pub(super) fn new(pool: &Arc<WorkerPool>, index: usize) -> Self {
        *lock(&pool.present) += 1;
        let pool = Arc::clone(pool);
        Self { pool, index }
    }

    pub(super) fn pool(&self) -> &WorkerPool {
        &self.pool
    }

    pub(super) fn worker(&self) -> &Worker {
        self.pool.worker(self.index)
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
