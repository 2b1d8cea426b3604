//! Fair by key: what a fair queue's rounds and its keys do.
//!
//! [`by_key`] is the order, made of the [`rounds`], its sequence: the keys in a ring, each with its items. [`keys`] gives keys their numbers, by
//! which the order knows them, and counts the items of each; a [`table`] is a shard of that. A [`mark`] is
//! an item's metadata. [`pages`] is where both keep what has a number, [`lists`] where
//! the order keeps the items.

mod by_key;
mod keys;
mod lists;
mod meta;
mod pages;
mod rounds;
mod table;

pub use by_key::{ByKey, Keyed};

pub(crate) use keys::{Keys, Rules, UNLIMITED};
pub(crate) use meta::KeyMeta;
pub(crate) use rounds::Rounds;
