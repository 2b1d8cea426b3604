//! What few transactions need.

use crate::order::{Order, StoredOf, When};
use crate::policy::delay::Scheduled;
use crate::policy::unique::Staging;
use std::sync::Arc;

/// What few transactions need.
pub(super) struct AtNeed<T, O: Order<T>> {
    /// Its permits, if items have weights.
    /// How many permits the staged items need, and the held ones have.
    pub(super) loads: (usize, usize),
    /// The staged items that are scheduled.
    pub(super) calls: Vec<Call>,
    /// Those that are to be scheduled when the others are published.
    pub(super) taken: Vec<Scheduled<StoredOf<T, O>>>,
    /// `None` until it stages an item, if keys are unique.
    pub(super) keys: Option<Arc<Staging>>,
}

/// The staged items from `first` to before `end`.
pub(super) struct Call {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) when: When,
}

impl<T, O: Order<T>> Default for AtNeed<T, O> {
    fn default() -> Self {
        Self {
            loads: (0, 0),
            calls: Vec::new(),
            taken: Vec::new(),
            keys: None,
        }
    }
}
