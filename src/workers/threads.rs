//! A pool of worker threads.

use super::any_queue::Thread;
use super::block::{block_on, Driver};
use super::pool::WorkerPool;
use super::worker::{Command, Worker};
use super::{AnyQueue, PoolBuilder, Report, WorkerStatus};
use crate::backend::Backend;
use crate::Wait;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// Threads that wait for the items of a queue, run a function on each, and commit if it succeeds. The queue may be any
/// [`Backend`]: in memory, on disk, or another.
///
/// A worker waits for an item, runs, and ends the transaction: `Ok` commits it, `Err` and a panic abort
/// it. A panic is caught, counted and reported to a hook, and the worker goes on. A
/// worker ends when it is stopped, or when the queue is closed and drained. Runs can
/// [push follow-up items](crate::Queue::close) after the close, and the pool ends when all of them are done.
///
/// # Failed runs
///
/// The items of a run that failed or panicked are delivered again after 10 milliseconds, after their second delivery
/// after 20, and so on, up to a second, unless the queue has its own [backoff](crate::Builder::backoff):
/// `Backoff::fixed(Duration::ZERO)` retries at once, like a bare [`Transaction`](crate::Transaction).
/// Retries are unlimited, unless the queue has a limit: see
/// [`max_attempts`](crate::Builder::max_attempts). A run moves an item that can never succeed to the dead-letter queue with
/// [`Transaction::fail`](crate::Transaction::fail).
///
/// [`on_error`](crate::WorkersBuilder::on_error) is called with the error or panic message of a failed run; the
/// [dead letter](crate::DeadLetter::error) keeps it. Errors are formatted with `Debug`, as in `main`, and
/// only when a run has failed. A run whose transaction was committed has not failed, even if a destructor of its
/// items panics afterwards; that panic is caught.
///
/// `Q` is the queue without its types. It is of use only to name the type of a [scoped](crate::WorkersBuilder::run_scoped) pool.
///
/// # Stopping
///
/// [`finish`](Self::finish) closes the queue and does what is left, within a time. Dropping the pool stops it, like
/// [`stop`](Self::stop): it waits for the current runs, and ready items stay in the queue. A pool must not be stopped,
/// joined or dropped by one of its own workers, which would deadlock.
///
/// ```
/// use requeue::{Queue, Workers};
/// use std::sync::mpsc::channel;
///
/// let queue = Queue::<u32>::unbounded();
/// let (send, done) = channel();
/// let workers = Workers::builder(&queue).threads(2).run(move |job, _tx| send.send(*job * 10));
/// queue.push(1)?;
/// queue.push(2)?;
/// assert_eq!(done.recv()? + done.recv()?, 30);
/// let report = workers.stop();
/// assert_eq!((report.done, report.panicked), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "workers stop when they are dropped"]
pub struct Workers<Q = AnyQueue<'static>> {
    pub(super) pool: Arc<WorkerPool>,
    pub(super) queue: Q,
    /// Those that no scope joins.
    pub(super) threads: Vec<Thread>,
    /// Whether nothing is to be done at the drop.
    pub(super) ended: bool,
}

impl Workers {
    /// Returns a builder for a pool of workers of `queue`.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).threads(2);
    /// assert!(format!("{builder:?}").contains("worker"));
    /// ```
    pub fn builder<B: Backend>(queue: &B) -> PoolBuilder<B> {
        PoolBuilder::new(queue.clone())
    }
}

impl<'q> Workers<AnyQueue<'q>> {
    pub(super) fn new(pool: Arc<WorkerPool>, queue: AnyQueue<'q>) -> Self {
        Self {
            pool,
            queue,
            threads: Vec::new(),
            ended: false,
        }
    }

    /// Returns the state and the counters of each worker, by index.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(2).run(|_, _| Ok::<(), ()>(()));
    /// assert_eq!(workers.status()[1].done, 0);
    /// ```
    pub fn status(&self) -> Vec<WorkerStatus> {
        self.pool.status(&self.queue)
    }

    /// Makes this a pool of `size` workers, while it runs. No run is interrupted: of a pool that becomes smaller, the last
    /// workers end after their present run, and [`status`](Self::status) shows them until then, after the others. Their runs
    /// remain in the [`Report`].
    ///
    /// New workers are not paused. A pool of size 0 takes no items: its last worker stays, paused, until the pool is resized,
    /// [resumed](Self::resume_all) or [finished](Self::finish). Workers of a pool that was stopped, or whose queue is
    /// closed and drained, end at once.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let mut workers = Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
    /// workers.resize(3); // there is more to do
    /// assert_eq!(workers.size(), 3);
    /// queue.push_batch(0..100)?;
    /// queue.wait_idle();
    /// workers.resize(0); // nothing for a while
    /// queue.push(100)?;
    /// workers.resize(1);
    /// queue.close();
    /// assert_eq!(workers.join().done, 101);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread; the pool then has the workers that were started, and others that have
    /// ended. If a pool of [`run_on`](crate::WorkersBuilder::run_on) would become larger: what spawns its futures is gone.
    #[doc(alias("scale", "grow", "shrink"))]
    #[track_caller]
    pub fn resize(&mut self, size: usize) {
        let can_grow = self.queue.1.is_some() || size <= self.size().max(1);
        assert!(can_grow, "a pool of `run_on` cannot become larger");
        let workers = self.pool.resize(size);
        self.threads.retain(|(worker, _)| !worker.has_ended());
        self.start(workers);
    }

