//! What workers say of themselves.

use std::sync::Arc;
use std::time::Instant;

/// What a worker does now.
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
    /// It waits for an item.
    Idle,
    /// It runs.
    Busy {
        /// When it took what it works on, by the queue's clock.
        since: Instant,
    },
    /// It takes no items until it is resumed.
    Paused,
    /// It has ended.
    Stopped,
}

/// One worker of a pool, from [`Workers::status`](crate::Workers::status).
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
    /// What it does now.
    pub state: WorkerState,
    /// Runs whose transaction was committed, whatever the destructors of its items did then.
    pub done: u64,
    /// Runs that gave back what they held, or whose lease was over.
    pub failed: u64,
    /// Runs that panicked. What they held went back; a [`Job`](crate::Job) did not, it has run.
    pub panicked: u64,
}

/// What a pool has done, from [`Workers::stop`](crate::Workers::stop) and its kin.
///
/// ```
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.handle().push_batch(0..3)?;
/// queue.close();
/// let workers = Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
/// assert_eq!(workers.join().done, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs whose transaction was committed, whatever the destructors of its items did then.
    pub done: u64,
    /// Runs that gave back what they held, or whose lease was over.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
    /// Workers that had not ended when the time was over.
    pub stuck: Vec<WorkerStatus>,
}

impl Report {
    pub(super) fn of(workers: impl Iterator<Item = WorkerStatus>) -> Self {
        let mut report = Self::default();
        for worker in workers {
            report.done += worker.done;
            report.failed += worker.failed;
            report.panicked += worker.panicked;
            if worker.state != WorkerState::Stopped {
                report.stuck.push(worker);
            }
        }
        report
    }
}
