//! A capacity that several queues share.

use super::Room;
use std::sync::Arc;

/// A capacity that several queues share: see [`Builder::budget`](crate::Builder::budget).
///
/// Clones are the same budget.
///
/// ```
/// use requeue::{Budget, Queue};
///
/// let budget = Budget::new(1_000);
/// let bodies = Queue::builder().weigh(|body: &Vec<u8>| body.len()).budget(&budget).build();
/// let names = Queue::builder().weigh(|name: &&str| name.len()).budget(&budget).build();
/// bodies.push(vec![0; 995])?;
/// names.push("body")?;
/// assert_eq!((budget.limit(), budget.free()), (1_000, 1));
/// assert!(names.push("other").unwrap_err().is_full());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Room>);

impl Budget {
    /// Makes a budget of this number of units, or of items where they have no [weights](crate::Builder::weigh).
    ///
    /// ```
    /// assert_eq!(requeue::Budget::new(8).limit(), 8);
    /// ```
    ///
    /// # Panics
    ///
    /// If `limit` is 0: nothing could be pushed.
    #[track_caller]
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "budget of 0: nothing could be pushed");
        Self(Arc::new(Room::new(limit, true)))
    }

    /// The total number of units.
    ///
    /// ```
    /// assert_eq!(requeue::Budget::new(8).limit(), 8);
    /// ```
    pub fn limit(&self) -> usize {
        self.0.capacity.limit()
    }

    /// The number of free units. Approximate under concurrency, exact at rest.
    ///
    /// ```
    /// assert_eq!(requeue::Budget::new(8).free(), 8);
    /// ```
    pub fn free(&self) -> usize {
        self.0.capacity.free()
    }

    pub(crate) fn room(&self) -> Arc<Room> {
        Arc::clone(&self.0)
    }
}

debug_struct!([] Budget, |budget| limit: budget.limit(), free: budget.free());
