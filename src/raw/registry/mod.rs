//! All shards and counters of a queue, and what is asked of all of them.

pub(in crate::raw) mod consumer;
pub(in crate::raw) mod counters;
pub(in crate::raw) mod detach;
pub(in crate::raw) mod idle;
pub(in crate::raw) mod intake;
pub(crate) mod record_pool;
pub(in crate::raw) mod shards;
pub(in crate::raw) mod strict;

pub(in crate::raw) use consumer::Consumer;
pub(in crate::raw) use counters::{Counters, Ending, Holder};
pub(in crate::raw) use shards::{acquire, Shards, COMMON};
