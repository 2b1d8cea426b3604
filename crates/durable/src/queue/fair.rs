//! The keys of fair queues.

use super::DurableQueue;
use crate::entry::Entry;
use crate::error::StoreError;
use crate::format::level;
use crate::order::{Engine, Order};
use requeue::{FairSnapshot, Keyed};
use std::hash::Hash;

/// Inspection of the keys of a queue that is [fair by key](crate::Builder::fair_by).
impl<T, K, O> DurableQueue<T, O>
where
    T: Send + 'static,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    O: Order<T> + Engine<T, Key = K, Ram: Keyed<Entry<T, K>, Key = K>>,
{
    /// The key of an item, which need not be in the queue.
    pub fn key_of(&self, item: &T) -> K {
        (self.shared.key_of)(item)
    }

    /// The key of an item, if the key is at its [limit](crate::Builder::key_capacity).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.builder("jobs").fair_by(|job: &u32| job % 10).key_capacity(1).build()?;
    /// jobs.push(42)?;
    /// assert!(jobs.push(32).unwrap_err().is_full());
    /// assert_eq!((jobs.key_at_limit(&32), jobs.key_at_limit(&33)), (Some(2), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_at_limit(&self, item: &T) -> Option<K> {
        self.ram
            .key_at_limit(&Entry::on_disk(0, self.key_of(item), None))
    }

    /// Visits the items of one key in their order, and returns their number; see [`requeue::Queue::items_of`]. Items that are
    /// not in memory are read from the disk, and so are those of a few other keys.
    ///
    /// # Errors
    ///
    /// If an item could not be read; the others were visited.
    pub fn items_of(&self, key: &K, mut visit: impl FnMut(&T)) -> Result<usize, StoreError> {
        let visit = |item: &T| {
            let is_of_key = (self.shared.key_of)(item) == *key;
            if is_of_key {
                visit(item);
            }
            is_of_key
        };
        self.visit_items(Some(level::of_key(key)), visit, |entry| {
            self.ram.items_of(key, entry)
        })
    }

    /// The keys that have items, in the order in which they will be served; see [`requeue::Queue::keys`]. Of a queue that has
    /// [pages](crate::Builder::memory) they are those with items in memory, and these are counted.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.builder("jobs").fair_by(|job: &u32| job % 10).build()?;
    /// jobs.push_batch([11, 12, 21])?;
    /// assert!(jobs.keys().iter().eq([(&1, 2), (&2, 1)]));
    /// let mut ones = Vec::new();
    /// assert_eq!(jobs.items_of(&1, |job| ones.push(*job))?, 2);
    /// assert_eq!(ones, [11, 21]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys(&self) -> FairSnapshot<K> {
        self.ram.keys()
    }
}
