//! The keys of all live items: staged, ready, held or delayed.
//!
//! A key has a number as long as an item with it is alive. Numbers are reused.
//!
//! User code runs outside of all locks: the key function, the weights, `Hash`, the destructor of a key. Only
//! `Eq` runs under the lock of a shard, whose state is consistent then.

use super::hints::{Hints, NO_KEY};
use super::meta::KeyMeta;
use super::table::{Answer, KeyTable, StoredKey, GROUP, GROUPS, SHARDS};
use crate::order::Registry;
use crate::raw::OnceBox;
use crate::sync::{defer, lock, swallow_panic, Mutex, MutexGuard, Ordering, RandomState};
use crossbeam_utils::CachePadded;
use std::array;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// The limit of keys that have none.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// The key function, which returns the key of an item.
pub(crate) type By<K, T> = Arc<dyn Fn(&T) -> K + Send + Sync>;
/// The weight function, which returns how many turns a key has in a round.
pub(crate) type Weigh<K> = Arc<dyn Fn(&K) -> u32 + Send + Sync>;

/// The configuration of keys.
pub(crate) struct Rules<K, T> {
    pub(crate) by: By<K, T>,
    /// `None`: each key has weight 1.
    pub(crate) weigh: Option<Weigh<K>>,
    /// The most live items of one key.
    pub(crate) limit: u32,
    /// The most items of one key that are held.
    pub(crate) most_held: u32,
}

impl<K, T> Rules<K, T> {
    pub(crate) fn new(by: By<K, T>) -> Self {
        Self {
            by,
            weigh: None,
            limit: UNLIMITED,
            most_held: UNLIMITED,
        }
    }
}

impl<K, T> Clone for Rules<K, T> {
    fn clone(&self) -> Self {
        Self {
            by: Arc::clone(&self.by),
            weigh: self.weigh.clone(),
            ..*self
        }
    }
}

/// The group of a table and its place there, by the number of the table or of a key in it.
#[inline]
#[allow(clippy::modulo_one)] // of one place where queues are small
fn place_of(number: u32) -> (usize, usize) {
    let number = number as usize;
    (number / GROUP % GROUPS, number % GROUP)
}

type LockedTable<K> = CachePadded<Mutex<KeyTable<K>>>;

/// The keys of one queue.
pub(crate) struct Keys<K, T> {
    rules: Rules<K, T>,
    hasher: RandomState,
    hints: Hints,
    /// Each is made for the first key in it, and so is each group of them.
    shards: [OnceBox<[OnceBox<LockedTable<K>>; GROUP]>; GROUPS],
}

impl<K, T> Keys<K, T> {
    pub(crate) fn new(rules: Rules<K, T>) -> Self {
        Self {
            rules,
            hasher: RandomState::default(),
            hints: Hints::default(),
            shards: array::from_fn(|_| OnceBox::default()),
        }
    }

    pub(crate) fn key_of(&self, item: &T) -> K {
        (self.rules.by)(item)
    }

    /// The key with a number, if there is one.
    pub(crate) fn key(&self, number: u32) -> Option<Arc<K>> {
        self.table(number).key(number / SHARDS)
    }

    /// Whether a number still belongs to the key for which it was found.
    pub(crate) fn is(&self, number: u32, key: &Arc<K>) -> bool {
        self.table(number).is(number / SHARDS, key)
    }

    /// The table with this number, or of the key with this number.
    #[inline]
    fn table(&self, number: u32) -> MutexGuard<'_, KeyTable<K>> {
        let (group, place) = place_of(number);
        let group = self.shards[group].get_or_add(|| array::from_fn(|_| OnceBox::default()));
        lock(group[place].get_or_add(|| Mutex::new(KeyTable::new()).into()))
    }

    /// Uncounts `count` items with the key of this number. Drops the key if no other item has it.
    #[inline]
    fn uncount(&self, number: u32, count: u32) {
        let mut table = self.table(number);
        let key = table.release(number / SHARDS, count);
        drop(table);
        if let StoredKey::Here(_) | StoredKey::Shared(_) = key {
            swallow_panic(|| drop(key));
        }
    }
}

impl<K: Hash + Eq, T> Keys<K, T> {
    /// The key of an item if it has reached its limit.
    pub(crate) fn key_at_limit(&self, item: &T) -> Option<K> {
        let key = self.key_of(item);
        (!self.has_room(&key, 1)).then_some(key)
    }

