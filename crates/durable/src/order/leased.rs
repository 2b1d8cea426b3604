//! Another order, with leases.

use super::Engine;
use crate::format::OrderTag;
use requeue::Leased;

/// An [`Order`](crate::Order) without leases, which a queue can [add](crate::Builder::leased). Sealed.
///
/// ```
/// use requeue_durable::{DurableQueue, Leased, Unleased};
/// use std::time::Instant;
///
/// /// Takes back what a worker holds, whatever the order is.
/// fn take_back<O: Unleased<u32>>(jobs: &DurableQueue<u32, Leased<O>>, worker: &str) -> usize {
///     jobs.recover(worker, Instant::now())
/// }
/// ```
#[allow(private_bounds)] // sealed
pub trait Unleased<T: Clone>: Engine<T, Ram: requeue::Unleased> {}

impl<T: Clone, O: Engine<T, Ram: requeue::Unleased>> Unleased<T> for O {}

impl<T: Clone + Send + 'static, O: Unleased<T>> Engine<T> for Leased<O> {
    type Key = O::Key;
    type Ram = Leased<O::Ram>;
    const TAG: OrderTag = O::TAG;

    fn unkeyed() -> Option<O::Key> {
        O::unkeyed()
    }
}
