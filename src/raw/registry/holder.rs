//! The identity of an open transaction, for other threads.

use crate::raw::registry::counters::Counters;

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
    pub(in crate::raw) fn new(number: usize, counters: &Counters) -> Self {
        let (ended, held) = counters.deliveries();
        Self {
            counters: number,
            ended,
            held,
        }
    }
}