    /// The number of a key and the stored key, if an item with it is alive.
    pub(crate) fn find(&self, key: &K) -> Option<(u32, Arc<K>)> {
        let (hash, shard) = self.shard(key);
        let (index, key) = self.table(shard).known(hash, key)?;
        Some((index * SHARDS + shard, key))
    }

    /// Whether `count` more items with a key may be pushed.
    fn has_room(&self, key: &K, count: u32) -> bool {
        let (hash, shard) = self.shard(key);
        let most = self.rules.limit.checked_sub(count);
        most.is_some_and(|most| self.table(shard).alive(hash, key) <= most)
    }

    /// The hash of a key, and its shard, which is derived from other bits.
    #[inline]
    fn shard(&self, key: &K) -> (u32, u32) {
        let hash = self.hasher.hash_one(key);
        let upper = |hash: u64| (hash >> u32::BITS) as u32;
        (upper(hash << u32::BITS), upper(hash) & (SHARDS - 1))
    }

    /// Counts an item with this key; returns its metadata, and the key if it is not stored. `None`: the limit is
    /// reached.
    #[inline(always)] // the push of an order
    fn count(&self, key: K) -> Option<(KeyMeta, Option<K>)> {
        let hint = self.hints.of(&key);
        // ORDERING: Relaxed; a hint, which is checked under the lock of a table.
        let number = hint.map_or(NO_KEY, |hint| hint.load(Ordering::Relaxed));
        if let Some(meta) = self.count_at(number, &key) {
            return Some((meta, Some(key)));
        }
        let counted = self.count_found(key)?;
        if let Some(hint) = hint {
            // ORDERING: Relaxed; as above.
            hint.store(counted.0.key, Ordering::Relaxed);
        }
        Some(counted)
    }

    /// Counts an item with this key if the key has this number and its limit is not reached.
    #[inline]
    fn count_at(&self, number: u32, key: &K) -> Option<KeyMeta> {
        // A hint of no key may name a table that was not made.
        let (group, place) = place_of(number);
        let mut table = lock(self.shards[group].get()?[place].get()?);
        let weight = table.count_at(number / SHARDS, key, self.rules.limit)?;
        Some(KeyMeta::new(number, weight))
    }

    /// Same as [`Keys::count`], without a hint.
    #[inline(never)]
    fn count_found(&self, key: K) -> Option<(KeyMeta, Option<K>)> {
        let Rules { weigh, limit, .. } = &self.rules;
        let (hash, shard) = self.shard(&key);
        let mut table = self.table(shard);
        let mut answer = table.count(hash, &key, *limit);
        let mut weight = 1;
        if let (Answer::Unknown, Some(weigh)) = (answer, weigh) {
            drop(table);
            weight = weigh(&key).max(1);
            table = self.table(shard);
            answer = table.count(hash, &key, *limit);
        }
        let (answer, key) = match answer {
            Answer::Unknown => (table.add(hash, key, weight), None),
            _ => (answer, Some(key)),
        };
        drop(table);
        if key.is_some() {
            self.hints.expect_few();
        }
        if matches!(answer, Answer::Counted { index, .. } if index > 0) {
            self.hints.expect_many(); // several keys in one of so many tables
        }
        let Answer::Counted { index, weight } = answer else {
            return None;
        };
        Some((KeyMeta::new(index * SHARDS + shard, weight), key))
    }
}

impl<K, T> Registry<T, KeyMeta> for Keys<K, T>
where
    K: Hash + Eq,
{
    type Place = ();

    #[inline(always)] // the push of an order
    fn register(&self, item: &T, (): ()) -> Option<KeyMeta> {
        let (meta, key) = self.count(self.key_of(item))?;
        // The destructor of the key may panic.
        let counted = defer(|| self.uncount(meta.key, 1));
        drop(key);
        counted.cancel();
        Some(meta)
    }

    fn is_limited(&self) -> bool {
        self.rules.limit < UNLIMITED
    }

    fn fits(&self, items: &[T]) -> bool {
        if let [item] = items {
            return self.has_room(&self.key_of(item), 1);
        }
        let mut keys = HashMap::new();
        for item in items {
            *keys.entry(self.key_of(item)).or_insert(0) += 1;
        }
        // If the destructor of a key panics, a `Vec` drops the other keys, and a `HashMap` leaks them.
        let keys = Vec::from_iter(keys);
        keys.iter().all(|(key, count)| self.has_room(key, *count))
    }

    fn unregister(&self, meta: KeyMeta, count: u32) {
        self.uncount(meta.key, count);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
