//! The status of workers, and the report of a pool.

use std::sync::Arc;
use std::time::Instant;

/// The state of a worker.
///
/// ```
/// use requeue::{Queue, WorkerState, Workers};
///
/// let queue = Queue::<u32>::unbounded();
/// let workers = Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
/// assert_eq!(workers.status()[0].state, WorkerState::Idle);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// The worker waits for an item, or [lingers](crate::WorkersBuilder::linger) for the rest of a batch.
    Idle,
    /// The worker runs.
    Busy {
        /// When it took its item, by the queue's clock.
        since: Instant,
    },
    /// The worker takes no items until it is resumed.
    Paused,
    /// The worker has ended.
    Stopped,
}

/// The status of one worker, returned by [`Workers::status`](crate::Workers::status).
///
/// A *run* is one call of the pool's function: for an item, or for a batch of them.
///
/// ```
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push(1)?;
/// queue.close();
/// let workers = Workers::builder(&queue).threads(1).name("resize").run(|_, _| Err("not now"));
/// assert_eq!(&*workers.status()[0].name, "resize-0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// The name of the pool and the index of the worker.
    pub name: Arc<str>,
    /// The present state.
    pub state: WorkerState,
    /// Runs that were committed with all of their items, even if a destructor of an item panicked afterwards.
    pub done: u64,
    /// Runs that were committed, but [retried](crate::Transaction::retry) or [failed](crate::Transaction::fail) at least
    /// one item themselves.
    pub given_up: u64,
    /// Runs that returned an error, took [too long](crate::WorkersBuilder::run_timeout), or whose lease had expired. Their
    /// items were given back.
    pub failed: u64,
    /// Runs that panicked. Their items were given back, except a [`Job`](crate::Job), which has run.
    pub panicked: u64,
}

/// The totals of a pool, returned by [`Workers::stop`](crate::Workers::stop), `join`, `finish` and `shutdown`.
///
/// Each run that has ended counts once: as done, given up, failed or panicked. A run of several items is one run.
///
/// ```
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push_batch(["good", "bad", "late"])?;
/// queue.close();
/// let workers = Workers::builder(&queue).run(|job, tx| match (*job, job.attempts()) {
///     ("bad", _) => tx.fail(job, "never").map_err(|_| ()),
///     ("late", 1) => Err(()), // again later
///     _ => Ok(()),
/// });
/// let report = workers.join();
/// assert_eq!((report.done, report.given_up, report.failed, report.panicked), (2, 1, 1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs that were committed with all of their items, even if a destructor of an item panicked afterwards.
    pub done: u64,
    /// Runs that were committed, but [retried](crate::Transaction::retry) or [failed](crate::Transaction::fail) at least
    /// one item themselves.
    pub given_up: u64,
    /// Runs that returned an error, took [too long](crate::WorkersBuilder::run_timeout), or whose lease had expired. Their
    /// items were given back.
    pub failed: u64,
    /// Runs that panicked. Their items were given back, except a [`Job`](crate::Job), which has run.
    pub panicked: u64,
    /// Workers that were still running at the deadline.
    pub stuck: Vec<WorkerStatus>,
    /// Items that were left in the queue: ready, delayed, or held by workers that are stuck and by others. So 0 if all
    /// accepted work is done.
    pub left: u64,
    /// The error of the queue that has ended the workers, or because of which [`left`](Self::left) is not known. Queues in
    /// memory have none.
    pub error: Option<Arc<str>>,
}

impl Report {
    /// Of these workers, and of others that have left.
    pub(super) fn of(left: Self, workers: Vec<WorkerStatus>) -> Self {
        let mut report = left;
        for worker in workers {
            report.add(&worker);
            if worker.state != WorkerState::Stopped {
                report.stuck.push(worker);
            }
        }
        report
    }

    /// Counts the runs of a worker.
    pub(super) fn add(&mut self, worker: &WorkerStatus) {
        self.done += worker.done;
        self.given_up += worker.given_up;
        self.failed += worker.failed;
        self.panicked += worker.panicked;
    }
}
