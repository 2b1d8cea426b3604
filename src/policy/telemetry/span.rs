//! The span of a run of a worker pool, for subscribers of `tracing`.

use super::Telemetry;
use crate::sync::swallow_panic;
use crate::DeliveryId;

/// The span of a worker's run: nothing without the feature `tracing`, or if the queue has no name.
#[derive(Clone, Debug)]
pub struct RunSpan {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Telemetry {
    /// Opens the span of a run. A panic of a subscriber is caught.
    pub(crate) fn run_span(&self, worker: &str, id: DeliveryId, attempt: u32) -> RunSpan {
        let mut span = RunSpan::none();
        swallow_panic(|| span = RunSpan::open(&self.name, worker, id, attempt));
        span
    }
}

impl RunSpan {
    /// No span.
    pub fn none() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::Span::none(),
        }
    }

    /// Opens the span of a run, which is at the given attempt at its first item.
    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
    fn open(queue: &str, worker: &str, id: DeliveryId, attempt: u32) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(target: "requeue", "run", queue, worker, %id, attempt),
        }
    }

    /// Does a part of the run inside the span.
    #[inline]
    #[cfg_attr(not(feature = "tracing"), allow(clippy::unused_self))]
    pub(crate) fn in_scope<R>(&self, part: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tracing")]
        return self.span.in_scope(part);
        #[cfg(not(feature = "tracing"))]
        part()
    }
}
