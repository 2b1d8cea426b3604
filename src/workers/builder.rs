//! The settings of a pool.

use super::failure::Hooks;
use super::pause::BACKOFF;
use super::pool::WorkerPool;
use super::step::{Batches, QueueWorker};
use super::worker::Worker;
use super::{AnyQueue, Failure, Success, Workers};
use crate::backend::Backend;
use crate::Backoff;
use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How many commits of the tasks of a pool are under way at most, if they wait for a disk or a server. More tasks share syncs as it is.
const IN_FLIGHT: usize = 256;

/// Settings of a new pool of workers, from [`Workers::builder`](crate::Workers::builder).
///
/// ```
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push(3)?;
/// queue.close();
/// let workers = Workers::builder(&queue).threads(2).name("count-down").run(|number, tx| {
///     if *number > 0 {
///         tx.push(*number - 1)?; // accepted after the close too; ready when this run is committed
///     }
///     Ok::<_, requeue::PushError<u32>>(())
/// });
/// assert_eq!(workers.join().done, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until the workers run"]
pub struct PoolBuilder<B> {
    queue: B,
    count: Option<NonZeroUsize>,
    name: String,
    linger: Duration,
    backoff: Backoff,
    pub(super) run_timeout: Option<Duration>,
    commits_in_flight: Option<usize>,
    hooks: Hooks,
}

impl<B: Backend> PoolBuilder<B> {
    pub(super) fn new(queue: B) -> Self {
        Self {
            queue,
            count: None,
            name: "worker".to_owned(),
            linger: Duration::ZERO,
            backoff: BACKOFF,
            run_timeout: None,
            commits_in_flight: None,
            hooks: Hooks::default(),
        }
    }

    /// The queue.
    pub fn queue(&self) -> &B {
        &self.queue
    }

    /// Sets the number of workers. The default is the available parallelism.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(3).run(|_, _| Ok::<(), ()>(()));
    /// assert_eq!(workers.status().len(), 3);
    /// ```
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn threads(mut self, count: usize) -> Self {
        let count = NonZeroUsize::new(count).expect("worker pool of 0 workers");
        self.count = Some(count);
        self
    }

    /// Sets the name of the pool: the workers, their threads and their handles are called `name-0`,
    /// `name-1` and so on. The default is `worker`.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).name("mail").run(|_, _| Ok::<(), ()>(()));
    /// assert_eq!(&*workers.status()[0].name, "mail-0");
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long a worker that runs on batches waits for more items after it has taken the first. The default is zero:
    /// a batch has those that are ready.
    ///
    /// A batch that is full runs at once, and so does what a worker has when it is stopped or paused, or the queue is
    /// closed and nothing is ready. Meanwhile the transaction holds the items: on a [leased](crate::Builder::leased) queue
    /// the time counts toward the lease.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// let workers = Workers::builder(&queue)
    ///     .threads(1)
    ///     .linger(Duration::from_secs(60))
    ///     .run_batches(3, |rows, _tx| {
    ///         assert_eq!(rows.len(), 3); // not one by one
    ///         Ok::<(), ()>(())
    ///     });
    /// for row in 0..6 {
    ///     queue.push(row)?;
    /// }
    /// queue.close();
    /// assert_eq!(workers.join().done, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Calls `hook` after each run that panicked, on the worker's thread, with the worker's name and
    /// the payload of the panic. By then the items of the run are back in the queue, or are dead letters. The worker
    /// goes on; a panic of the hook is ignored. [`on_error`](Self::on_error) is called for errors too, and gets
    /// their text.
    ///
    /// The panic of a [`Job`](crate::Job) goes to its [`Outcome`](crate::Outcome) and not to the hook.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::sync::mpsc::channel;
    ///
    /// let (sender, messages) = channel();
    /// let queue = Queue::unbounded();
    /// queue.push(0)?;
    /// let workers = Workers::builder(&queue)
    ///     .threads(1)
    ///     .on_panic(move |worker, payload| {
    ///         let message = payload.downcast_ref::<&str>().copied().unwrap_or("?");
    ///         let _ = sender.send(format!("{worker}: {message}"));
    ///     })
    ///     .run(|job, _| match job.attempts() {
    ///         1 => panic!("bad luck"),
    ///         _ => Ok::<(), ()>(()),
    ///     });
    /// assert_eq!(messages.recv()?, "worker-0: bad luck");
    /// # queue.close();
    /// # assert_eq!((workers.join().panicked, queue.stats().committed), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(
        mut self,
        hook: impl Fn(&str, &(dyn Any + Send)) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.panic = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` after each run that failed or panicked, on the worker's thread. By then the items of the run are
    /// back in the queue, or are dead letters, which keep the [error](crate::DeadLetter::error). The
    /// worker goes on; a panic of the hook is ignored.
    ///
    /// The panic of a [`Job`](crate::Job) goes to its [`Outcome`](crate::Outcome) and not to the hook.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.handle().push_batch(["7", "x"])?;
    /// queue.close();
    /// let workers = Workers::builder(&queue)
    ///     .on_error(|failure| eprintln!("{}: {}", failure.worker, failure.error))
    ///     .run(|text, _tx| match text.parse::<u32>() {
    ///         Err(wrong) if text.attempts() == 1 => Err(wrong),
    ///         _ => Ok(()),
    ///     });
    /// let report = workers.join();
    /// assert_eq!((report.done, report.failed), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.hooks.error = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` after each run that was committed with all of its items, on the worker's thread. A run that gave up an
    /// item has not succeeded, and neither has a [`Job`](crate::Job) that panicked. The worker is busy until the hook has
    /// returned, unless it goes on with [commits in flight](Self::commits_in_flight); a panic of the hook is ignored.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("report")?;
    /// queue.close();
    /// let workers = Workers::builder(&queue)
    ///     .on_success(|success| println!("{}: {:?}", success.worker, success.took))
    ///     .run(|_name, _tx| Ok::<(), ()>(()));
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_success(mut self, hook: impl Fn(&Success) + Send + Sync + 'static) -> Self {
        self.hooks.success = Some(Arc::new(hook));
        self
    }

