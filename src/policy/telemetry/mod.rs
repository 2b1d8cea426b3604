//! Events that a queue with a name emits to the crates `metrics` and `tracing`, if those features are enabled.
//!
//! Without them this module does nothing. Recorders and subscribers are user code: they run while no
//! lock is held, and their panics are caught.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "workers")]
mod span;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "workers")]
pub use span::RunSpan;

#[allow(unused_imports)] // where nothing is emitted
use crate::sync::swallow_panic;
use crate::{Reason, Stats};
use std::sync::Arc;
use std::time::Duration;

/// Whether events can be observed.
const LISTENS: bool = cfg!(any(feature = "metrics", feature = "tracing"));

/// Emits the events of one queue.
pub(crate) struct Telemetry {
    #[cfg_attr(
        not(any(feature = "metrics", feature = "tracing")),
        allow(dead_code) // events are not observed
    )]
    name: Arc<str>,
}

/// Something that happened in a queue.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "metrics", feature = "tracing")), allow(dead_code))] // some fields are not emitted
pub(crate) enum Event<'e> {
    /// An item was delivered to a transaction; `age`: the time since its first push, `waited`: how long it was ready, if
    /// known.
    Delivered {
        attempts: u32,
        age: Option<Duration>,
        waited: Option<Duration>,
    },
    /// A transaction that held items ended; `held`: for how long.
    Released { held: Duration },
    /// Deliveries failed, and the items are ready again at once.
    Retried { reason: Reason, items: usize },
    /// A delivery failed, and the item is delayed.
    Delayed {
        attempts: u32,
        reason: Reason,
        delay: Duration,
        error: Option<&'e str>,
    },
    /// A delivery failed, and the item is a dead letter.
    Died {
        attempts: u32,
        reason: Reason,
        error: Option<&'e str>,
    },
    /// Items were reclaimed from a worker.
    Expired {
        worker: Option<&'e str>,
        items: usize,
    },
    /// The time to live of items was over.
    TimedOut { items: usize },
    /// The queue was closed.
    Closed,
    /// The counts were read.
    Counted(&'e Stats),
}

impl Telemetry {
    /// Creates the telemetry of a queue if it has a name and events can be observed.
    pub(crate) fn of(name: Option<&Arc<str>>) -> Option<Self> {
        let name = name.filter(|_| LISTENS)?;
        #[cfg(feature = "metrics")]
        swallow_panic(metrics::describe);
        Some(Self {
            name: Arc::clone(name),
        })
    }

    /// Emits an event.
    #[allow(unused_variables, clippy::unused_self)] // if events are not observed
    pub(crate) fn emit(&self, event: Event<'_>) {
        #[cfg(feature = "metrics")]
        swallow_panic(|| metrics::record(&self.name, event));
        #[cfg(feature = "tracing")]
        swallow_panic(|| tracing::record(&self.name, event));
    }
}
