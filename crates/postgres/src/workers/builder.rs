//! The settings of a pool.

use super::task::{work, RunTransaction, Worker};
use super::tasks::{Counts, Tasks};
use crate::error::Error;
use crate::item::PgItem;
use crate::queue::PgQueue;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A run that failed, as reported to [`WorkersBuilder::on_error`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The index of the task.
    pub worker: usize,
    /// How often the item of the run was delivered; 0 if the task could not take an item.
    pub attempts: u32,
    /// The `Debug` output of the error that the run returned, the message of its panic, or the error of the database.
    pub error: Arc<str>,
    /// Whether the run panicked.
    pub panicked: bool,
    /// The error of the database, if it is one: of a pop, of a commit, or when a failed run was undone.
    pub database: Option<Error>,
}

pub(super) type OnError = Arc<dyn Fn(&Failure) + Send + Sync>;

/// Builds a pool of workers, from [`PgQueue::workers`].
#[must_use = "a builder does nothing until the workers run"]
pub struct WorkersBuilder<T> {
    queue: PgQueue<T>,
    tasks: usize,
    on_error: OnError,
}

impl<T> WorkersBuilder<T> {
    pub(crate) fn new(queue: PgQueue<T>) -> Self {
        Self {
            queue,
            tasks: std::thread::available_parallelism().map_or(1, usize::from),
            on_error: Arc::new(|_| {}),
        }
    }

    /// Sets the number of tasks, and so of items in work; the number of processors by default. A task in locked mode has a
    /// [connection](crate::Options::max_connections) while it works.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn tasks(mut self, count: usize) -> Self {
        assert!(count > 0, "workers without tasks");
        self.tasks = count;
        self
    }

    /// Sets a callback for failures. Its panics are caught.
    pub fn on_error(mut self, on_error: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.on_error = Arc::new(on_error);
        self
    }

    /// Spawns tasks that run `run` on one item at a time, each in a transaction of its own: `Ok` commits; `Err`, a panic and a
    /// failed commit undo the run. Then the item is tried again after the [backoff](crate::Builder::backoff) of its queue, or
    /// becomes a [dead letter](PgQueue::dead_letters) with the error.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{Error, PgQueue, Postgres};
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let jobs: PgQueue<u32> = db.builder("jobs").max_attempts(5).build();
    /// let workers = jobs.workers().tasks(8).run_async(|job, tx| async move {
    ///     if *job > 0 {
    ///         tx.push(*job - 1).await?; // visible when the run is committed
    ///     }
    ///     Ok::<_, Error>(())
    /// });
    /// tokio::signal::ctrl_c().await.expect("a signal");
    /// println!("{} jobs done", workers.stop().await.done);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn run_async<E, F, R>(self, run: F) -> Tasks
    where
        T: Send + 'static,
        E: fmt::Debug + 'static,
        F: Fn(PgItem<T>, RunTransaction<T>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        let (run, stop) = (Arc::new(run), watch::Sender::new(false));
        let counts: Arc<Counts> = Arc::default();
        let mut spawned = JoinSet::new();
        for index in 0..self.tasks {
            let worker = Worker {
                index,
                queue: self.queue.clone(),
                stop: stop.subscribe(),
                counts: Arc::clone(&counts),
                on_error: Arc::clone(&self.on_error),
            };
            spawned.spawn(work(worker, Arc::clone(&run)));
        }
        let core = Arc::clone(&self.queue.core);
        let count_left = Box::new(move || count_left(self.queue.clone()));
        Tasks::new(spawned, stop, counts, core, count_left)
    }
}

fn count_left<T: Send + 'static>(
    queue: PgQueue<T>,
) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move {
        let stats = queue.stats().await?;
        Ok(stats.ready + stats.delayed + stats.held)
    })
}

impl<T> fmt::Debug for WorkersBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersBuilder")
            .field("queue", &self.queue)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
