//! What is known of a desk and its deliveries.

use super::desk::Desk;
use super::seat::Seat;

/// A desk, and the deliveries of its open transaction.
pub(crate) struct Holder {
    pub(crate) desk: usize,
    /// How many deliveries have ended there before. With the desk, a number of the oldest that has not.
    pub(crate) ended: u64,
    /// How many are held.
    pub(crate) held: u64,
}

impl Holder {
    pub(super) fn new(number: usize, desk: &Desk) -> Self {
        let (ended, held) = desk.deliveries();
        Self {
            desk: number,
            ended,
            held,
        }
    }
}

impl<T> Seat<T> {
    /// What others know of this transaction.
    pub(crate) fn holder(&self) -> Holder {
        Holder::new(self.number(), self.desk())
    }
}
