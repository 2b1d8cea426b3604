//! Runs that fail, and their reports.

use super::crew::Payload;
use super::work::RunStep;
use super::worker::{Ran, Worker};
use crate::order::Order;
use crate::policy::retry::Cause;
use crate::sync::swallow_panic;
use crate::{Backoff, Reason, Transaction};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::thread;
use std::time::Duration;

/// The delay of an item after a failed run, unless its queue has a backoff.
const BACKOFF: Backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

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

    fn new(
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

/// Aborts the transaction of a run that returned an error.
#[cold]
pub(super) fn give_back<T, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    error: impl Debug,
) -> RunStep {
    end(tx, worker, Reason::Failed, text_of(error), None)
}

/// Aborts the transaction of a run that panicked.
#[cold]
pub(super) fn give_back_after_panic<T, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    payload: Payload,
) -> RunStep {
    let error = text_of_panic(&*payload);
    end(tx, worker, Reason::Panicked, error, Some(payload))
}

/// The failure of a run whose item or transaction is still kept somewhere, so that it cannot be ended yet.
#[cfg(feature = "tokio")]
#[cold]
pub(super) fn kept<E: Debug>(worker: &Worker, ended: thread::Result<Result<(), E>>) -> RunStep {
    let (error, payload) = match ended {
        Ok(Ok(())) => (
            "the run's item or transaction is kept after its end".into(),
            None,
        ),
        Ok(Err(error)) => (text_of(error), None),
        Err(payload) => (text_of_panic(&*payload), Some(payload)),
    };
    RunStep::Failed(Box::new(Trouble::new(worker, (0, 0), error, payload)))
}

fn end<T, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    reason: Reason,
    error: Arc<str>,
    payload: Option<Payload>,
) -> RunStep {
    let deliveries = tx.abort_for(&Cause {
        reason,
        error: Some(Arc::clone(&error)),
        backoff: Some(BACKOFF),
    });
    RunStep::Failed(Box::new(Trouble::new(worker, deliveries, error, payload)))
}

/// The text of an error. User code; its panics are caught.
fn text_of(error: impl Debug) -> Arc<str> {
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
