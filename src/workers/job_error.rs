//! Why a job has no result.

use super::failure::{text_of_panic, Payload};
use crate::sync::{lock, Mutex};
use std::error::Error;
use std::{fmt, mem};

/// Why a [`Job`](crate::Job) has no result: it panicked, or it was dropped before it ended.
///
/// ```
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// let _workers = Workers::builder(&queue).threads(1).run_jobs();
/// let printed = queue.submit(|| -> u32 { panic!("out of paper") })?;
/// assert_eq!(printed.wait().unwrap_err().to_string(), "job panicked: out of paper");
/// # Ok::<(), requeue::PushError<_>>(())
/// ```
pub struct JobError {
    /// The payload of the panic, in a lock because errors are expected to be `Sync`.
    payload: Option<Mutex<Payload>>,
}

impl JobError {
    pub(super) fn panicked(payload: Payload) -> Self {
        let payload = Some(Mutex::new(payload));
        Self { payload }
    }

    pub(super) fn dropped() -> Self {
        Self { payload: None }
    }

    /// Whether the job panicked.
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| panic!("out of paper"));
    /// job.run();
    /// assert!(outcome.wait().unwrap_err().is_panic());
    /// ```
    pub fn is_panic(&self) -> bool {
        self.payload.is_some()
    }

    /// Whether the job was dropped before it ended: with its queue, after a pop, or with the task that ran it.
    ///
    /// ```
    /// let (job, outcome) = requeue::Job::new(|| 7);
    /// drop(job);
    /// assert!(outcome.wait().unwrap_err().is_dropped());
    /// ```
    pub fn is_dropped(&self) -> bool {
        self.payload.is_none()
    }

    /// Returns the payload of the panic, for [`resume_unwind`](std::panic::resume_unwind).
    ///
    /// ```
    /// let (mut job, outcome) = requeue::Job::new(|| panic!("out of paper"));
    /// job.run();
    /// let payload = outcome.wait().unwrap_err().into_panic().unwrap();
    /// assert_eq!(payload.downcast_ref(), Some(&"out of paper"));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns `self` if the job did not panic.
    pub fn into_panic(self) -> Result<Payload, Self> {
        let payload = self.payload.ok_or_else(Self::dropped)?;
        let payload = mem::replace(&mut *lock(&payload), Box::new(()));
        Ok(payload)
    }
}

impl Error for JobError {}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.payload {
            Some(payload) => write!(f, "job panicked: {}", text_of_panic(&**lock(payload))),
            None => f.write_str("job was dropped before it ended"),
        }
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(payload) = &self.payload else {
            return f.write_str("Dropped");
        };
        let payload = lock(payload);
        let text = text_of_panic(&**payload);
        f.debug_tuple("Panicked").field(&text).finish()
    }
}
