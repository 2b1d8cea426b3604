//! Queues of jobs.

use super::job::{Awaited, Work};
use super::{Job, Outcome};
use crate::order::Order;
use crate::{PushError, Queue};
use std::future::Future;

impl<O: Order<Job> + 'static> Queue<Job, O> {
    /// Pushes a closure as a [`Job`], and returns its outcome.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _workers = Workers::builder(&queue).run_jobs();
    /// let outcome = queue.submit(|| 6 * 7).unwrap();
    /// assert_eq!(outcome.wait()?, 42);
    /// # Ok::<(), requeue::JobError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Queue::push`], with the closure.
    pub fn submit<R, F>(&self, run: F) -> Result<Outcome<R>, PushError<F>>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        self.push_work(run)
    }

    /// Pushes a future as a [`Job`], and returns its outcome.
    ///
    /// The worker that takes it polls it: a task of `run_jobs_async` (feature `tokio`), or a thread of
    /// [`run_jobs`](crate::WorkersBuilder::run_jobs), which blocks on it without a runtime.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _tasks = Workers::builder(&queue).run_jobs_async();
    /// let outcome = queue.submit_async(async {
    ///     tokio::task::yield_now().await; // fetch something
    ///     6 * 7
    /// });
    /// assert_eq!(outcome.unwrap().await?, 42);
    /// # Ok::<(), requeue::JobError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Queue::push`], with the future.
    pub fn submit_async<F>(&self, future: F) -> Result<Outcome<F::Output>, PushError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let pushed = self.push_work(Awaited(future));
        pushed.map_err(|refused| map(refused, |Awaited(future)| future))
    }

    fn push_work<W: Work>(&self, work: W) -> Result<Outcome<W::Result>, PushError<W>> {
        let (job, outcome) = Job::of(work);
        match self.push(job) {
            Ok(()) => Ok(outcome),
            Err(refused) => Err(map(refused, Job::into_work)),
        }
    }
}

fn map<T, U>(refused: PushError<T>, change: impl FnOnce(T) -> U) -> PushError<U> {
    refused.map(change)
}
