//! What is kept of the staged items of a transaction: those that are scheduled, and their keys.

use crate::order::{Order, StoredOf, When};
use crate::policy::delay::Scheduled;
use crate::policy::unique::Staging;
use std::sync::Arc;

/// The scheduled items of a transaction, and what its staged keys have in common.
pub(super) struct Staged<T, O: Order<T>> {
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

impl<T, O: Order<T>> Default for Staged<T, O> {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            taken: Vec::new(),
            keys: None,
        }
    }
}
