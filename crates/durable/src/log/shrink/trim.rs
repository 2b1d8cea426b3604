//! Gives back the room of items that are gone, while others are left.
//!
//! Nothing else does so if a queue always has a backlog: the storage engine merges tables that grow, and of such a queue it only moves the
//! new ones.

use crate::format::ITEMS;
use crate::log::catalog::Catalog;
use crate::log::tables::Tables;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// How much room is worth it: so many memtables, and this part of the table.
const MEMTABLES: u64 = 8;
const PART: u64 = 16;
/// The fewest items for which the table is measured.
const LEAST: u64 = 16;
/// So often that number is doubled.
const MOST_IDLE: u64 = 20;

pub(in crate::log) struct Trim {
    memtable: u64,
    /// After how many items the table is measured again.
    items: AtomicU64,
    /// How many bytes were written since the thread ran.
    written: AtomicU64,
    /// How many times in a row there was nothing to drop. Then it takes twice as many items until the next time, unless much was written:
    /// they may be much smaller than others.
    idle: Arc<AtomicU64>,
    /// The bytes of tables that were dropped since the last group.
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Trim {
    pub(in crate::log) fn new(memtable: u64) -> Self {
        Self {
            memtable,
            items: AtomicU64::new(LEAST),
            written: AtomicU64::new(0),
            idle: Arc::default(),
            dropped: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// After a group of this length: starts the thread if the items that are gone are many.
    pub(in crate::log) fn after(&self, tables: &Tables, catalog: &mut Catalog, length: u64) {
        // Relaxed: statistics.
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let all = catalog.queues.items() + catalog.removed;
            let items = part(all, dropped, tables[ITEMS].disk_space() + dropped);
            catalog.removed = catalog.removed.saturating_sub(items);
        }
        // Relaxed: no other thread writes a group.
        let written = self.written.fetch_add(length, Ordering::Relaxed) + length;
        if catalog.retired < self.items.load(Ordering::Relaxed) {
            return;
        }
        let all = catalog.queues.items() + catalog.retired;
        let size = tables[ITEMS].disk_space().max(1);
        let worth = (MEMTABLES * self.memtable).max(size / PART);
        // Relaxed: statistics.
        let idle = self.idle.load(Ordering::Relaxed).min(MOST_IDLE);
        let least = if written < worth {
            LEAST << idle
        } else {
            LEAST
        };
        let items = part(all, worth, size).max(least);
        // What is not in the table yet is not measured.
        let next = items.min(2 * catalog.retired);
        // Relaxed: as above.
        self.items.store(next, Ordering::Relaxed);
        let mut thread = self.thread.lock();
        let runs = thread.as_ref().is_some_and(|it| !it.is_finished());
        if catalog.retired < items || runs {
            return;
        }
        catalog.retired = 0;
        // Relaxed: as above.
        self.items.store(LEAST, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
        tables.gone.note_written();
        let (dropped, idle) = (Arc::clone(&self.dropped), Arc::clone(&self.idle));
        let tables = tables.share();
        let run = move || {
            // An error is one of the next commit too.
            let size = tables.drop_gone().unwrap_or(0);
            // Relaxed: statistics.
            dropped.fetch_add(size, Ordering::Relaxed);
            let runs = idle.load(Ordering::Relaxed) + 1;
            idle.store(if size == 0 { runs } else { 0 }, Ordering::Relaxed);
        };
        let named = thread::Builder::new().name("requeue trim".into());
        *thread = named.spawn(run).ok();
    }

    pub(in crate::log) fn join(&self) {
        let thread = self.thread.lock().take();
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Trim {
    fn drop(&mut self) {
        self.join();
    }
}

/// So many items as are in this part of the bytes.
fn part(items: u64, bytes: u64, of: u64) -> u64 {
    let items = u128::from(bytes) * u128::from(items) / u128::from(of.max(1));
    u64::try_from(items).unwrap_or(u64::MAX)
}
