//! The outcome of a job.

use super::block::{block_on, Driver};
use super::JobError;
use crate::sync::{lock, swallow_panic, Mutex};
use std::future::{poll_fn, Future};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The outcome of a [`Job`](crate::Job): wait for it on a thread, or await it as a future in a task. The
/// future needs no particular runtime. Dropping it does not affect the job.
///
/// A worker that waits for a job of its own pool can deadlock: there may be no free worker to run it.
///
/// ```
/// # futures::executor::block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// let _workers = Workers::builder(&queue).threads(1).run_jobs();
/// let outcome = queue.submit(|| 6 * 7).unwrap();
/// assert_eq!(outcome.await?, 42);
/// # Ok::<(), requeue::JobError>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// If it is polled after completion.
#[must_use = "it says whether the job panicked or was dropped"]
pub struct Outcome<R> {
    state: Arc<Mutex<OutcomeState<R>>>,
}

/// The result of a job, shared by its [`Reply`] and its [`Outcome`].
enum OutcomeState<R> {
    Open(Option<Waker>),
    Filled(Result<R, JobError>),
    Emptied,
}

impl<R> Outcome<R> {
    /// Waits until the job has ended, and returns its result.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| 7);
    /// job.run();
    /// assert_eq!(outcome.wait()?, 7);
    /// # Ok::<(), requeue::JobError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JobError`] if it panicked, or was dropped before it ended.
    pub fn wait(self) -> Result<R, JobError> {
        block_on(self)
    }

    verb! {
        wait(self) -> Result<Result<R, JobError>, Self>, |wait| {
            let ended = poll_fn(|context| self.poll_ended(context.waker()));
            Driver::new().drive_until(ended, wait).ok_or(self)
        };
        timed: "Returns the result of the job", "it",
        /// let (mut job, outcome) = requeue::Job::new(|| 7);
        waiting = outcome();
        /// let outcome = waiting.unwrap_err(); // it has not run
        /// job.run();
        /// assert_eq!(outcome.wait_timeout(Duration::ZERO).unwrap()?, 7);
        /// # Ok::<(), requeue::JobError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns `self`, to wait again, if the job has not ended in time. The inner result is that of [`wait`](Self::wait).
    }

    /// Whether the job has ended.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| 7);
    /// assert!(!outcome.has_ended());
    /// job.run();
    /// assert!(outcome.has_ended());
    /// ```
    pub fn has_ended(&self) -> bool {
        !matches!(*lock(&self.state), OutcomeState::Open(_))
    }

    #[track_caller]
    fn poll_ended(&self, waker: &Waker) -> Poll<Result<R, JobError>> {
        let mut waker = Some(waker.clone());
        let mut state = lock(&self.state);
        if let OutcomeState::Open(waiting) = &mut *state {
            mem::swap(waiting, &mut waker);
            drop(state);
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *state, OutcomeState::Emptied);
        drop(state);
        match ended {
            OutcomeState::Filled(ended) => Poll::Ready(ended),
            OutcomeState::Open(_) | OutcomeState::Emptied => {
                panic!("outcome polled after completion")
            }
        }
    }
}

impl<R> Future for Outcome<R> {
    type Output = Result<R, JobError>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R, JobError>> {
        self.poll_ended(context.waker())
    }
}

debug_struct!([R] Outcome<R>, |outcome| has_ended: outcome.has_ended());

/// Sends the result of a job. If it is dropped before, the job was dropped.
pub(super) struct Reply<R> {
    state: Arc<Mutex<OutcomeState<R>>>,
}

impl<R> Reply<R> {
    pub(super) fn new() -> (Self, Outcome<R>) {
        let state = Arc::new(Mutex::new(OutcomeState::Open(None)));
        let reply = Self {
            state: Arc::clone(&state),
        };
        (reply, Outcome { state })
    }

    /// Stores the result, unless there is one.
    pub(super) fn fill(&self, ended: Result<R, JobError>) {
        let mut state = lock(&self.state);
        let OutcomeState::Open(waiting) = &mut *state else {
            return;
        };
        let waiting = waiting.take();
        *state = OutcomeState::Filled(ended);
        drop(state);
        swallow_panic(|| waiting.into_iter().for_each(Waker::wake));
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.fill(Err(JobError::dropped()));
    }
}
