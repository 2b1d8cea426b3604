//! What a queue with a name tells the crates `metrics` and `tracing`, where those features are on.
//!
//! Without them nothing here does anything. Recorders and subscribers are user code: they run while no
//! lock is held, and if one panics the panic is caught.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

use crate::{Reason, Stats};
use std::sync::Arc;
use std::time::Duration;

/// Whether anybody could listen.
const LISTENS: bool = cfg!(any(feature = "metrics", feature = "tracing"));

/// Tells of one queue.
pub(crate) struct Telemetry {
    #[cfg_attr(
        not(any(feature = "metrics", feature = "tracing")),
        allow(dead_code) // nobody listens
    )]
    name: Arc<str>,
}

/// Something that happened in a queue.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "metrics", feature = "tracing")), allow(dead_code))] // not all is told
pub(crate) enum Event<'e> {
    /// An item was taken by a transaction; how long it was ready, if that is known.
    Delivered {
        attempts: u32,
        waited: Option<Duration>,
    },
    /// A transaction ended that held something; for how long.
    Released { held: Duration },
    /// A delivery failed, and the item is out of the way for a time.
    Delayed {
        attempts: u32,
        delay: Duration,
        error: Option<&'e str>,
    },
    /// A delivery failed, and the item is a dead letter.
    Died {
        attempts: u32,
        reason: Reason,
        error: Option<&'e str>,
    },
    /// Items were taken back from a worker.
    Expired {
        worker: Option<&'e str>,
        items: usize,
    },
    /// The queue was closed.
    Closed,
    /// Somebody looked at the counts.
    Counted(&'e Stats),
}

impl Telemetry {
    /// Tells of a queue if it has a name, and somebody could listen.
    pub(crate) fn of(name: Option<&Arc<str>>) -> Option<Self> {
        let name = name.filter(|_| LISTENS)?;
        Some(Self {
            name: Arc::clone(name),
        })
    }

    /// Tells what happened.
    #[allow(unused_variables, clippy::unused_self)] // where nobody listens
    pub(crate) fn emit(&self, event: Event<'_>) {
        #[cfg(feature = "metrics")]
        crate::sync::swallow_panic(|| metrics::record(&self.name, event));
        #[cfg(feature = "tracing")]
        crate::sync::swallow_panic(|| tracing::record(&self.name, event));
    }
}
