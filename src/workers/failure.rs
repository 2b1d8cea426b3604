//! Runs that fail, and their reports.

use super::worker::{Ran, Worker};
use crate::sync::swallow_panic;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

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
    /// The `Debug` output of the error that the run returned, or the panic message, if it is a string.
    pub error: Arc<str>,
    /// Whether the run panicked.
    pub panicked: bool,
}

/// A failed run, with its panic payload.
pub(super) struct Trouble {
    pub(super) failure: Failure,
    /// The payload of the panic.
    pub(super) payload: Option<Payload>,
}

impl Trouble {
    /// A panic of a worker outside of a run.
    pub(super) fn of_panic(worker: &Worker, payload: Payload) -> Self {
        Self::new(worker, (0, 0), text_of_panic(&*payload), Some(payload))
    }

    pub(super) fn new(
        worker: &Worker,
        (items, attempts): (usize, u32),
        error: Arc<str>,
        payload: Option<Payload>,
    ) -> Self {
        let failure = Failure {
            worker: Arc::clone(worker.name()),
            items,
            attempts,
            error,
            panicked: payload.is_some(),
        };
        Self { failure, payload }
    }

    pub(super) fn ran(&self) -> Ran {
        if self.failure.panicked {
            Ran::Panicked
        } else {
            Ran::Failed
        }
    }
}

/// The text of an error. User code; its panics are caught.
pub(super) fn text_of(error: impl Debug) -> Arc<str> {
    let mut text = Arc::from("an error whose `Debug` panics");
    swallow_panic(|| text = format!("{error:?}").into());
    swallow_panic(|| drop(error));
    text
}

/// The text of a panic payload.
pub(super) fn text_of_panic(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text").into()
}
