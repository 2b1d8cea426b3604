//! What a queue keeps beside each item, from its push until the item is gone for good.
//!
//! An item is found by the time stamp of its push, which no two items of such a queue have in common: shards, orders, holds and
//! dead letters keep that anyway.

use super::dead::Overflow;
use super::unique::{Key, KeyOf};
use crate::sync::{lock, Mutex, RandomState};
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

/// How many tables the records are in: pushes at different times seldom meet in one.
const TABLES: usize = 16;

/// What is kept beside an item.
pub(crate) struct Record {
    /// The time stamp of its push.
    pub(crate) pushed: u64,
    /// How many permits it has.
    pub(crate) weight: usize,
    /// Its key, if keys are unique.
    pub(crate) key: Option<Key>,
}

/// The records of all items of a queue.
pub(crate) struct Records {
    tables: [Mutex<Table>; TABLES],
}

#[derive(Default)]
struct Table {
    records: HashMap<u64, Record, RandomState>,
    /// The sum of all weights, which may wrap in between.
    weight: usize,
}

impl Records {
    pub(crate) fn new() -> Self {
        let tables = Default::default();
        Self { tables }
    }

    fn table(&self, since: u64) -> &Mutex<Table> {
        #[allow(clippy::cast_possible_truncation)] // the last bits
        &self.tables[since as usize % TABLES]
    }

    /// Keeps a record from now on. Returns the time stamp by which it is found: this one, or
    /// the last one before it that is free, so that nothing lives longer than it should.
    pub(crate) fn add(&self, stamp: u64, record: Record) -> u64 {
        let mut since = stamp;
        loop {
            let Table { records, weight } = &mut *lock(self.table(since));
            if let Entry::Vacant(place) = records.entry(since) {
                *weight = weight.wrapping_add(record.weight);
                place.insert(record);
                return since;
            }
            since -= 1;
        }
    }

    /// Reads the record of an item that is known.
    pub(crate) fn get<R>(&self, since: u64, read: impl FnOnce(&Record) -> R) -> Option<R> {
        lock(self.table(since)).records.get(&since).map(read)
    }

    /// The key of an item, if keys are unique.
    pub(crate) fn key(&self, since: u64) -> Option<Key> {
        self.get(since, |record| record.key.clone())?
    }

    /// Removes the record of an item that is gone for good.
    pub(crate) fn remove(&self, since: u64) -> Option<Record> {
        let Table { records, weight } = &mut *lock(self.table(since));
        let record = records.remove(&since)?;
        *weight = weight.wrapping_sub(record.weight);
        Some(record)
    }

    /// The weight of all items; approximate while some come and go.
    pub(crate) fn weight(&self) -> usize {
        let weights = self.tables.iter().map(|table| lock(table).weight);
        weights.fold(0, usize::wrapping_add)
    }
}

/// Says how many permits an item has.
pub(crate) type Weigh<T> = Arc<dyn Fn(&T) -> usize + Send + Sync>;

/// Functions of the user that a queue calls.
pub(crate) struct Callbacks<T> {
    /// Gets dead letters beyond the limit.
    pub(crate) overflow: Option<Overflow<T>>,
    pub(crate) weigh: Option<Weigh<T>>,
    /// Says the key of an item, if keys are unique.
    pub(crate) key_of: Option<KeyOf<T>>,
}

impl<T> Clone for Callbacks<T> {
    fn clone(&self) -> Self {
        Self {
            overflow: self.overflow.clone(),
            weigh: self.weigh.clone(),
            key_of: self.key_of.clone(),
        }
    }
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Self {
            overflow: None,
            weigh: None,
            key_of: None,
        }
    }
}
