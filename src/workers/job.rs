//! Closures as items of a queue.

use super::outcome::Reply;
use super::{Ended, Outcome};
use crate::sync::swallow_panic;
use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A closure that runs once, as an item of a queue.
///
/// [`Queue::submit`](crate::Queue::submit) makes one and pushes it. Whoever pushes by a handle, in a batch
/// or in a transaction makes it by [`Job::new`]:
///
/// ```
/// use requeue::{Job, Queue, Workers};
///
/// let queue = Queue::unbounded();
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// let (job, outcome) = Job::new(|| 6 * 7);
/// tx.push(job)?;
/// tx.commit();
///
/// let _workers = Workers::builder(&queue).threads(1).run_jobs();
/// assert_eq!(outcome.wait().done(), Some(42));
/// # Ok::<(), requeue::PushError<Job>>(())
/// ```
///
/// A job that was taken by a transaction and not run goes back with it, and is run by another.
#[must_use = "a job that is dropped does not run"]
pub struct Job {
    call: Option<Box<dyn Call>>,
}

/// What a job calls.
trait Call: Any + Send {
    /// Calls it: true if it returned.
    fn call(self: Box<Self>) -> bool;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// What a job runs, where it is one value.
pub(super) trait Work: Send + 'static {
    type Result: Send + 'static;
    fn work(self) -> Self::Result;
}

impl<R: Send + 'static, F: FnOnce() -> R + Send + 'static> Work for F {
    type Result = R;

    fn work(self) -> R {
        self()
    }
}

struct Task<W: Work> {
    work: W,
    reply: Reply<W::Result>,
}

impl<W: Work> Call for Task<W> {
    fn call(self: Box<Self>) -> bool {
        let Self { work, reply } = *self;
        let ended = match catch_unwind(AssertUnwindSafe(|| work.work())) {
            Ok(result) => Ended::Done(result),
            Err(payload) => Ended::Panicked(payload),
        };
        let returned = matches!(ended, Ended::Done(_));
        // If nobody waits for it its destructor runs, which is user code.
        swallow_panic(|| reply.send(ended));
        returned
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Job {
    /// Makes a job, and what tells its outcome.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| "sent");
    /// assert!(job.run());
    /// assert_eq!(outcome.wait().unwrap(), "sent");
    /// ```
    pub fn new<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> (Self, Outcome<R>) {
        Self::of(run)
    }

    pub(super) fn of<W: Work>(work: W) -> (Self, Outcome<W::Result>) {
        let (reply, outcome) = Reply::new();
        let call = Some(Box::new(Task { work, reply }) as Box<dyn Call>);
        (Self { call }, outcome)
    }

    /// Runs the job, unless it has run: true if it ran and returned. A panic is caught, and told by the
    /// outcome.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| panic!("out of paper"));
    /// assert!(!job.run());
    /// assert!(!job.run()); // nothing is left of it
    /// assert!(matches!(outcome.wait(), requeue::Ended::Panicked(_)));
    /// ```
    pub fn run(&mut self) -> bool {
        self.call.take().is_some_and(Call::call)
    }

    /// What the job would have run, if it has not run.
    ///
    /// # Panics
    ///
    /// If it is not of that type, or has run.
    pub(super) fn into_work<W: Work>(self) -> W {
        let call = self.call.map(Call::into_any);
        let task = call.and_then(|call| call.downcast::<Task<W>>().ok());
        task.expect("a job that was made of it, and has not run")
            .work
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("has_run", &self.call.is_none())
            .finish()
    }
}
