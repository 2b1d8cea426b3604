//! The settings of a pool.

use super::failure::{Failure, Hook};
use super::guard::WorkerGuard;
use super::pool::WorkerPool;
use super::Workers;
use crate::order::Order;
use crate::DurableQueue;
use requeue::Backoff;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The settings of a pool of workers, from [`Workers::builder`].
#[must_use = "a builder does nothing until the workers run"]
pub struct WorkersBuilder<T: Send + 'static, O: Order<T>> {
    pub(super) queue: DurableQueue<T, O>,
    count: Option<usize>,
    name: String,
    on_error: Option<Hook>,
    backoff: Backoff,
}

impl<T: Send + 'static, O: Order<T>> WorkersBuilder<T, O> {
    pub(super) fn new(queue: DurableQueue<T, O>) -> Self {
        let (first, cap) = (Duration::from_millis(10), Duration::from_secs(1));
        Self {
            queue,
            count: None,
            name: "worker".to_owned(),
            on_error: None,
            backoff: Backoff::exponential(first, cap),
        }
    }

    /// Sets the number of workers. The default is the available parallelism.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn threads(mut self, count: usize) -> Self {
        assert!(count > 0, "worker pool of 0 workers");
        self.count = Some(count);
        self
    }

    /// Sets the name of the pool: the workers and their threads are called `name-0`, `name-1` and so on. The default is
    /// `worker`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Calls `hook` after each run that failed or panicked. By then the items of the run were given back, or are dead
    /// letters, which are on the disk. A panic of the hook is ignored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    /// use std::sync::mpsc::channel;
    ///
    /// let (send, failures) = channel();
    /// let jobs = store.queue("jobs")?;
    /// jobs.push(7)?;
    /// jobs.close()?;
    /// let workers = Workers::builder(&jobs)
    ///     .threads(1)
    ///     .on_error(move |failure| send.send(failure.clone()).unwrap())
    ///     .run(|job, _tx| if job.attempts() < 2 { Err("not now") } else { Ok(()) });
    /// workers.join()?;
    /// let failure = failures.recv()?;
    /// assert_eq!((&*failure.worker, failure.error.as_str()), ("worker-0", "\"not now\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(hook));
        self
    }

    /// Sets the delay of the items of a failed run, unless the queue has a [backoff](crate::Builder::backoff) of its own. The
    /// default is 10 milliseconds, doubled with each failure up to a second.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    pub(super) fn pool(&self) -> Arc<WorkerPool> {
        let parallelism = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let count = self.count.unwrap_or_else(parallelism);
        let hook = self.on_error.clone();
        Arc::new(WorkerPool::new(&self.name, count, hook, self.backoff))
    }

    /// Starts a thread for each worker.
    #[track_caller]
    pub(super) fn start(&self, serve: impl Fn(WorkerGuard) + Send + Sync + 'static) -> Workers {
        let serve = Arc::new(serve);
        self.start_by(|thread, guard| {
            let serve = Arc::clone(&serve);
            thread.spawn(move || serve(guard)).map(Some)
        })
    }

    /// Starts a thread for each worker, by `spawn`, which returns it if the pool is to join it.
    #[track_caller]
    pub(super) fn start_by(
        &self,
        spawn: impl Fn(thread::Builder, WorkerGuard) -> io::Result<Option<JoinHandle<()>>>,
    ) -> Workers {
        let mut workers = Workers::new(self.pool(), &self.queue);
        for guard in WorkerGuard::all(&workers.pool, &self.queue.shared.store) {
            let thread = thread::Builder::new().name(guard.name().to_string());
            let started = spawn(thread, guard);
            workers
                .threads
                .extend(started.expect("the system refused to start a thread"));
        }
        workers
    }
}

impl<T: Send + 'static, O: Order<T>> fmt::Debug for WorkersBuilder<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersBuilder")
            .field("name", &self.name)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
