//! Gives back the room of removed items, once none is left.
//!
//! By itself the storage engine removes a journal when the last of the tables has grown by a memtable, and merges the row of an item
//! with its removal when that has come down through all levels. A thread does both as soon as the queues are empty and the files
//! large, while commits go on.

mod trim;

use super::tables::{guarded, Tables};
use crate::error::StoreError;
use crate::format::{ITEMS, MARKS};
use fjall::Keyspace;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use trim::Trim;

/// The tables whose rows are gone when no item is left, except the marks of taken keys.
const EMPTY: [usize; 2] = [ITEMS, MARKS];
/// The length of a journal. The storage engine goes on in another one when one is longer.
const JOURNAL: u64 = 64 << 20;
/// How often it is looked whether tables are still being written, which fails on a full disk, and the pause between.
const POLLS: u32 = 1_000;
const POLL: Duration = Duration::from_millis(10);

/// The thread that gives back room, if it runs.
pub(super) struct Shrink {
    /// The other one, which does so while some are left.
    pub(super) trim: Trim,
    /// How many bytes the journals and the tables take at most when no item is left.
    limit: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    thread: Option<JoinHandle<()>>,
    runs: bool,
    /// It is to go on with what was written since it began.
    again: bool,
    /// How much less than half of the limit could not be reached: somebody reads what was removed.
    left: u64,
}

impl Shrink {
    pub(super) fn new(memtable: u64) -> Self {
        Self {
            trim: Trim::new(memtable),
            limit: 2 * memtable.max(JOURNAL),
            state: Arc::default(),
        }
    }

    /// No item is left. Starts the thread if the files are large: `journals` is the size of the journals in bytes.
    pub(super) fn empty(&self, tables: &Tables, journals: u64) {
        let mut state = self.state.lock();
        if journals + size(tables.all()) < self.limit + state.left {
            return;
        }
        tables.gone.note_written();
        if mem::replace(&mut state.runs, true) {
            state.again = true;
            return;
        }
        let files = tables.share();
        let (shared, limit) = (Arc::clone(&self.state), self.limit);
        let run = move || loop {
            // An error is one of the next commit too.
            let shrunk = shrink(&files, true);
            let journals = guarded(|| Ok(files.database.journal_disk_space()?));
            let size = journals.unwrap_or(0) + size(files.all());
            let left = size.saturating_sub(limit / 2);
            let mut state = shared.lock();
            if shrunk.is_err() || !mem::take(&mut state.again) {
                (state.left, state.runs) = (left, false);
                return;
            }
        };
        let thread = thread::Builder::new().name("requeue shrink".into());
        state.thread = thread.spawn(run).ok();
        state.runs = state.thread.is_some();
    }
}

impl Drop for Shrink {
    fn drop(&mut self) {
        let thread = self.state.lock().thread.take();
        let _ = thread.map(JoinHandle::join);
    }
}

/// Writes what is in memory to tables, so that no journal but the newest is needed. Then it drops the tables of items that are gone, and, if
/// it is to `merge`, merges the other rows with their removals.
pub(super) fn shrink(tables: &Tables, merge: bool) -> Result<(), StoreError> {
    guarded(|| {
        for table in tables.all() {
            table.rotate_memtable()?;
        }
        let is_sealed = |table: &Keyspace| table.sealed_memtable_count() > 0;
        for _ in 0..POLLS {
            if !tables.all().iter().any(is_sealed) {
                break;
            }
            thread::sleep(POLL);
        }
        tables.drop_gone()?;
        for table in EMPTY.into_iter().filter(|_| merge) {
            tables[table].major_compact()?;
        }
        Ok(())
    })
}

/// How many bytes the tables take whose rows are gone when no item is left.
fn size(tables: &[Keyspace]) -> u64 {
    EMPTY.iter().map(|table| tables[*table].disk_space()).sum()
}
