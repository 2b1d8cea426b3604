//! By priority and schedule.
//!
//! Items are pushed with an order word, the [`word::Word`], which says their priority; the time of those
//! that are scheduled is in the [`times::Times`] until they are gone. Which item is next is known to
//! a [`heap::Heap`].

mod by_priority;
mod heap;
mod levels;
mod marks;
mod slab;
mod ticket;
mod times;
mod word;

pub use by_priority::{ByPriority, Prioritized};
pub use ticket::Ticket;

pub(crate) use heap::{Heap, Step};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use times::tests::sizes;
pub(crate) use times::Times;
pub(crate) use word::{Priority, Word};
