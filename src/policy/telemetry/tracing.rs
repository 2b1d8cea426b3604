//! Events for subscribers of `tracing`, with the target `requeue`.

use super::Event;
use tracing::{debug, info, trace, warn};

pub(super) fn record(queue: &str, event: Event<'_>) {
    match event {
        Event::Delivered {
            attempts,
            age,
            waited,
        } => {
            trace!(target: "requeue", queue, attempts, ?age, ?waited, "an item was taken");
        }
        Event::Released { held } => {
            trace!(target: "requeue", queue, ?held, "a transaction ended");
        }
        Event::Delayed {
            attempts,
            reason,
            delay,
            error,
        } => {
            debug!(target: "requeue", queue, attempts, ?reason, ?delay, error, "an item is to be retried");
        }
        Event::Died {
            attempts,
            reason,
            error,
        } => {
            warn!(target: "requeue", queue, attempts, ?reason, error, "an item is a dead letter");
        }
        Event::Expired { worker, items } => {
            warn!(target: "requeue", queue, worker, items, "items were taken back");
        }
        Event::TimedOut { items } => {
            debug!(target: "requeue", queue, items, "the time to live of items was over");
        }
        Event::Closed => info!(target: "requeue", queue, "the queue was closed"),
        Event::Retried { .. } | Event::Counted(_) => {}
    }
}
