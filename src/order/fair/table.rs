//! The keys of one shard of the registry, under its lock.

use super::pages::{PagedSlab, PAGE};
use crate::sync::SMALL;
use hashbrown::HashTable;
use std::sync::Arc;

/// How many tables share the keys; one in the models, since the table of a key is random.
pub(super) const SHARDS: u32 = if SMALL { 1 } else { 128 };
/// How many groups the tables are in, and how many tables a group has.
pub(super) const GROUPS: usize = if SMALL { 1 } else { 8 };
pub(super) const GROUP: usize = SHARDS as usize / GROUPS;
/// The most keys of a table, such that the numbers of all tables fit into a `u32`.
const MAX_KEYS: usize = (u32::MAX / SHARDS - PAGE) as usize;
/// How many buckets are kept when there are no keys.
pub(super) const LEAST: usize = 16;

/// The keys of a shard of the registry.
pub(super) struct KeyTable<K> {
    keys: PagedSlab<KeyRecord<K>>,
    /// The indices of the keys, by their hashes.
    numbers: HashTable<u32>,
}

struct KeyRecord<K> {
    key: StoredKey<K>,
    hash: u32,
    weight: u32,
    /// How many items with this key are alive, and some removed ones, as the order unregisters them in batches.
    alive: u32,
}

/// A key, until its last item is removed.
#[derive(Default)]
pub(super) enum StoredKey<K> {
    Here(K),
    /// A key that was handed out to a caller.
    Shared(Arc<K>),
    #[default]
    Gone,
}

impl<K> StoredKey<K> {
    #[inline]
    fn get(&self) -> Option<&K> {
        match self {
            Self::Here(key) => Some(key),
            Self::Shared(key) => Some(key),
            Self::Gone => None,
        }
    }

    /// The key, moved into an `Arc` so that it can be shared.
    fn share(&mut self) -> Option<Arc<K>> {
        let key = match std::mem::take(self) {
            Self::Here(key) => Arc::new(key),
            Self::Shared(key) => key,
            Self::Gone => return None,
        };
        *self = Self::Shared(Arc::clone(&key));
        Some(key)
    }
}

impl<K> KeyRecord<K> {
    /// Counts an item, unless the limit is reached. Returns the weight.
    #[inline]
    fn count(&mut self, limit: u32) -> Option<u32> {
        if self.alive >= limit {
            return None;
        }
        self.alive += 1;
        Some(self.weight)
    }
}

impl<K> Default for KeyRecord<K> {
    fn default() -> Self {
        Self {
            key: StoredKey::Gone,
            hash: 0,
            weight: 0,
            alive: 0,
        }
    }
}

/// The result of counting an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The item is counted; its key is at `index`.
    Counted { index: u32, weight: u32 },
    /// The limit is reached.
    Full,
    /// The key is new.
    Unknown,
}

/// A hash whose upper bits are as random as its lower ones.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}

impl<K> KeyTable<K> {
    pub(super) fn new() -> Self {
        Self {
            keys: PagedSlab::default(),
            numbers: HashTable::new(),
        }
    }

    pub(super) fn key(&mut self, index: u32) -> Option<Arc<K>> {
        self.keys.values.place_mut(index)?.key.share()
    }

    /// Whether this is the stored key at `index`.
    pub(super) fn is(&mut self, index: u32, key: &Arc<K>) -> bool {
        let known = self.keys.values.place_mut(index).map(|known| &known.key);
        matches!(known, Some(StoredKey::Shared(its)) if Arc::ptr_eq(its, key))
    }

    /// Adds a new key, and counts an item with it.
    pub(super) fn add(&mut self, hash: u32, key: K, weight: u32) -> Answer {
        if self.keys.values.len() >= MAX_KEYS {
            return Answer::Full;
        }
        let index = self.keys.put(KeyRecord {
            key: StoredKey::Here(key),
            hash,
            weight,
            alive: 1,
        });
        let keys = &self.keys.values;
        self.numbers
            .insert_unique(spread(hash), index, |index| spread(keys[*index].hash));
        Answer::Counted { index, weight }
    }

    /// Uncounts `count` items with the key at `index`. Returns the key if no other item has it.
    #[inline]
    pub(super) fn release(&mut self, index: u32, count: u32) -> StoredKey<K> {
        let known = &mut self.keys.values[index];
        known.alive -= count;
        if known.alive > 0 {
            return StoredKey::Gone;
        }
        let hash = spread(known.hash);
        if let Ok(number) = self.numbers.find_entry(hash, |number| *number == index) {
            number.remove();
        }
        let key = self.keys.take(index).key;
        if self.numbers.num_buckets() > LEAST.max(8 * self.numbers.len()) {
            self.shrink();
        }
        key
    }

    /// Shrinks the table to twice its number of keys.
    #[cold]
    fn shrink(&mut self) {
        let room = (2 * self.numbers.len()).max(LEAST / 2);
        let keys = &self.keys.values;
        self.numbers
            .shrink_to(room, |index| spread(keys[*index].hash));
    }
}

impl<K: Eq> KeyTable<K> {
    #[inline]
    fn find(&self, hash: u32, key: &K) -> Option<u32> {
        let is = |index: &u32| {
            let known = &self.keys.values[*index];
            known.hash == hash && known.key.get() == Some(key)
        };
        self.numbers.find(spread(hash), is).copied()
    }

    /// The index of a known key, and the stored key.
    pub(super) fn known(&mut self, hash: u32, key: &K) -> Option<(u32, Arc<K>)> {
        let index = self.find(hash, key)?;
        Some((index, self.key(index)?))
    }

    /// How many items with this key are alive.
    pub(super) fn alive(&self, hash: u32, key: &K) -> u32 {
        self.find(hash, key)
            .map_or(0, |index| self.keys.values[index].alive)
    }

    /// Counts an item if its key is known.
    #[inline]
    pub(super) fn count(&mut self, hash: u32, key: &K, limit: u32) -> Answer {
        let Some(index) = self.find(hash, key) else {
            return Answer::Unknown;
        };
        let counted = self.keys.values[index].count(limit);
        counted.map_or(Answer::Full, |weight| Answer::Counted { index, weight })
    }

    /// Counts an item with the key at `index`, if it is this one and its limit is not reached. Returns its weight.
    #[inline]
    pub(super) fn count_at(&mut self, index: u32, key: &K, limit: u32) -> Option<u32> {
        let known = self.keys.values.place_mut(index)?;
        if known.key.get() != Some(key) {
            return None;
        }
        known.count(limit)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<K> KeyTable<K> {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.values.len()
    }

    /// How many buckets there are.
    pub(super) fn room(&self) -> usize {
        self.numbers.num_buckets()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_shrinks_with_its_keys() {
        let mut table = KeyTable::new();
        let indices: Vec<_> = (0..100_000)
            .map(|key| {
                let Answer::Counted { index, .. } = table.add(key * 7, key, 1) else {
                    panic!("a table with room");
                };
                assert!(table.room() <= LEAST.max(4 * table.len()));
                index
            })
            .collect();
        for (key, index) in (0..).zip(indices) {
            assert_eq!(table.alive(key * 7, &key), 1);
            assert!(matches!(table.release(index, 1), StoredKey::Here(gone) if gone == key));
            assert_eq!(table.alive(key * 7, &key), 0);
            assert!(table.room() <= LEAST.max(8 * table.len()));
        }
        assert_eq!(table.len(), 0);
    }
}
