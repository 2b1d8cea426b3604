//! Runs that fail, and what is told of them.

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

/// How long an item is out of the way after a run of it failed, unless its queue says.
const BACKOFF: Backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// A run that failed or panicked, as [`WorkersBuilder::on_error`](crate::WorkersBuilder::on_error) is told.
///
/// ```
/// use requeue::{Queue, Workers};
/// use std::sync::mpsc::channel;
///
/// let (tell, told) = channel();
/// let queue = Queue::unbounded();
/// queue.push("job")?;
/// queue.close();
/// let workers = Workers::builder(&queue)
///     .threads(1)
///     .on_error(move |failure| tell.send(failure.clone()).unwrap())
///     .run(|job, _| if job.attempts() < 3 { Err("not now") } else { Ok(()) });
/// assert_eq!(workers.join().failed, 2);
///
/// let failure = told.iter().last().unwrap();
/// assert_eq!((&*failure.worker, failure.items, failure.attempts), ("worker-0", 1, 2));
/// assert_eq!((&*failure.error, failure.panicked), ("\"not now\"", false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// How many items it gave back: those that the run had not given back or up by itself.
    pub items: usize,
    /// How often they were delivered, this time included: the most of them, 0 if there were none.
    pub attempts: u32,
    /// The error that the run returned, by its `Debug`, or what it panicked with, if that is a text.
    pub error: Arc<str>,
    /// Whether the run panicked.
    pub panicked: bool,
}

/// A run that went wrong.
pub(super) struct Trouble {
    pub(super) failure: Failure,
    /// What it panicked with.
    pub(super) payload: Option<Payload>,
}

impl Trouble {
    /// What a worker panicked with outside of a run.
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
            worker: worker.name(),
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

/// Gives back what the transaction of a run held that returned an error.
#[cold]
pub(super) fn give_back<T, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    error: impl Debug,
) -> RunStep {
    end(tx, worker, Reason::Aborted, text_of(error), None)
}

/// Gives back what the transaction of a run held that panicked.
#[cold]
pub(super) fn give_back_after_panic<T, O: Order<T>>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    payload: Payload,
) -> RunStep {
    let error = text_of_panic(&*payload);
    end(tx, worker, Reason::Panicked, error, Some(payload))
}

/// Tells of a run of which something has kept its item or its transaction, so that nobody can end that yet.
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

/// The text of what a panic carries.
pub(super) fn text_of_panic(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text").into()
}
