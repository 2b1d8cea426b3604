//! The lock-free data structures, with nearly all unsafe code. They never wait, and know no clock and no policy.
//!
//! From the bottom up:
//!
//! | folder | contents |
//! |---|---|
//! | `memory` | slots, rows and segments of items, the directory that finds a segment, and reclamation |
//! | `shard` | one single-producer queue with its producer and its cursors; the front, its head, to which an abort returns items by a run of a block |
//! | `hold` | the items that a transaction has taken, those that leave it early, and blocks that a hold adopts |
//! | `registry` | all shards and counters of a queue: which are attached, which one a consumer visits next, whether all are empty |
//! | `handle` | what a handle owns and its transactions use: the endpoint, the cell that lends it, peeks and visits |
//!
//! No step of an endpoint runs its caller's code.
//!
//! `docs/protocol.md` describes the protocols.

mod handle;
mod hold;
mod memory;
mod registry;
mod shard;

#[cfg(all(loom, test))]
mod models;
#[cfg(test)]
mod testing;

pub(crate) use handle::away::{Away, Outstanding};
pub(crate) use handle::bookmark::Choice;
pub(crate) use handle::cell::{Borrow, Fresh, LocalCell, Session};
pub(crate) use handle::endpoint::{Endpoint, Purpose, Stager};
pub(crate) use handle::gathering::Gathering;
pub(crate) use handle::items::{HeldItems, Unborrowed};
#[cfg(feature = "workers")]
pub(crate) use handle::kept::{Finding, Keeper, Lend};
#[cfg(feature = "workers")]
pub use handle::kept::{Holds, KeptItem, KeptTransaction, Share};
pub(crate) use handle::open::{Open, Owner};
pub(crate) use handle::peek::Peeked;
pub(crate) use handle::sharing::{ByProof, Shareable};
pub(crate) use handle::thread_cells::{Own, ThreadCells, ThreadValue};
pub(crate) use hold::item_ref::ItemRef;
pub(crate) use hold::position::HeldPosition;
pub(crate) use memory::entry::{DeliveryMeta, Entry, Stored};
pub(crate) use memory::exclusive::Exclusive;
pub(crate) use memory::inbox::{Inbox, Vacant, VacantList};
pub(crate) use memory::number_set::SetVersion;
pub(crate) use memory::once::OnceBox;
pub(crate) use memory::prefetch::prefetch;
pub(crate) use registry::counters::{Counters, Ending, Holder};
pub(crate) use registry::intake::{Intake, Receive, SHARES};
pub(crate) use registry::record_pool::{self, RecordPool};
pub(crate) use registry::shards::Shards;
pub(crate) use registry::strict::Remainder;
pub(crate) use shard::joint::{commit_together, JointRecord, Party, Tails};
