//! Pools of workers.
//!
//! | file | contents |
//! |---|---|
//! | `builder`, `run`, `task` | the settings of a pool, and its start: as threads, as tasks |
//! | `jobs` | threads whose runs have results |
//! | `pool`, `guard` | the workers of a pool and the wait for their end; the life of one worker |
//! | `others` | other queues that a run commits to |
//! | `status`, `failure` | what workers show of themselves, and failed runs |
//! | `block` | waits for a future on a thread |
//! | `transaction` | transactions in generic code |

mod block;
mod builder;
mod failure;
mod guard;
mod jobs;
mod others;
mod pool;
mod run;
mod status;
mod task;
mod transaction;

pub use builder::WorkersBuilder;
pub use failure::Failure;
pub use jobs::Jobs;
pub use others::Others;
pub use status::{Report, WorkerStatus};
pub use task::RunTransaction;

use crate::error::StoreError;
use crate::order::Order;
use crate::DurableQueue;
use pool::{Pooled, WorkerPool, JOIN_REPORT_DELAY};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads, or tasks, that wait for the items of a queue, run a function on each, and commit if it succeeds.
///
/// `Ok` commits the transaction of the run, an error and a panic abort it. The items of a failed run are delivered again after 10
/// milliseconds, after their second delivery after 20, and so on, up to a second; [`WorkersBuilder::backoff`] and the
/// [backoff](crate::Builder::backoff) of the queue change that. A failed run counts as a delivery: after
/// [`max_attempts`](crate::Builder::max_attempts) of them an item becomes a [dead letter](DurableQueue::dead_letters), with the
/// error. The delays go on in the next process.
///
/// A worker ends when it is stopped, or when the queue is closed and drained. Runs can push follow-up items after the close.
/// If the store is [poisoned](StoreError::Poisoned), all workers end, and [`join`](Self::join) returns the error. Any other error
/// of a commit, such as a full disk, is a failed run.
///
/// Dropping the pool stops it: it waits for the current runs.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// use requeue_durable::Workers;
///
/// let jobs = store.builder("jobs").max_attempts(2).build()?;
/// jobs.push_batch(["7", "x", "8"].map(String::from))?;
/// jobs.close()?;
/// let workers = Workers::builder(&jobs)
///     .threads(2)
///     .run(|text, _tx| text.parse::<u32>().map(drop));
/// let report = workers.join()?;
/// assert_eq!((report.done, report.failed), (2, 2));
/// let letter = jobs.dead_letters().oldest()?.unwrap();
/// assert_eq!(letter.error.as_deref(), Some("ParseIntError { kind: InvalidDigit }"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "workers stop when they are dropped"]
pub struct Workers {
    pool: Arc<WorkerPool>,
    queue: Box<dyn Pooled>,
    /// Empty if they are tasks, or if a scope joins them; otherwise one for each worker.
    threads: Vec<JoinHandle<()>>,
    ended: bool,
}

