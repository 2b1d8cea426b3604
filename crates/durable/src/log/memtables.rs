//! Bounds what is in memory and in journals, and not in tables: all of it is read when a store is opened after a crash.
//!
//! The storage engine writes the memtable of each table when that is full. Those of small tables are not full for long, and journals
//! are needed until they are written. So those that are not small are written together, when they have a memtable's size together, and groups
//! wait while others are being written.

use super::tables::{guarded, Tables};
use crate::error::StoreError;
use fjall::{AbstractTree, Keyspace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What a row takes in memory besides its key and its value, in bytes.
pub(super) const BESIDE_ROW: usize = 64;
/// The most memtables of a table that wait to be written, besides the one that is written to.
const MOST_SEALED: usize = 2;
/// How often it is looked whether one was written, which fails on a full disk, and the pause between.
const POLLS: u32 = 10_000;
const POLL: Duration = Duration::from_millis(1);

/// The memtable of a small table is not written with the others, since each takes two syncs: it is small if it has less than this part of
/// what is the most. All are written after this many times the most, or this many bytes: until then a journal may be needed.
const PART: u64 = 8;
const ALL: u64 = 32 << 20;

/// The least that they have together before all of them are written. Those of the rows of the queues and of the store get small.
const LEAST: u64 = 256 << 10;

/// The memtables of a store.
pub(super) struct Memtables {
    most: u64,
    /// How many bytes groups have added since the last ones were sealed. Only the thread that writes a group changes it.
    size: AtomicU64,
    /// How many since all of them were sealed.
    since_all: AtomicU64,
}

impl Memtables {
    /// Those of a store with a memtable of this size.
    pub(super) fn new(memtable: u64) -> Self {
        Self {
            most: memtable.max(LEAST),
            size: AtomicU64::new(0),
            since_all: AtomicU64::new(0),
        }
    }

    pub(super) fn are_full(&self) -> bool {
        // Relaxed: no other thread writes a group.
        self.size.load(Ordering::Relaxed) >= self.most
    }

    /// Before a group is written, if they are full: has them written to tables. A group never is the last one in a journal that may be
    /// removed, since what seals its memtable is another group.
    pub(super) fn make_room(&self, tables: &Tables) -> Result<(), StoreError> {
        // Relaxed: as above.
        let size = self.size.swap(0, Ordering::Relaxed);
        let since_all = self.since_all.fetch_add(size, Ordering::Relaxed) + size;
        let is_due = since_all >= ALL.min(self.most.saturating_mul(PART));
        if is_due {
            self.since_all.store(0, Ordering::Relaxed);
        }
        guarded(|| {
            let is_behind = |table: &Keyspace| table.sealed_memtable_count() >= MOST_SEALED;
            let mut polls = 0..POLLS;
            while tables.all().iter().any(is_behind) && polls.next().is_some() {
                thread::sleep(POLL);
            }
            for table in tables.all() {
                if is_due || table.tree.active_memtable().size() >= self.most / PART {
                    table.rotate_memtable()?;
                }
            }
            Ok(())
        })
    }

    /// A group adds this many bytes.
    pub(super) fn add(&self, size: u64) {
        // Relaxed: as above.
        self.size.fetch_add(size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::LEAST;
    use crate::{DurableQueue, StoreOptions};

    #[test]
    fn what_is_not_in_tables_is_bounded() {
        let files = tempfile::tempdir().unwrap();
        let store = StoreOptions::new().memtable(LEAST).reserve(0);
        let store = store.open(files.path()).unwrap();
        let jobs: DurableQueue<Vec<u8>> = store.queue("jobs").unwrap();
        let tables = &store.inner.log.disk().tables;
        for _ in 0..150 {
            jobs.push_batch((0..20).map(|_| vec![1; 1_000])).unwrap();
            // A group and a half besides the memtables.
            assert!(tables.database.write_buffer_size() < 4 * LEAST);
        }
        while tables.all().iter().any(|it| it.sealed_memtable_count() > 0) {
            std::thread::yield_now();
        }
        // Those of the rows of the queues and of the store too, which are much smaller.
        let used = tables.all().iter().filter(|table| table.disk_space() > 0);
        assert_eq!(used.count(), 3);
    }
}