    /// Sets when the items of a failed run are delivered again, if the queue has no backoff of its own. The default is
    /// after 10 milliseconds, doubled each time, up to a second.
    ///
    /// ```
    /// use requeue::{Backoff, Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// queue.push(1)?;
    /// queue.close();
    /// let builder = Workers::builder(&queue).backoff(Backoff::fixed(Duration::ZERO)); // at once
    /// let workers = builder.run(|item, _tx| if item.attempts() < 3 { Err("busy") } else { Ok(()) });
    /// assert_eq!(workers.join().failed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how long a run of a task may take, by the queue's clock. The default is unlimited.
    ///
    /// A future of `run_async`, `run_batches_async` or [`run_on`](Self::run_on) that takes longer is dropped. Its run has
    /// failed: the items are given back, and [`Failure::error`] says why. A run that blocks its thread ends when it
    /// waits again. The time before the run, in which the worker [lingers](Self::linger), and that of the commit do not count.
    ///
    /// Threads cannot be cancelled, and have no such limit: [`WorkerState::Busy`](crate::WorkerState::Busy) says since when one
    /// runs, and [`Report::stuck`](crate::Report::stuck) which have not ended. Neither have [jobs](crate::Job), which
    /// cannot be run again.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::builder().max_attempts(1).build();
    /// queue.push("https://example.org/")?;
    /// queue.close();
    /// let builder = Workers::builder(&queue).threads(1).run_timeout(Duration::from_millis(20));
    /// let spawn = |worker| drop(std::thread::spawn(|| block_on(worker)));
    /// let workers = builder.run_on(spawn, |_page, _tx| {
    ///     std::future::pending::<Result<(), ()>>() // there is no answer
    /// });
    /// assert_eq!(workers.join().failed, 1);
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!(letter.error(), Some("the run took longer than 20ms"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("cancel", "deadline"))]
    pub fn run_timeout(mut self, limit: Duration) -> Self {
        self.run_timeout = Some(limit);
        self
    }

    /// Sets how many commits of a task may be under way while it runs on the next items. The default is 256 divided by the number of
    /// tasks if commits wait for a disk or a server, and otherwise 0: a task waits for the commit of each run.
    ///
    /// Each run is one commit all the same, and counts as done when that has ended; if it fails, the run has failed, though the
    /// task is busy with another one. If the process dies, up to `count` more runs of each task that had ended are repeated:
    /// those of the last milliseconds. A pool that stops waits for its commits. Threads wait for each commit, and on disk
    /// and in a database tasks wait for those of runs that push, so that these come in the order of the runs.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push_batch(0..100)?;
    /// queue.close();
    /// let builder = Workers::builder(&queue).tasks(1).commits_in_flight(16);
    /// let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
    /// assert_eq!(tasks.join().await.done, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[doc(alias("pipeline", "ahead"))]
    pub fn commits_in_flight(mut self, count: usize) -> Self {
        self.commits_in_flight = Some(count);
        self
    }

    /// A new pool, its workers, which are still to be started, and what makes each of them one of its queue.
    #[allow(clippy::type_complexity)] // named once
    pub(super) fn workers<'q>(
        self,
    ) -> (
        Workers<AnyQueue<'q>>,
        Vec<Arc<Worker>>,
        impl Fn(Arc<Worker>) -> QueueWorker<B> + Send + Sync + 'q,
    )
    where
        B: 'q,
    {
        let count = self.count.or_else(|| thread::available_parallelism().ok());
        let count = count.map_or(1, NonZeroUsize::get);
        let waits = usize::from(self.queue.commits_wait());
        let commits_in_flight = self.commits_in_flight.unwrap_or(waits * IN_FLIGHT / count);
        let pool = WorkerPool::new(self.name, self.hooks);
        let workers = pool.resize(count);
        let started = Workers::new(Arc::clone(&pool), AnyQueue::of(&self.queue));
        let (queue, backoff) = (self.queue, self.backoff);
        let run_timeout = self.run_timeout.map(|limit| (limit, queue.clock()));
        let of_queue = move |worker| QueueWorker {
            queue: queue.clone(),
            pool: Arc::clone(&pool),
            worker,
            backoff,
            run_timeout: run_timeout.clone(),
            commits_in_flight,
        };
        (started, workers, of_queue)
    }

    /// The settings of batches of up to `max` items.
    ///
    /// # Panics
    ///
    /// If `max` is 0.
    #[track_caller]
    pub(super) fn batches(&self, max: usize) -> Batches {
        assert!(max > 0, "batches of 0 items");
        let linger = self.linger;
        Batches { max, linger }
    }
}

impl<B> fmt::Debug for PoolBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersBuilder")
            .field("name", &self.name)
            .field("count", &self.count)
            .field("linger", &self.linger)
            .finish_non_exhaustive()
    }
}
