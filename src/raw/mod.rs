//! The unsafe room: lock-free, never waits, knows no clock and no policy.
//!
//! From the bottom up: [`slot`], [`row`], [`times`] and [`segment`] are memory; [`directory`] finds segments;
//! [`shard`] is one single-producer queue, with [`producer`] and [`cursor`] as its two sides;
//! [`front`] is where they are popped, [`block`] keeps what a transaction holds, and by [`run`] an abort
//! brings it back there; [`injector`] takes pushes without a handle; [`record pool`] leases shards; [`shards`] is all
//! of a queue's; [`consumer`] chooses among them and [`strict`] says when they are empty; [`hold`],
//! [`counters`] and [`endpoint`] are what a handle owns here, [`cell`], [`gathering`], [`open`], [`items`], [`item_ref`] and [`peek`] how its
//! transactions use that, `kept` how a future keeps one, [`holder`] what others know of them, [`removal`] how items leave early, with their [`delivery`], and [`intake`]
//! how an order that sorts gets them. [`inbox`] is for the rooms above.
//!
//! No step of a endpoint runs code of its caller.
//!
//! The protocols are told in `docs/protocol.md`.

mod block;
mod cell;
mod consumer;
mod consumer_pool;
mod counters;
mod cursor;
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
mod producer;
mod reclaim;
pub(crate) mod record_pool;
mod removal;
mod row;
mod run;
mod segment;
mod shard;
mod shards;
mod sink;
mod slot;
mod strict;
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
pub(crate) use inbox::{Inbox, Vacant};
pub(crate) use intake::Intake;
pub(crate) use item_ref::ItemRef;
pub(crate) use items::HeldItems;
pub(crate) use joint::{commit_together, JointRecord, Party, Tails};
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
pub(crate) use kept::{Finding, Kept, KeptRef, User};
pub(crate) use open::{Open, Owner};
pub(crate) use peek::Peeked;
pub(crate) use record_pool::RecordPool;
pub(crate) use shards::Shards;
pub(crate) use strict::Remainder;
