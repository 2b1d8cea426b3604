//! Fair by key: the rounds and the keys of a fair queue.
//!
//! [`by_key`] is the order. Its sequence is [`rounds`]: the keys in a ring, each with its items;
//! [`ages`] knows which of them is old. Its registry is [`keys`]: it numbers the keys, and counts the items of each; a [`table`] is a shard of it, which [`hints`] save a search.
//! [`meta`] is the metadata of an item. Both store numbered values in [`pages`]; the items of each key are in [lists](super::lists).

mod ages;
mod by_key;
mod hints;
mod keys;
mod meta;
mod pages;
mod rounds;
mod table;

pub(crate) use by_key::KeySource;
pub use by_key::{ByKey, Keyed};

pub(crate) use keys::{Keys, Rules, UNLIMITED};
pub(crate) use meta::KeyMeta;
pub(crate) use rounds::{Rounds, Standing};
