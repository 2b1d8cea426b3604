//! What became of a job.

use super::JobError;
use crate::sync::{lock, swallow_panic, Mutex};
use crate::time::Time;
use crate::wait::{block, Deadline};
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The outcome of a [`Job`](crate::Job), to wait for on a thread or, as a future, in a task. The
/// future needs no particular runtime. Dropping it changes nothing for the job.
///
/// A worker that waits for a job of its own pool may wait for ever: nobody may be free to run it.
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
/// When it is polled after it was ready.
#[must_use = "it says whether the job panicked or was dropped"]
pub struct Outcome<R> {
    place: Arc<Mutex<OutcomeState<R>>>,
}

/// Where a job leaves how it ended.
enum OutcomeState<R> {
    Open(Option<Waker>),
    Filled(Result<R, JobError>),
    Emptied,
}

impl<R> Outcome<R> {
    /// Waits until the job has ended, and gives what it returned.
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
        loop {
            if let Some(ended) = block(Deadline::NEVER, |wake_target| {
                self.poll_ended(wake_target.waker)
            }) {
                return ended;
            }
        }
    }

    /// Waits until the job has ended, but no longer than `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut job, outcome) = requeue::Job::new(|| 7);
    /// let outcome = outcome.wait_timeout(Duration::ZERO).unwrap_err();
    /// job.run();
    /// assert_eq!(outcome.wait_timeout(Duration::ZERO).unwrap()?, 7);
    /// # Ok::<(), requeue::JobError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Itself, to wait again, if the time is over. The result inside is that of [`wait`](Self::wait).
    pub fn wait_timeout(self, timeout: Duration) -> Result<Result<R, JobError>, Self> {
        let time = Time::system();
        let deadline = Deadline::after(&time, Some(timeout));
        block(deadline, |wake_target| self.poll_ended(wake_target.waker)).ok_or(self)
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
        !matches!(*lock(&self.place), OutcomeState::Open(_))
    }

    #[track_caller]
    fn poll_ended(&self, waker: &Waker) -> Poll<Result<R, JobError>> {
        let mut waker = Some(waker.clone());
        let mut place = lock(&self.place);
        if let OutcomeState::Open(waiting) = &mut *place {
            mem::swap(waiting, &mut waker);
            drop(place);
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *place, OutcomeState::Emptied);
        drop(place);
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

impl<R> fmt::Debug for Outcome<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

/// Where a job says how it ended; unless it does, it was dropped.
pub(super) struct Reply<R> {
    place: Arc<Mutex<OutcomeState<R>>>,
}

impl<R> Reply<R> {
    pub(super) fn new() -> (Self, Outcome<R>) {
        let place = Arc::new(Mutex::new(OutcomeState::Open(None)));
        let reply = Self {
            place: Arc::clone(&place),
        };
        (reply, Outcome { place })
    }

    pub(super) fn send(self, ended: Result<R, JobError>) {
        self.fill(ended);
    }

    /// Says how the job ended, unless it has been said.
    fn fill(&self, ended: Result<R, JobError>) {
        let mut place = lock(&self.place);
        let OutcomeState::Open(waiting) = &mut *place else {
            return;
        };
        let waiting = waiting.take();
        *place = OutcomeState::Filled(ended);
        drop(place);
        swallow_panic(|| waiting.into_iter().for_each(Waker::wake));
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.fill(Err(JobError::dropped()));
    }
}
