//! Closures and futures as items of a queue.

use super::block::block_on;
use super::caught::Caught;
use super::outcome::Reply;
use super::{JobError, Outcome};
use crate::sync::swallow_panic;
use std::any::Any;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::thread;

/// A closure or a future that runs once, as an item of a queue.
///
/// [`Queue::submit`](crate::Queue::submit) and [`Queue::submit_async`](crate::Queue::submit_async) create a job and push
/// it. To push one by a handle, in a batch or in a transaction, create it with [`Job::new`] or [`Job::new_async`]:
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
/// assert_eq!(outcome.wait()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A job that a transaction took and did not run is given back when the transaction aborts, and delivered again.
#[must_use = "a job that is dropped does not run"]
pub struct Job {
    call: Option<Box<dyn Call>>,
}

/// A future that runs a job; true if the job returned.
type Running = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A job after its start.
pub(super) enum Begun {
    /// It has ended; true if it returned.
    Ended(bool),
    Running(Running),
}

/// The type-erased content of a job.
trait Call: Any + Send {
    fn begin(self: Box<Self>) -> Begun;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A closure, a future or a call that a job runs.
pub(super) trait Work: Send + 'static {
    type Result: Send + 'static;

    /// Runs it, or makes a future that will, and sends the result to `reply`.
    fn begin(self, reply: Reply<Self::Result>) -> Begun;
}

impl<R: Send + 'static, F: FnOnce() -> R + Send + 'static> Work for F {
    type Result = R;

    fn begin(self, reply: Reply<R>) -> Begun {
        let ended = catch_unwind(AssertUnwindSafe(self));
        Begun::Ended(report(reply, ended))
    }
}

/// A job that is a future.
pub(super) struct Awaited<F>(pub(super) F);

impl<F: Future + Send + 'static> Work for Awaited<F>
where
    F::Output: Send + 'static,
{
    type Result = F::Output;

    fn begin(self, reply: Reply<F::Output>) -> Begun {
        let running = Caught::new(Box::pin(self.0));
        Begun::Running(Box::pin(async { report(reply, running.await) }))
    }
}

/// Sends the result of a job; true if it returned.
fn report<R>(reply: Reply<R>, ended: thread::Result<R>) -> bool {
    let returned = ended.is_ok();
    // If the outcome was dropped, the destructor of the result runs here, which is user code.
    swallow_panic(move || reply.fill(ended.map_err(JobError::panicked)));
    returned
}

impl<W: Work> Call for (W, Reply<W::Result>) {
    fn begin(self: Box<Self>) -> Begun {
        let (work, reply) = *self;
        work.begin(reply)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Job {
    /// Creates a job from a closure, and its outcome.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| "sent");
    /// assert!(job.run());
    /// assert_eq!(outcome.wait()?, "sent");
    /// # Ok::<(), requeue::JobError>(())
    /// ```
    pub fn new<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> (Self, Outcome<R>) {
        Self::of(run)
    }

    /// Creates a job from a future, and its outcome.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new_async(async { "sent" });
    /// assert!(job.run()); // on this thread, which waits for it
    /// assert_eq!(outcome.wait()?, "sent");
    /// # Ok::<(), requeue::JobError>(())
    /// ```
    pub fn new_async<R: Send + 'static>(
        future: impl Future<Output = R> + Send + 'static,
    ) -> (Self, Outcome<R>) {
        Self::of(Awaited(future))
    }

    pub(super) fn of<W: Work>(work: W) -> (Self, Outcome<W::Result>) {
        let (reply, outcome) = Reply::new();
        let call: Box<dyn Call> = Box::new((work, reply));
        (Self { call: Some(call) }, outcome)
    }

    /// Runs the job, unless it has run. Returns true if it ran and returned. A panic is caught, and reported by the
    /// outcome. If the job is a future, the thread blocks on it, without any runtime except the caller's.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| panic!("out of paper"));
    /// assert!(!job.run());
    /// assert!(!job.run()); // a job runs once
    /// assert!(outcome.wait().is_err());
    /// ```
    pub fn run(&mut self) -> bool {
        match self.begin() {
            Begun::Ended(returned) => returned,
            Begun::Running(running) => block_on(running),
        }
    }

    /// Runs the job like [`run`](Self::run), but awaits it if it is a future. A closure runs at the first poll.
    ///
    /// Not cancel safe: if the future is dropped after the job has started, the job is dropped, and its outcome says so.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (mut job, outcome) = requeue::Job::new_async(async { "sent" });
    /// assert!(job.run_async().await);
    /// assert_eq!(outcome.await?, "sent");
    /// # Ok::<(), requeue::JobError>(())
    /// # }).unwrap();
    /// ```
    pub async fn run_async(&mut self) -> bool {
        match self.begin() {
            Begun::Ended(returned) => returned,
            Begun::Running(running) => running.await,
        }
    }

    fn begin(&mut self) -> Begun {
        let call = self.call.take();
        call.map_or(Begun::Ended(false), Call::begin)
    }

    /// Returns the content of a job that has not run.
    ///
    /// # Panics
    ///
    /// If it is of another type, or has run.
    pub(super) fn into_work<W: Work>(self) -> W {
        let call = self.call.map(Call::into_any);
        let call = call.and_then(|call| call.downcast::<(W, Reply<W::Result>)>().ok());
        call.expect("a job of this type that has not run").0
    }
}

debug_struct!([] Job, |job| has_run: job.call.is_none());
