//! The reports of runs, and those that fail.

use super::worker::{Ran, Worker};
use crate::sync::swallow_panic;
use crate::Reason;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// The payload of a panic.
pub(super) type Payload = Box<dyn Any + Send>;

/// A run that failed or panicked, as reported to [`WorkersBuilder::on_error`](crate::WorkersBuilder::on_error).
///
/// ```
/// use requeue::{Queue, Workers};
/// use std::sync::mpsc::channel;
///
/// let (sender, failures) = channel();
/// let queue = Queue::unbounded();
/// queue.push("job")?;
/// queue.close();
/// let workers = Workers::builder(&queue)
///     .threads(1)
///     .on_error(move |failure| sender.send(failure.clone()).unwrap())
///     .run(|job, _| if job.attempts() < 3 { Err("not now") } else { Ok(()) });
/// assert_eq!(workers.join().failed, 2);
///
/// let failure = failures.iter().last().unwrap();
/// assert_eq!((&*failure.worker, failure.items, failure.attempts), ("worker-0", 1, 2));
/// assert_eq!((&*failure.error, failure.panicked), ("\"not now\"", false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// Number of items that were given back, without those that the run itself retried or failed.
    pub items: usize,
    /// The highest delivery count of these items, this delivery included; 0 if there were none.
    pub attempts: u32,
    /// The `Debug` output of the error that the run returned, or the panic message, if it is a string; or that the run took
    /// [too long](crate::WorkersBuilder::run_timeout).
    pub error: Arc<str>,
    /// Whether the run panicked.
    pub panicked: bool,
}

/// A run that was committed with all of its items, as reported to
/// [`WorkersBuilder::on_success`](crate::WorkersBuilder::on_success).
///
/// ```
/// use requeue::{Queue, Workers};
/// use std::sync::mpsc::channel;
///
/// let (sender, successes) = channel();
/// let queue = Queue::unbounded();
/// queue.push("job")?;
/// queue.close();
/// let workers = Workers::builder(&queue)
///     .on_success(move |success| sender.send(success.clone()).unwrap())
///     .run(|job, _| if job.attempts() < 3 { Err("not now") } else { Ok(()) });
/// assert_eq!(workers.join().done, 1);
///
/// let success = successes.recv()?;
/// assert_eq!((success.items, success.attempts), (1, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Success {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// Number of items that were committed.
    pub items: usize,
    /// The highest delivery count of these items, this delivery included.
    pub attempts: u32,
    /// How long the run took, by the queue's clock: from when it had its item, or the first of its batch, to its end. The
    /// commit does not count.
    pub took: Duration,
}

/// Why a run failed.
pub(super) struct RunError {
    pub(super) text: Arc<str>,
    /// The payload of a panic.
    payload: Option<Payload>,
}

impl RunError {
    pub(super) fn of(error: impl Debug) -> Self {
        Self::with(text_of(error))
    }

    pub(super) fn with(text: Arc<str>) -> Self {
        let payload = None;
        Self { text, payload }
    }

    pub(super) fn of_panic(payload: Payload) -> Self {
        let text = text_of_panic(&*payload).into();
        let payload = Some(payload);
        Self { text, payload }
    }

    pub(super) fn kind(&self) -> (Reason, Ran) {
        match self.payload {
            Some(_) => (Reason::Panicked, Ran::Panicked),
            None => (Reason::Failed, Ran::Failed),
        }
    }

    /// Calls the hooks, after so many items were given back, the highest count of whose deliveries is `attempts`. Panics of
    /// the hooks, or of the payload's destructor, are caught and ignored.
    pub(super) fn report(self, worker: &Worker, (items, attempts): (usize, u32), hooks: &Hooks) {
        let Self { text, payload } = self;
        let failure = Failure {
            worker: Arc::clone(worker.name()),
            items,
            attempts,
            error: text,
            panicked: payload.is_some(),
        };
        if let Some(hook) = &hooks.error {
            swallow_panic(|| hook(&failure));
        }
        if let (Some(hook), Some(payload)) = (&hooks.panic, &payload) {
            swallow_panic(|| hook(&failure.worker, &**payload));
        }
        swallow_panic(|| drop(payload));
    }
}

/// Is called with the name of a worker and the payload of the panic of its run.
type PanicHook = Arc<dyn Fn(&str, &(dyn Any + Send)) + Send + Sync>;
/// Is called with each failed run.
type ErrorHook = Arc<dyn Fn(&Failure) + Send + Sync>;

/// Is called with each run that was committed.
type SuccessHook = Arc<dyn Fn(&Success) + Send + Sync>;

/// What is called after runs.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) success: Option<SuccessHook>,
    pub(super) error: Option<ErrorHook>,
    pub(super) panic: Option<PanicHook>,
}

/// The text of an error. User code; its panics are caught.
fn text_of(error: impl Debug) -> Arc<str> {
    let mut text = Arc::from("an error whose `Debug` panics");
    swallow_panic(|| text = format!("{error:?}").into());
    swallow_panic(|| drop(error));
    text
}

/// The text of a panic payload.
#[doc(hidden)]
pub fn text_of_panic(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text")
}
