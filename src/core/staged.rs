//! The staged items of a transaction that are scheduled.

use crate::order::{Order, StoredOf, When};
use crate::policy::delay::Scheduled;

/// The scheduled items of a transaction.
pub(super) struct Staged<T, O: Order<T>> {
    pub(super) calls: Vec<Call>,
    /// Those that are to be scheduled when the others are published.
    pub(super) taken: Vec<Scheduled<StoredOf<T, O>>>,
}

/// The staged items from `first` to before `end`.
pub(super) struct Call {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) when: When,
}

impl<T, O: Order<T>> Default for Staged<T, O> {
    fn default() -> Self {
        let (calls, taken) = (Vec::new(), Vec::new());
        Self { calls, taken }
    }
}
