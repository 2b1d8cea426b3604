//! Windows: the keys of items that were committed stay taken for a time, in the next process too.
//!
//! A commit writes a mark for each of its items, under a number of its own: until when, and a hash of the key, since keys are not
//! on the disk. Within the process the queue in memory refuses duplicates. What earlier processes have committed is looked up here,
//! until its time is over, by the clock of the queue.

use super::recover::Found;
use super::shared::Shared;
use crate::batch::{Batch, Change};
use crate::order::Engine;
use crate::store::millis;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

/// Says the hash of an item's key.
pub(crate) type HashOf<T> = Arc<dyn Fn(&T) -> u128 + Send + Sync>;

/// It does not depend on the process, for keys that say the same to a hasher in each.
pub(crate) fn hash(key: &impl Hash) -> u128 {
    let mut hasher = Xxh3::new();
    key.hash(&mut hasher);
    hasher.digest128()
}

/// The windows of a queue.
#[derive(Default)]
pub(crate) struct Windows {
    /// How long they are, in milliseconds; 0 if there are none.
    length: u64,
    /// When each of those on the disk is over, and its number.
    ends: Mutex<VecDeque<(u64, u64)>>,
    /// Those that earlier processes began, by the hashes of their keys.
    earlier: Mutex<HashMap<u128, Instant>>,
}

impl Windows {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length: millis(length),
            ..Self::default()
        }
    }

    pub(crate) fn exist(&self) -> bool {
        self.length > 0
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Those that are not over yet.
    pub(super) fn recover_windows(&self, found: &Found) {
        let now = self.store.wall_time();
        let recent = |(id, until, hash)| (until > now).then_some((until, id, hash));
        let mut recent: Vec<_> = found.recent().filter_map(recent).collect();
        recent.sort_unstable();
        for (until, id, hash) in recent {
            self.windows.ends.lock().push_back((until, id));
            if let Some(end) = self.instant(until) {
                self.windows.earlier.lock().insert(hash, end);
            }
        }
    }

    /// Whether an earlier process has committed an item with the key of one of these, and its window is not over. Runs user code.
    pub(crate) fn are_recent(&self, items: &[T]) -> bool {
        let Some(hash_of) = &self.besides.hash else {
            return false;
        };
        if self.windows.earlier.lock().is_empty() {
            return false;
        }
        let (now, hashes) = (self.clock.now(), items.iter().map(|item| hash_of(item)));
        let hashes: Vec<_> = hashes.collect();
        let mut earlier = self.windows.earlier.lock();
        earlier.retain(|_, end| now < *end);
        hashes.iter().any(|hash| earlier.contains_key(hash))
    }

    /// Adds the windows of items that are committed to the batch, and ends some that are over.
    pub(crate) fn begin_windows(&self, batch: &mut Batch, hashes: impl Iterator<Item = u128>) {
        let now = self.store.wall_time();
        let until = now.saturating_add(self.windows.length);
        let mut ends = self.windows.ends.lock();
        for hash in hashes {
            let id = self.new_ids(1);
            ends.push_back((until, id));
            let recent = Change::Recent(self.key(id), until, hash);
            batch.others.push(recent);
            let over = ends.iter().take(2).take_while(|(until, _)| *until <= now);
            let over = 0..over.count();
            let over = ends.drain(over).map(|(_, id)| Change::Unmark(self.key(id)));
            batch.others.extend(over);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::StoreOptions;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn windows_that_are_over_leave_the_disk() {
        let (files, wall) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(1)));
        let build = || {
            let wall = Arc::clone(&wall);
            let seconds = move || Duration::from_secs(wall.load(Ordering::Relaxed));
            let options = StoreOptions::new().wall_clock(move || UNIX_EPOCH + seconds());
            let jobs = options.open(files.path()).unwrap().builder::<u64>("jobs");
            let jobs = jobs.unique_by(|job| *job);
            jobs.unique_for(Duration::from_secs(10)).build().unwrap()
        };
        let mut jobs = build();
        for job in 0..40 {
            if job == 20 {
                drop(jobs);
                jobs = build();
            }
            jobs.push(job).unwrap();
            jobs.pop().unwrap();
            wall.fetch_add(1, Ordering::Relaxed);
            let marks = jobs.shared.log().disk().catalog().marks.len();
            assert!(marks <= 11, "{marks}");
        }
        // A queue without windows keeps those that are not over.
        drop(jobs);
        let store = crate::Store::open(files.path()).unwrap();
        let marks = || store.inner.log.disk().catalog().marks.len();
        drop(store.queue::<u64>("jobs").unwrap());
        store.flush().unwrap();
        assert_eq!(marks(), 0); // by the system's clock
    }
}
