//! Windows: the keys of items that were committed stay taken for a time, in the next process too.
//!
//! A commit writes a mark for each of its items, under a number of its own: until when, and a hash of the key, since keys are not
//! on the disk. Within the process the queue in memory refuses duplicates. What earlier processes have committed is looked up here,
//! until its time is over, by the clock of the queue.

use super::shared::Shared;
use crate::batch::{Batch, Change};
use crate::format::Mark;
use crate::order::Engine;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;
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
    /// When each of those on the disk is over, its number and the hash of its key.
    ends: Mutex<BTreeSet<(u64, u64, u128)>>,
    /// Those that earlier processes began, by the hashes of their keys.
    pub(super) earlier: Mutex<HashMap<u128, Instant>>,
}

impl Windows {
    /// Items have keys that are no longer those of windows.
    pub(super) fn end(&self, hashes: impl Iterator<Item = u128>) {
        let mut earlier = self.earlier.lock();
        hashes.for_each(|hash| _ = earlier.remove(&hash));
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Whether a mark without an item is that of a window, and that is not over yet.
    pub(super) fn recover_window(&self, id: u64, mark: &Mark) -> bool {
        let recent = mark.more.as_ref().and_then(|more| more.recent);
        let Some((until, hash)) = recent.filter(|it| it.0 > self.store.wall_time()) else {
            return false;
        };
        self.windows.ends.lock().insert((until, id, hash));
        let end = self.times.instant(until).map(|end| (hash, end));
        self.windows.earlier.lock().extend(end);
        true
    }

    /// Whether an earlier process has committed an item with the key of one of these, its window is not over, and no other item has the
    /// key. Runs user code.
    pub(crate) fn are_recent(&self, items: &[T]) -> bool {
        let hash_of = self.besides.hash.as_ref();
        let Some(hash_of) = hash_of.filter(|_| !self.windows.earlier.lock().is_empty()) else {
            return false;
        };
        let now = self.times.clock.now();
        items.iter().any(|item| {
            let hash = hash_of(item);
            let end = self.windows.earlier.lock().get(&hash).copied();
            let is_taken = || self.pages().is_some_and(|pages| pages.is_taken(hash));
            end.is_some_and(|end| now < end) && !is_taken()
        })
    }

    /// Adds the windows of items that are committed to the batch, and ends some that are over.
    pub(crate) fn begin_windows(&self, batch: &mut Batch, hashes: impl Iterator<Item = u128>) {
        let now = self.store.wall_time();
        let until = self.wall_time_after(self.unique_for);
        let mut ends = self.windows.ends.lock();
        for hash in hashes {
            let id = self.new_ids(1);
            ends.insert((until, id, hash));
            batch.others.push(Change::Recent(self.key(id), until, hash));
            for _ in 0..2 {
                if let Some((_, id, hash)) = ends.first().copied().filter(|it| it.0 <= now) {
                    ends.pop_first();
                    self.windows.earlier.lock().remove(&hash);
                    batch.others.push(Change::Unmark(self.key(id)));
                }
            }
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