impl Workers {
    /// A builder for a pool of workers of `queue`.
    pub fn builder<T: Send + 'static, O: Order<T>>(
        queue: &DurableQueue<T, O>,
    ) -> WorkersBuilder<T, O> {
        WorkersBuilder::new(queue.clone())
    }

    fn new<T: Send + 'static, O: Order<T>>(
        pool: Arc<WorkerPool>,
        queue: &DurableQueue<T, O>,
    ) -> Self {
        Self {
            pool,
            queue: Box::new(queue.clone()),
            threads: Vec::new(),
            ended: false,
        }
    }

    /// What each worker does, and has done.
    pub fn status(&self) -> Vec<WorkerStatus> {
        self.pool.status()
    }

    /// Waits until all workers have ended because the queue is closed and drained.
    ///
    /// Without a [`close`](DurableQueue::close) it waits forever. A debug build reports that once on the standard error, when all
    /// workers of an open queue are idle.
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`]: they ended because of it.
    pub fn join(mut self) -> Result<Report, StoreError> {
        if cfg!(debug_assertions) {
            let waits_for = self
                .pool
                .what_a_join_waits_for(&*self.queue, JOIN_REPORT_DELAY);
            if let Some(what) = waits_for {
                eprintln!("requeue: {what}");
            }
        }
        self.end(Duration::MAX)
    }

    /// Closes the queue, and works until nothing is left in it, for at most `limit`; then the workers are stopped.
    ///
    /// What was accepted is done, follow-ups that runs push included, and nothing else is accepted. Delayed items are waited
    /// for. [`Report::left`] says how many items are left at the deadline: a part of the work was not done if it is not 0.
    /// They stay in the queue, which stays closed. Workers that are in a run at the deadline are listed in [`Report::stuck`]
    /// and detached, as by [`shutdown`](Self::shutdown).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PushError, Workers};
    /// use std::time::Duration;
    ///
    /// let numbers = store.queue("numbers")?;
    /// let workers = Workers::builder(&numbers).threads(2).run(|number, tx| {
    ///     if *number > 0 {
    ///         tx.push(*number - 1)?;
    ///     }
    ///     Ok::<_, PushError<u32>>(())
    /// });
    /// numbers.push(9)?;
    /// let report = workers.finish(Duration::from_secs(30))?;
    /// assert_eq!((report.done, report.left), (10, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`join`](Self::join), or if the close could not be written. The workers are stopped then.
    pub fn finish(mut self, limit: Duration) -> Result<Report, StoreError> {
        self.queue.close()?;
        let _ = self.pool.wait(limit);
        self.pool.stop();
        self.pool.wait_for_idle();
        self.end(Duration::ZERO)
    }

    /// Stops all workers, and waits until they have finished their runs. Ready items stay in the queue: see
    /// [`finish`](Self::finish).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    /// use std::sync::mpsc::channel;
    ///
    /// let jobs = store.queue::<u32>("jobs")?;
    /// let (send, done) = channel();
    /// let workers = Workers::builder(&jobs).threads(2).run(move |job, _tx| send.send(*job * 10));
    /// jobs.push_batch([1, 2])?;
    /// assert_eq!(done.recv()? + done.recv()?, 30);
    /// assert_eq!(workers.stop()?.done, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`join`](Self::join).
    pub fn stop(self) -> Result<Report, StoreError> {
        self.shutdown(Duration::MAX)
    }

    /// Stops all workers, and waits for them for at most `timeout`. They take no more items: ready ones stay in the queue. To
    /// do what is left, call [`finish`](Self::finish).
    ///
    /// A thread cannot be killed: workers still running at the deadline are listed in [`Report::stuck`] and detached. They hold
    /// their items and keep the store open until their run ends, and end then. On a leased queue,
    /// [`DurableQueue::recover`] reclaims the items. Threads of [`run_scoped`](WorkersBuilder::run_scoped) are still joined by
    /// their scope.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let jobs = store.queue("jobs")?;
    /// let (send, begun) = channel();
    /// let workers = Workers::builder(&jobs).threads(1).run(move |_job, _tx| -> Result<(), ()> {
    ///     send.send(()).unwrap();
    ///     loop {
    ///         std::thread::park(); // hangs
    ///     }
    /// });
    /// jobs.push(7)?;
    /// begun.recv()?;
    /// assert_eq!(workers.shutdown(Duration::ZERO)?.stuck.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`join`](Self::join).
    pub fn shutdown(mut self, timeout: Duration) -> Result<Report, StoreError> {
        self.pool.stop();
        self.end(timeout)
    }

    /// Waits for the workers, and detaches those that are still running after `timeout`.
    fn end(&mut self, timeout: Duration) -> Result<Report, StoreError> {
        self.ended = true;
        let report = self.pool.wait(timeout);
        for (worker, thread) in self.pool.workers.iter().zip(mem::take(&mut self.threads)) {
            if worker.has_ended() {
                // Panics of runs were caught; a panicking destructor of the function ends only its thread.
                let _ = thread.join();
            }
        }
        let left = self.queue.left();
        Ok(Report { left, ..report? })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if !self.ended {
            self.pool.stop();
            let _ = self.end(Duration::MAX);
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("status", &self.status())
            .finish()
    }
}
