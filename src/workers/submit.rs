//! Queues of jobs.

use super::job::{Awaited, Begun, Work};
use super::outcome::Reply;
use super::{Job, Outcome};
use crate::order::Order;
use crate::{PushError, Queue};
use std::future::Future;
use std::sync::Arc;

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

    /// Turns a function into one that pushes its call as a [`Job`] and returns its outcome.
    /// The function keeps the queue alive.
    ///
    /// The returned function fails like [`Queue::push`], and returns the argument.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _workers = Workers::builder(&queue).run_jobs();
    /// let square = queue.wrap(|number: u32| number * number);
    /// let (three, four) = (square(3)?, square(4)?);
    /// assert_eq!(three.wait()? + four.wait()?, 25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrap<A, R, F>(
        &self,
        run: F,
    ) -> impl Fn(A) -> Result<Outcome<R>, PushError<A>> + Clone + Send + Sync
    where
        A: Send + 'static,
        R: Send + 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
    {
        self.wrap_by(run, |run, argument| Applied { run, argument })
    }

    /// Turns an async function into one that pushes its call as a [`Job`], like [`wrap`](Self::wrap). The call
    /// itself, up to its first `.await`, is part of the job.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _tasks = Workers::builder(&queue).run_jobs_async();
    /// let square = queue.wrap_async(|number: u32| async move { number * number });
    /// assert_eq!(square(3)?.await? + square(4)?.await?, 25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn wrap_async<A, F, Fut>(
        &self,
        run: F,
    ) -> impl Fn(A) -> Result<Outcome<Fut::Output>, PushError<A>> + Clone + Send + Sync
    where
        A: Send + 'static,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let apply = |run, argument| AppliedAsync(Applied { run, argument });
        self.wrap_by(run, apply)
    }

    fn wrap_by<A, F, W>(
        &self,
        run: F,
        apply: impl Fn(Arc<F>, A) -> W + Clone + Send + Sync,
    ) -> impl Fn(A) -> Result<Outcome<W::Result>, PushError<A>> + Clone + Send + Sync
    where
        F: Send + Sync + 'static,
        W: Work + Into<Argument<A>>,
    {
        let (queue, run) = (self.clone(), Arc::new(run));
        move |argument| {
            let pushed = queue.push_work(apply(Arc::clone(&run), argument));
            pushed.map_err(|refused| map(refused, |applied| applied.into().0))
        }
    }

    fn push_work<W: Work>(&self, work: W) -> Result<Outcome<W::Result>, PushError<W>> {
        let (job, outcome) = Job::of(work);
        match self.push(job) {
            Ok(()) => Ok(outcome),
            Err(refused) => Err(map(refused, Job::into_work)),
        }
    }
}

/// A function and its argument.
struct Applied<F, A> {
    run: Arc<F>,
    argument: A,
}

impl<A, R, F> Work for Applied<F, A>
where
    A: Send + 'static,
    R: Send + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
{
    type Result = R;

    fn begin(self, reply: Reply<R>) -> Begun {
        let Self { run, argument } = self;
        (move || run(argument)).begin(reply)
    }
}

/// An async function and its argument.
struct AppliedAsync<F, A>(Applied<F, A>);

impl<A, F, Fut> Work for AppliedAsync<F, A>
where
    A: Send + 'static,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    type Result = Fut::Output;

    fn begin(self, reply: Reply<Fut::Output>) -> Begun {
        let Applied { run, argument } = self.0;
        Awaited(async move { run(argument).await }).begin(reply)
    }
}

/// The argument of a call whose push was refused.
struct Argument<A>(A);

impl<F, A> From<Applied<F, A>> for Argument<A> {
    fn from(applied: Applied<F, A>) -> Self {
        Self(applied.argument)
    }
}

impl<F, A> From<AppliedAsync<F, A>> for Argument<A> {
    fn from(applied: AppliedAsync<F, A>) -> Self {
        applied.0.into()
    }
}

fn map<T, U>(refused: PushError<T>, change: impl FnOnce(T) -> U) -> PushError<U> {
    match refused {
        PushError::Full(item) => PushError::Full(change(item)),
        PushError::Closed(item) => PushError::Closed(change(item)),
    }
}
