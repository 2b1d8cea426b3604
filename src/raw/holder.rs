//! The identity of an open transaction, for other threads.

use super::counters::Counters;
use super::endpoint::Endpoint;

/// Counters, and the deliveries of their open transaction.
pub(crate) struct Holder {
    /// The number of the counters.
    pub(crate) counters: usize,
    /// The number of deliveries that ended there before. With the number of the counters, it identifies the oldest
    /// delivery that has not ended.
    pub(crate) ended: u64,
    /// The number of held items.
    pub(crate) held: u64,
}

impl Holder {
    pub(super) fn new(number: usize, counters: &Counters) -> Self {
        let (ended, held) = counters.deliveries();
        Self {
            counters: number,
            ended,
            held,
        }
    }
}

impl<T> Endpoint<T> {
    /// The identity of this transaction, for other threads.
    pub(crate) fn holder(&self) -> Holder {
        Holder::new(self.number(), self.counters())
    }
}