    /// Returns the number of workers, without those that are to end after their present run.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(2).run(|_, _| Ok::<(), ()>(()));
    /// assert_eq!(workers.size(), 2);
    /// ```
    pub fn size(&self) -> usize {
        self.pool.size()
    }

    #[track_caller]
    pub(super) fn start(&mut self, workers: Vec<Arc<Worker>>) {
        if let Some(start) = &self.queue.1 {
            let started = start(workers, &mut self.threads);
            started.expect("the system refused to start a thread");
        }
    }

    /// Pauses a worker: it finishes its run and takes no more items until it is resumed. A worker that is about to
    /// take an item may still do so; in the state [`Paused`](super::WorkerState::Paused) it takes none.
    ///
    /// A paused worker does not notice that the queue is closed.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause(0);
    /// workers.resume(0);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no worker of that index.
    #[track_caller]
    pub fn pause(&self, index: usize) {
        self.pool.worker(index).command(Command::Pause);
    }

    /// Resumes a paused worker.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.close();
    /// let workers = requeue::Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause(0);
    /// workers.resume(0);
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no worker of that index.
    #[track_caller]
    pub fn resume(&self, index: usize) {
        self.pool.worker(index).command(Command::Work);
    }

    /// Pauses all workers; see [`pause`](Self::pause).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause_all();
    /// workers.resume_all();
    /// ```
    pub fn pause_all(&self) {
        self.pool.command_all(Command::Pause);
    }

    /// Resumes all workers; see [`resume`](Self::resume).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause_all();
    /// workers.resume_all();
    /// ```
    pub fn resume_all(&self) {
        self.pool.command_all(Command::Work);
    }

    /// Waits until all workers have ended because the queue is closed and drained.
    ///
    /// Without a [`close`](crate::Queue::close) it waits forever. A debug build says so once, when all workers of an open queue are
    /// idle: by a warning of `tracing`, if that feature is enabled, otherwise on the standard error.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// queue.push("last")?;
    /// queue.close();
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(mut self) -> Report {
        block_on(self.pool.join(&self.queue, true));
        self.end(Duration::MAX)
    }

    /// Closes the queue, and works until nothing is left in it, for at most `limit`; then the workers are stopped.
    ///
    /// A queue that cannot be closed, one in `PostgreSQL`, is asked from time to time whether something is left.
    ///
    /// It is for the end of a service: what was accepted is done, follow-ups that runs push included, and nothing else
    /// is accepted. Delayed items are waited for. Paused workers are resumed. [`Report::left`] says how many items are left
    /// at the deadline: a part of the work was not done if it is not 0. They stay in the queue. Workers that are in a run at
    /// the deadline are listed in [`Report::stuck`] and detached, as by [`shutdown`](Self::shutdown).
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// let workers = Workers::builder(&queue).threads(2).run(|number, tx| {
    ///     if *number > 0 {
    ///         tx.push(*number - 1)?;
    ///     }
    ///     Ok::<_, requeue::PushError<u32>>(())
    /// });
    /// queue.push(99)?;
    /// let report = workers.finish(Duration::from_secs(30));
    /// assert_eq!((report.done, report.left), (100, 0));
    /// assert!(queue.push(1).unwrap_err().is_closed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(mut self, limit: Duration) -> Report {
        block_on(self.pool.finish(&self.queue, limit));
        self.end(Duration::ZERO)
    }

    /// Stops all workers, and waits until they have finished their runs. Ready items stay in the queue: see
    /// [`finish`](Self::finish).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// assert!(workers.stop().stuck.is_empty());
    /// ```
    pub fn stop(self) -> Report {
        self.shutdown(Duration::MAX)
    }

    /// Stops all workers, and waits for them for at most `timeout`. They take no more items: ready ones stay in the queue.
    /// To do what is left, call [`finish`](Self::finish).
    ///
    /// A thread cannot be killed: workers still running at the deadline are listed in
    /// [`Report::stuck`] and detached. They hold their items and keep their queue alive until their run ends, and
    /// end then. On a leased queue, [`Queue::recover`](crate::Queue::recover) reclaims the items.
    /// Threads of [`run_scoped`](crate::WorkersBuilder::run_scoped) are still joined by their scope.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// let (send, begun) = channel();
    /// let workers = Workers::builder(&queue).threads(1).run(move |_job, _tx| -> Result<(), ()> {
    ///     send.send(()).unwrap();
    ///     loop {
    ///         std::thread::park(); // hangs
    ///     }
    /// });
    /// queue.push("job")?;
    /// begun.recv()?;
    /// assert_eq!(workers.shutdown(Duration::ZERO).stuck.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(mut self, timeout: Duration) -> Report {
        self.pool.command_all(Command::Stop);
        self.end(timeout)
    }

    /// Waits for the workers, and detaches those that are still running after `timeout`.
    fn end(&mut self, timeout: Duration) -> Report {
        self.wait(timeout);
        block_on(self.pool.report(&self.queue))
    }
}

impl<Q> Workers<Q> {
    fn wait(&mut self, timeout: Duration) {
        self.ended = true;
        Driver::new().drive_until(self.pool.all_ended(), Wait::For(timeout));
        for (worker, thread) in mem::take(&mut self.threads) {
            if worker.has_ended() {
                // Panics of runs were caught; a panicking destructor of the function ends only this thread.
                let _ = thread.join();
            }
        }
    }
}

impl<Q> Drop for Workers<Q> {
    fn drop(&mut self) {
        if !self.ended {
            self.pool.command_all(Command::Stop);
            self.wait(Duration::MAX);
        }
    }
}

debug_struct!([Q] Workers<Q>, |workers| workers: workers.pool.size());
