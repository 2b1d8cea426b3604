//! The lock-free data structures, with nearly all unsafe code. They never wait, and know no clock and no policy.
//!
//! From the bottom up: [`slot`], [`row`], [`times`] and [`segment`] are memory; [`directory`] finds segments;
//! [`shard`] is one single-producer queue, with [`producer`] and [`cursor`] as its two sides; [`front`] is the
//! head of a shard, [`block`] stores the items that a transaction holds, and a [`run`] returns them to the front at
//! an abort, from where a hold may [`adopt`] the block; [`injector`] takes items that no handle pushes; [`record_pool`] holds the records of shards; [`shards`] is all shards of a
//! queue, of which the [`attached`] ones are visited, until they are idle and [`detach`]ed; [`consumer`] chooses among them, and [`strict`] finds out whether they are empty. A handle owns a [`hold`],
//! [`counters`] and an [`endpoint`]; its transactions use these by [`cell`], [`gathering`], [`open`], [`items`],
//! [`item_ref`] and [`peek`], and a future keeps a transaction alive by `kept`. [`holder`] is what others see of a
//! transaction, [`removal`] is for items that leave it early, [`entry`] is an item with its delivery metadata,
//! [`sharing`] lets an order be sent where its items may be, and
//! [`intake`] moves items to an order that sorts. [`inbox`] is for the modules above.
//!
//! No step of an endpoint runs its caller's code.
//!
//! `docs/protocol.md` describes the protocols.

mod adopt;
mod attached;
mod block;
mod bookmark;
mod cell;
mod consumer;
mod counters;
mod cursor;
mod detach;
mod directory;
mod drops;
mod endpoint;
mod entry;
mod exclusive;
mod front;
mod gathering;
mod hold;
mod holder;
mod idle;
mod inbox;
mod injector;
mod intake;
mod item_ref;
mod items;
mod joint;
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
mod kept;
mod node;
mod open;
mod peek;
mod prefetch;
mod producer;
mod reclaim;
pub(crate) mod record_pool;
mod removal;
mod row;
mod run;
mod segment;
mod shard;
mod shards;
mod sharing;
mod sink;
mod slot;
mod strict;
mod thread_cells;
mod times;

#[cfg(all(loom, test))]
mod models;
#[cfg(test)]
mod testing;

pub(crate) use cell::{Borrow, Fresh, LocalCell, Session, Unborrowed};
pub(crate) use endpoint::{Endpoint, Purpose, Stager};
pub(crate) use entry::{DeliveryMeta, Entry, Stored};
pub(crate) use exclusive::Exclusive;
pub(crate) use gathering::Gathering;
pub(crate) use hold::HeldPosition;
pub(crate) use holder::Holder;
pub(crate) use inbox::{Inbox, Vacant, VacantList};
pub(crate) use intake::{Intake, Receive};
pub(crate) use item_ref::ItemRef;
pub(crate) use items::HeldItems;
pub(crate) use joint::{commit_together, JointRecord, Party, Tails};
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
pub(crate) use kept::{Finding, Kept, KeptRef, Lend, User};
pub(crate) use open::{Open, Owner};
pub(crate) use peek::Peeked;
pub(crate) use prefetch::prefetch;
pub(crate) use record_pool::RecordPool;
pub(crate) use shards::Shards;
pub(crate) use sharing::{ByProof, Shareable};
pub(crate) use strict::Remainder;
pub(crate) use thread_cells::{Own, ThreadCells, ThreadValue};
