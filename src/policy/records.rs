//! What a queue keeps beside each item, from its push until the item is gone for good.
//!
//! An item is found by the time stamp of its push, which no two items of such a queue have in common: shards, orders, holds and
//! dead letters keep that anyway.

use super::dead::Overflow;
use super::unique::{Key, KeyOf};
use crate::sync::{lock, AtomicUsize, Mutex, Ordering, RandomState};
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

/// The records of the items of a queue.
pub(crate) struct Records {
    /// Whether each item has one; otherwise those that need it.
    pub(crate) of_all: bool,
    /// How many there are.
    len: AtomicUsize,
    tables: [Mutex<Table>; TABLES],
}

#[derive(Default)]
struct Table {
    records: HashMap<u64, Record, RandomState>,
    /// The sum of all weights, which may wrap in between.
    weight: usize,
}

impl Records {
    pub(crate) fn new(of_all: bool) -> Self {
        Self {
            of_all,
            len: AtomicUsize::new(0),
            tables: Default::default(),
        }
    }

    fn table(&self, since: u64) -> &Mutex<Table> {
        #[allow(clippy::cast_possible_truncation)] // the last bits
        &self.tables[since as usize % TABLES]
    }

    /// Keeps a record from now on. Returns the time stamp by which it is found: this one, or
    /// the last one before it that is free, so that nothing lives longer than it should.
    pub(crate) fn add(&self, stamp: u64, record: Record) -> u64 {
        // ORDERING: Relaxed; whoever has the item sees that there is a record.
        self.len.fetch_add(1, Ordering::Relaxed);
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

    /// Whether there are none.
    #[inline]
    fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; as where it is counted.
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Reads the record of an item, if there is one.
    pub(crate) fn get<R>(&self, since: u64, read: impl FnOnce(&Record) -> R) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        lock(self.table(since)).records.get(&since).map(read)
    }

    /// The key of an item, if keys are unique.
    pub(crate) fn key(&self, since: u64) -> Option<Key> {
        self.get(since, |record| record.key.clone())?
    }

    /// Removes the record of an item, if there is one.
    pub(crate) fn remove(&self, since: u64) -> Option<Record> {
        if self.is_empty() {
            return None;
        }
        let Table { records, weight } = &mut *lock(self.table(since));
        let record = records.remove(&since)?;
        *weight = weight.wrapping_sub(record.weight);
        // ORDERING: Relaxed; as where it is counted.
        self.len.fetch_sub(1, Ordering::Relaxed);
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
