//! What a queue keeps beside each item, from its push until the item is gone for good.
//!
//! An item is found by the time stamp of its push, which no two items of such a queue have in common: shards, orders, holds and
//! dead letters keep that anyway.

use super::dead::Overflow;
use super::unique::{Key, KeyOf};
use crate::sync::{lock, Mutex, RandomState};
use std::collections::hash_map::{Entry, HashMap};

/// How many tables the records are in: pushes at different times seldom meet in one.
const TABLES: usize = 16;

/// What is kept beside an item.
pub(crate) struct Record {
    /// How many permits it has.
    pub(crate) weight: usize,
    /// Its key, if keys are unique.
    pub(crate) key: Option<Key>,
}

/// The records of all items of a queue.
pub(crate) struct Records {
    tables: [Mutex<HashMap<u64, Record, RandomState>>; TABLES],
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            tables: Default::default(),
        }
    }

    fn table(&self, since: u64) -> &Mutex<HashMap<u64, Record, RandomState>> {
        #[allow(clippy::cast_possible_truncation)] // the last bits
        &self.tables[since as usize % TABLES]
    }

    /// Keeps a record from now on. Returns the time stamp by which it is found: this one, or the next one that is free.
    pub(crate) fn add(&self, stamp: u64, record: Record) -> u64 {
        let mut since = stamp;
        loop {
            if let Entry::Vacant(place) = lock(self.table(since)).entry(since) {
                place.insert(record);
                return since;
            }
            since += 1;
        }
    }

    /// The key of an item, if keys are unique.
    pub(crate) fn key(&self, since: u64) -> Option<Key> {
        lock(self.table(since)).get(&since)?.key.clone()
    }

    /// Removes the record of an item that is gone for good.
    pub(crate) fn remove(&self, since: u64) -> Option<Record> {
        lock(self.table(since)).remove(&since)
    }
}

/// Functions of the user that a queue calls.
pub(crate) struct Callbacks<T> {
    /// Gets dead letters beyond the limit.
    pub(crate) overflow: Option<Overflow<T>>,
    /// Says the key of an item, if keys are unique.
    pub(crate) key_of: Option<KeyOf<T>>,
}

impl<T> Clone for Callbacks<T> {
    fn clone(&self) -> Self {
        Self {
            overflow: self.overflow.clone(),
            key_of: self.key_of.clone(),
        }
    }
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Self {
            overflow: None,
            key_of: None,
        }
    }
}
