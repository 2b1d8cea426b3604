//! What became of a job.

use crate::sync::{lock, swallow_panic, Mutex};
use crate::time::Time;
use crate::wait::{block, Deadline};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How a [`Job`](crate::Job) ended.
///
/// ```
/// use requeue::{Ended, Job};
///
/// let (mut job, outcome) = Job::new(|| -> u32 { panic!("out of paper") });
/// job.run();
/// let Ended::Panicked(payload) = outcome.wait() else { unreachable!() };
/// assert_eq!(payload.downcast_ref(), Some(&"out of paper"));
/// ```
pub enum Ended<R> {
    /// It returned.
    Done(R),
    /// It panicked with this.
    Panicked(Box<dyn Any + Send>),
    /// It was dropped without having been run.
    Dropped,
}

impl<R> Ended<R> {
    /// What the job returned, if it did.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| "sent");
    /// job.run();
    /// assert_eq!(outcome.wait().done(), Some("sent"));
    /// ```
    pub fn done(self) -> Option<R> {
        match self {
            Self::Done(result) => Some(result),
            Self::Panicked(_) | Self::Dropped => None,
        }
    }

    /// What the job returned.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| 7);
    /// job.run();
    /// assert_eq!(outcome.wait().unwrap(), 7);
    /// ```
    ///
    /// # Panics
    ///
    /// If the job panicked, its panic goes on here. If it was dropped.
    #[track_caller]
    pub fn unwrap(self) -> R {
        match self {
            Self::Done(result) => result,
            Self::Panicked(payload) => resume_unwind(payload),
            Self::Dropped => panic!("the job was dropped without having been run"),
        }
    }
}

impl<R> fmt::Debug for Ended<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done(_) => "Done(..)",
            Self::Panicked(_) => "Panicked(..)",
            Self::Dropped => "Dropped",
        })
    }
}

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
/// let outcome = queue.submit(|| 6 * 7)?;
/// assert_eq!(outcome.await.unwrap(), 42);
/// # Ok::<(), requeue::PushError<_>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// When it is polled after it was ready.
#[must_use = "it says whether the job panicked or was dropped"]
pub struct Outcome<R> {
    place: Arc<Mutex<Place<R>>>,
}

/// Where a job leaves how it ended.
enum Place<R> {
    Open(Option<Waker>),
    Filled(Ended<R>),
    Emptied,
}

impl<R> Outcome<R> {
    /// Waits until the job has ended.
    ///
    /// ```
    /// let (job, outcome) = requeue::Job::new(|| 7);
    /// drop(job);
    /// assert!(matches!(outcome.wait(), requeue::Ended::Dropped));
    /// ```
    pub fn wait(self) -> Ended<R> {
        loop {
            if let Some(ended) = block(Deadline::NEVER, |waiter| self.poll_ended(waiter.waker)) {
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
    /// assert_eq!(outcome.wait_timeout(Duration::ZERO).unwrap().done(), Some(7));
    /// ```
    ///
    /// # Errors
    ///
    /// Itself, to wait again, if the time is over.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Ended<R>, Self> {
        let time = Time::system();
        let deadline = Deadline::after(&time, Some(timeout));
        block(deadline, |waiter| self.poll_ended(waiter.waker)).ok_or(self)
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
        !matches!(*lock(&self.place), Place::Open(_))
    }

    #[track_caller]
    fn poll_ended(&self, waker: &Waker) -> Poll<Ended<R>> {
        let mut waker = Some(waker.clone());
        let mut place = lock(&self.place);
        if let Place::Open(waiting) = &mut *place {
            mem::swap(waiting, &mut waker);
            drop(place);
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *place, Place::Emptied);
        drop(place);
        match ended {
            Place::Filled(ended) => Poll::Ready(ended),
            Place::Open(_) | Place::Emptied => panic!("outcome polled after completion"),
        }
    }
}

impl<R> Future for Outcome<R> {
    type Output = Ended<R>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended<R>> {
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
    place: Arc<Mutex<Place<R>>>,
}

impl<R> Reply<R> {
    pub(super) fn new() -> (Self, Outcome<R>) {
        let place = Arc::new(Mutex::new(Place::Open(None)));
        let reply = Self {
            place: Arc::clone(&place),
        };
        (reply, Outcome { place })
    }

    pub(super) fn send(self, ended: Ended<R>) {
        self.fill(ended);
    }

    /// Says how the job ended, unless it has been said.
    fn fill(&self, ended: Ended<R>) {
        let mut place = lock(&self.place);
        let Place::Open(waiting) = &mut *place else {
            return;
        };
        let waiting = waiting.take();
        *place = Place::Filled(ended);
        drop(place);
        swallow_panic(|| waiting.into_iter().for_each(Waker::wake));
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.fill(Ended::Dropped);
    }
}
