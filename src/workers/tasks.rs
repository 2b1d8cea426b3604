//! A pool of tasks.

use super::pause::for_at_most;
use super::spawn::{Futures, FuturesOf};
use super::worker::Command;
use super::{Report, WorkerStatus, Workers};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Tasks of a tokio runtime that wait for the items of a queue, run a function on each, and commit if it
/// succeeds, like [`Workers`] with threads. Feature `tokio`.
///
/// A task ends when it is stopped, or when the queue is closed and drained. Dropping the pool aborts the
/// tasks: their items are given back.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.handle().push_batch(["a", "b"])?;
/// queue.close();
/// let tasks = Workers::builder(&queue).tasks(4).run_async(|page, _tx| async move {
///     tokio::task::yield_now().await; // fetch the page
///     if page.attempts() == 1 { Err("timed out") } else { Ok(()) }
/// });
/// let report = tasks.join().await;
/// assert_eq!((report.done, report.failed), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "tasks are aborted when they are dropped"]
pub struct Tasks {
    workers: Workers,
    spawned: JoinSet<()>,
    futures: FuturesOf,
    /// The futures of [`Tasks::stop_by`], aborted with the pool.
    watch: JoinSet<()>,
}

impl Tasks {
    #[track_caller]
    pub(super) fn new((mut workers, futures, first): Futures) -> Self {
        workers.ended = true; // they need no wait: they are aborted
        let (mut spawned, watch) = (JoinSet::new(), JoinSet::new());
        for worker in first {
            spawned.spawn(worker);
        }
        Self {
            workers,
            spawned,
            futures,
            watch,
        }
    }

    /// Makes this a pool of `size` tasks, while it runs, as [`Workers::resize`] does with threads.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(1);
    /// let mut tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// tasks.resize(100);
    /// assert_eq!(tasks.size(), 100);
    /// queue.push_batch(0..1000)?;
    /// queue.close();
    /// assert_eq!(tasks.join().await.done, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if the pool becomes larger.
    #[doc(alias("scale", "grow", "shrink"))]
    #[track_caller]
    pub fn resize(&mut self, size: usize) {
        while self.spawned.try_join_next().is_some() {}
        for worker in (self.futures)(self.workers.pool.resize(size)) {
            self.spawned.spawn(worker);
        }
    }

    /// Returns the number of tasks, without those that are to end after their present run.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(2);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// assert_eq!(tasks.size(), 2);
    /// # });
    /// ```
    pub fn size(&self) -> usize {
        self.workers.size()
    }

    /// Returns the state and the counters of each task, by index.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(2);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// assert_eq!(tasks.status()[1].done, 0);
    /// # });
    /// ```
    pub fn status(&self) -> Vec<WorkerStatus> {
        self.workers.status()
    }

    /// Pauses a task: it finishes its run and takes no more items until it is resumed, as with
    /// [`Workers::pause`].
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(1);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// tasks.pause(0);
    /// tasks.resume(0);
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no task of that index.
    #[track_caller]
    pub fn pause(&self, index: usize) {
        self.workers.pause(index);
    }

    /// Resumes a paused task.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(1);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// tasks.pause(0);
    /// tasks.resume(0);
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no task of that index.
    #[track_caller]
    pub fn resume(&self, index: usize) {
        self.workers.resume(index);
    }

    /// Pauses all tasks; see [`pause`](Self::pause).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(2);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// tasks.pause_all();
    /// tasks.resume_all();
    /// # });
    /// ```
    pub fn pause_all(&self) {
        self.workers.pause_all();
    }

    /// Resumes all tasks; see [`resume`](Self::resume).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(2);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// tasks.pause_all();
    /// tasks.resume_all();
    /// # });
    /// ```
    pub fn resume_all(&self) {
        self.workers.resume_all();
    }

    /// Stops the pool when a future is ready, whatever its output: the tasks finish their runs, and take no more items.
    /// Can be called more than once; the first future that is ready stops the pool.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let queue = Queue::<u32>::unbounded();
    /// let tasks = Workers::builder(&queue)
    ///     .run_async(|_, _| async { Ok::<(), ()>(()) })
    ///     .stop_by(tokio::signal::ctrl_c())
    ///     .stop_by(stopped);
    /// drop(stop);
    /// tasks.join().await;
    /// # });
    /// ```
    ///
    /// For a `CancellationToken` of the crate `tokio-util`, pass `token.cancelled_owned()`. A future that panics does not
    /// stop the pool.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn stop_by<F: Future + Send + 'static>(mut self, stop: F) -> Self {
        let pool = Arc::clone(&self.workers.pool);
        self.watch.spawn(async move {
            let output = stop.await;
            pool.command_all(Command::Stop);
            drop(output); // user code
        });
        self
    }

    /// Waits until all tasks have ended, because the queue is closed and drained or a
    /// [future](Self::stop_by) was ready.
    ///
    /// Without either it waits forever. A debug build says so once, as [`Workers::join`] does.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// queue.close();
    /// assert_eq!(tasks.join().await.done, 0);
    /// # });
    /// ```
    pub async fn join(mut self) -> Report {
        let pool = &self.workers.pool;
        pool.join(&self.workers.queue, self.watch.is_empty()).await;
        self.end().await
    }

    /// Closes the queue, and works until nothing is left in it, for at most `limit`, like
    /// [`Workers::finish`]. Tasks that are in a run at the deadline are aborted at their next
    /// `.await`, as by [`shutdown`](Self::shutdown). [`Report::left`] says how many items are left.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(2);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// queue.push_batch(0..100)?;
    /// let report = tasks.finish(Duration::from_secs(30)).await;
    /// assert_eq!((report.done, report.left), (100, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn finish(mut self, limit: Duration) -> Report {
        let pool = &self.workers.pool;
        pool.finish(&self.workers.queue, limit).await;
        self.abort().await
    }

    /// Stops all tasks, and waits until they have finished their runs. Ready items stay in the queue: see
    /// [`finish`](Self::finish).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// assert!(tasks.stop().await.stuck.is_empty());
    /// # });
    /// ```
    pub async fn stop(self) -> Report {
        self.workers.pool.command_all(Command::Stop);
        self.join().await
    }

    /// Stops all tasks, waits for them for at most `limit`, and then aborts those that are still running at their
    /// next `.await`. Their items are given back; [`Report::stuck`] lists them. To do what is left, call
    /// [`finish`](Self::finish).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::{future::pending, time::Duration};
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("hangs")?;
    /// let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
    /// let builder = requeue::Workers::builder(&queue).tasks(1);
    /// let tasks = builder.run_async(move |_, _| {
    ///     begin.send(()).unwrap();
    ///     pending::<Result<(), ()>>()
    /// });
    /// begun.recv().await;
    /// assert_eq!(tasks.shutdown(Duration::ZERO).await.stuck.len(), 1);
    /// assert_eq!(queue.pop()?, "hangs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn shutdown(mut self, limit: Duration) -> Report {
        let pool = &self.workers.pool;
        pool.command_all(Command::Stop);
        for_at_most(limit, pool.all_ended()).await;
        self.abort().await
    }

    /// Aborts the tasks that are left.
    async fn abort(&mut self) -> Report {
        let stuck = Report::of(Report::default(), self.status()).stuck;
        self.spawned.abort_all();
        Report {
            stuck,
            ..self.end().await
        }
    }

    async fn end(&mut self) -> Report {
        while self.spawned.join_next().await.is_some() {}
        self.workers.pool.report(&self.workers.queue).await
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        drop(self.workers.queue.0.pool_ended()); // begins at the call
    }
}

debug_struct!([] Tasks, |tasks| tasks: tasks.size());
