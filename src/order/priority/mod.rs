//! By priority and schedule.
//!
//! Items are pushed with their metadata, a [`meta::PriorityMeta`], which contains the priority. A [`heap::PriorityHeap`]
//! determines the next item. Where the times of pushes are kept, those at which scheduled items were due are in the
//! [`times::DueTimes`] until the items are removed.

mod by_priority;
mod heap;
mod levels;
mod meta;
mod times;

pub(crate) use by_priority::TicketSource;
pub use by_priority::{ByPriority, Prioritized};

pub(crate) use heap::{AgeStep, PriorityHeap};
pub(crate) use meta::{PriorityMeta, DEFAULT_PRIORITY};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use times::tests::sizes;
pub(crate) use times::DueTimes;

/// An item outside of the shards.
type PriorityEntry<T> = crate::raw::Entry<crate::raw::Stored<T, PriorityMeta>>;
