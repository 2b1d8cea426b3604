//! Tickets.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Identifies an item of a priority queue, in this process and in later ones.
///
/// The ticket of a push that was not committed may be that of another item in a later process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub(crate) u64);

/// The tickets of items that were pushed as one.
#[derive(Clone, Debug)]
#[allow(unreachable_pub)] // in a sealed trait
pub struct Tickets(pub(crate) Range<u64>);

impl Tickets {
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.0.end - self.0.start).unwrap_or(usize::MAX)
    }

    pub(crate) fn first(self) -> Ticket {
        Ticket(self.0.start)
    }

    pub(crate) fn into_vec(self) -> Vec<Ticket> {
        self.0.map(Ticket).collect()
    }
}
