//! By priority and schedule.
//!
//! Items are pushed with their metadata, a [`meta::PriorityMeta`], which contains the priority; the due times of
//! scheduled items are in the [`times::DueTimes`] until the items are removed. A [`heap::PriorityHeap`]
//! determines the next item.

mod by_priority;
mod heap;
mod levels;
mod meta;
mod ticket;
mod times;

pub(crate) use by_priority::TicketSource;
pub use by_priority::{ByPriority, Prioritized};
pub use ticket::Ticket;

pub(crate) use heap::{AgeStep, PriorityHeap};
pub(crate) use meta::{PriorityMeta, PushOptions, DEFAULT_PRIORITY};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use times::tests::sizes;
pub(crate) use times::DueTimes;

/// An item outside of the shards.
type PriorityEntry<T> = crate::raw::Entry<crate::raw::Stored<T, PriorityMeta>>;
