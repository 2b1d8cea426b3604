//! By priority and schedule.
//!
//! Items are pushed with an order word, the [`meta::PriorityMeta`], which says their priority; the time of those
//! that are scheduled is in the [`times::DueTimes`] until they are gone. Which item is next is known to
//! a [`heap::PriorityHeap`].

mod by_priority;
mod heap;
mod levels;
mod meta;
mod rank_heap;
mod slab;
mod ticket;
mod times;

pub use by_priority::{ByPriority, Prioritized};
pub use ticket::Ticket;

pub(crate) use heap::{AgeStep, PriorityHeap};
pub(crate) use meta::{Priority, PriorityMeta};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use times::tests::sizes;
pub(crate) use times::DueTimes;
