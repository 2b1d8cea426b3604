//! The outcome of one transaction of a worker, and how one ends that was not committed.

use super::failure::{text_of, text_of_panic, Payload, Trouble};
use super::worker::{Ran, Worker};
use crate::order::Order;
use crate::policy::retry::Cause;
use crate::{Backoff, Reason, Transaction};
use std::fmt::Debug;
use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::thread;
use std::time::Duration;

/// The delay of an item after a failed run, unless its queue has a backoff.
const BACKOFF: Backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// The outcome of one transaction.
pub(super) enum RunStep {
    Ran(Ran),
    /// The items were given back.
    Failed(Box<Trouble>),
    /// No item was taken: the worker was interrupted by a command.
    Interrupted,
    /// No item was taken: the queue is closed and drained.
    Closed,
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
