//! What is known of a counters and its deliveries.

use super::counters::Counters;
use super::endpoint::Endpoint;

/// A counters, and the deliveries of its open transaction.
pub(crate) struct Holder {
    pub(crate) counters: usize,
    /// How many deliveries have ended there before. With the counters, a number of the oldest that has not.
    pub(crate) ended: u64,
    /// How many are held.
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
    /// What others know of this transaction.
    pub(crate) fn holder(&self) -> Holder {
        Holder::new(self.number(), self.counters())
    }
}
