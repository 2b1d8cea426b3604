//! Tickets.

use serde::{Deserialize, Serialize};

/// Identifies an item of a priority queue, in this process and in later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub(crate) u64);
