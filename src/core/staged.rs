//! What few transactions need.

use crate::order::{Order, StoredOf, When};
use crate::policy::delay::Scheduled;
use crate::policy::unique::Staging;
use std::sync::Arc;
use std::time::Instant;

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
    pub(super) quiet: Option<Quiet>,
}

/// While `due` is the next due time, nothing is due from `from` until before `until`, and a lease that begins then ends at
/// `due` or later. So a take compares instants, and converts none: that is most of what a clock costs.
pub(super) struct Quiet {
    pub(super) due: u64,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

/// The staged items from `first` to before `end`.
pub(super) struct Call {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) when: When,
}

derive_default!([T, O: Order<T>] AtNeed<T, O> { loads, calls, taken, keys, quiet });
