//! Queues of jobs.

use super::job::Work;
use super::{Job, Outcome};
use crate::order::Order;
use crate::{PushError, Queue};
use std::sync::Arc;

impl<O: Order<Job> + 'static> Queue<Job, O> {
    /// Pushes a closure as a [`Job`], and returns what tells its outcome.
    ///
    /// ```
    /// use requeue::{Ended, Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let outcome = queue.submit(|| "never run")?;
    /// drop(queue);
    /// assert!(matches!(outcome.wait(), Ended::Dropped));
    /// # Ok::<(), requeue::PushError<_>>(())
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

    /// Turns a function into one that pushes its call as a [`Job`] and returns what tells its outcome.
    /// It keeps the queue alive.
    ///
    /// The function that is returned fails as [`Queue::push`] does, with the argument.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _workers = Workers::builder(&queue).run_jobs();
    /// let square = queue.wrap(|number: u32| number * number);
    /// let (three, four) = (square(3)?, square(4)?);
    /// assert_eq!(three.wait().unwrap() + four.wait().unwrap(), 25);
    /// # Ok::<(), requeue::PushError<u32>>(())
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
        let (queue, run) = (self.clone(), Arc::new(run));
        move |argument| {
            let run = Arc::clone(&run);
            let pushed = queue.push_work(Applied { run, argument });
            pushed.map_err(|refused| map(refused, |applied| applied.argument))
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

    fn work(self) -> R {
        (self.run)(self.argument)
    }
}

fn map<T, U>(refused: PushError<T>, change: impl FnOnce(T) -> U) -> PushError<U> {
    match refused {
        PushError::Full(item) => PushError::Full(change(item)),
        PushError::Closed(item) => PushError::Closed(change(item)),
    }
}
