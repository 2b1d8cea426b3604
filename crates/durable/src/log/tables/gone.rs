//! Ranges of items that are gone, whose rows may be left: who reads these, and what gives back their room.
//!
//! | ranges | are | who changes them |
//! |---|---|---|
//! | `now` | passed over by readers | a group, before it is written |
//! | `written` | to be synced: a crash of the system must not bring items back whose rows are lost | a thread that has written a group, before the next one |
//! | `synced` | left out by merges; tables that have no other rows are dropped | the thread that drops tables |
//!
//! A group that takes numbers out again, as their items come late or their queue is removed, takes them out of all three, and waits
//! while tables of such numbers are being dropped.

use super::{guarded, unreadable, Tables};
use crate::error::StoreError;
use crate::format::{decode_row, gone_key, ItemRow, Key, Ranges, ITEMS, MOST_ITEMS};
use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use fjall::{AbstractTree, UserKey};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::mem;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// By queue.
type OfQueues = HashMap<u32, Arc<Ranges>>;

/// The items of a database that are gone by number.
#[derive(Default)]
pub(in crate::log) struct Gone {
    /// Of the queues of which that was asked.
    now: RwLock<OfQueues>,
    /// The queues in which more may be added.
    grow: RwLock<HashSet<u32>>,
    drops: Arc<Mutex<Drops>>,
    /// A drop has ended.
    ended: Condvar,
    /// Locked by the thread that drops tables.
    one: Mutex<()>,
}

#[derive(Default)]
struct Drops {
    written: OfQueues,
    syncing: OfQueues,
    synced: OfQueues,
    /// Tables with these numbers are being dropped.
    dropping: Option<(u32, Range<u64>)>,
}

impl Drops {
    fn is_dropping(&self, queue: u32, ids: &Range<u64>) -> bool {
        let dropping = self.dropping.as_ref();
        dropping.is_some_and(|(other, known)| {
            *other == queue && known.start < ids.end && ids.start < known.end
        })
    }
}

impl Gone {
    /// Those of a queue of which that was asked before.
    pub(in crate::log) fn known(&self, queue: u32) -> Option<Arc<Ranges>> {
        self.now.read().get(&queue).cloned()
    }

    pub(in crate::log) fn may_grow(&self, queue: u32) -> bool {
        self.grow.read().contains(&queue)
    }

    pub(in crate::log) fn put(&self, queue: u32, gone: Ranges) {
        self.now.write().insert(queue, Arc::new(gone));
    }

    /// These are not gone any more; the group that is being written says so. Waits while tables of them are dropped.
    pub(in crate::log) fn take_out(&self, queue: u32, ids: &Range<u64>) {
        let mut drops = self.drops.lock();
        while drops.is_dropping(queue, ids) {
            self.ended.wait(&mut drops);
        }
        let Drops {
            written,
            syncing,
            synced,
            ..
        } = &mut *drops;
        let mut now = self.now.write();
        for all in [&mut *now, written, syncing, synced] {
            if let Some(gone) = all.get_mut(&queue) {
                Arc::make_mut(gone).remove(ids);
            }
        }
    }

    /// All that is gone now is written. Called between two groups.
    pub(in crate::log) fn note_written(&self) {
        self.drops.lock().written.clone_from(&self.now.read());
    }

    /// For the merges of a table.
    pub(in crate::log) fn filter(&self) -> Arc<dyn Factory> {
        Arc::new(Filters(AssertUnwindSafe(Arc::clone(&self.drops))))
    }
}

impl Tables {
    /// The numbers of items of a queue that are gone, whose rows may be left.
    pub(in crate::log) fn gone(&self, queue: u32) -> Result<Arc<Ranges>, StoreError> {
        if let Some(known) = self.gone.known(queue) {
            return Ok(known);
        }
        let key = gone_key(queue);
        let row = guarded(|| Ok(self[ITEMS].get(key)?))?;
        let gone = row.map_or(Ok(Ranges::default()), |row| decode_row(&key, &row))?;
        let mut now = self.gone.now.write();
        Ok(Arc::clone(now.entry(queue).or_insert(Arc::new(gone))))
    }

    /// From now on items of this queue are noted as gone. Returns those that are.
    pub(in crate::log) fn let_gone_grow(&self, queue: u32) -> Result<Arc<Ranges>, StoreError> {
        let gone = self.gone(queue)?;
        self.gone.grow.write().insert(queue);
        Ok(gone)
    }

    /// Drops the tables in which all rows are of items that are gone, as far as that [is written](Gone::note_written). Returns how many
    /// bytes they have. Merges leave out those in other tables from now on.
    pub(in crate::log) fn drop_gone(&self) -> Result<u64, StoreError> {
        let (_one, drops) = (self.gone.one.lock(), &self.gone.drops);
        if drops.lock().begin_sync() {
            self.sync()?;
            drops.lock().end_sync();
        }
        let synced = drops.lock().synced.clone();
        let mut dropped = 0;
        for (queue, gone) in synced {
            for ids in gone.iter() {
                dropped += self.drop_tables(queue, ids)?;
            }
        }
        Ok(dropped)
    }

    /// Drops those of a range; returns how many bytes they have.
    fn drop_tables(&self, queue: u32, ids: &Range<u64>) -> Result<u64, StoreError> {
        let Gone { drops, ended, .. } = &*self.gone;
        // The last rows may be, or have been, chunks that have others.
        let ids = ids.start..ids.end.saturating_sub(MOST_ITEMS as u64);
        if ids.is_empty() {
            return Ok(0);
        }
        let [start, end] = [ids.start, ids.end].map(|id| Key { queue, id }.to_bytes());
        let tables = guarded(|| Ok(self[ITEMS].tree.current_version()))?;
        let sizes = tables.iter_tables().filter_map(|table| {
            let keys = &table.metadata.key_range;
            let has_no_others = **keys.min() >= start[..] && **keys.max() < end[..];
            has_no_others.then_some(table.metadata.file_size)
        });
        let size = sizes.sum();
        if size == 0 || !drops.lock().begin(queue, &ids) {
            return Ok(0);
        }
        let dropped = || self[ITEMS].tree.drop_range(start..end);
        let dropped = guarded(|| dropped().map_err(|error| unreadable(error.into())));
        drops.lock().dropping = None;
        ended.notify_all();
        dropped.map(|()| size)
    }
}

impl Drops {
    /// Returns whether there is something to be synced.
    fn begin_sync(&mut self) -> bool {
        self.syncing = mem::take(&mut self.written);
        !self.syncing.is_empty()
    }

    fn end_sync(&mut self) {
        self.synced = mem::take(&mut self.syncing);
    }

    /// Begins to drop tables with these numbers, unless they were taken out.
    fn begin(&mut self, queue: u32, ids: &Range<u64>) -> bool {
        let synced = self.synced.get(&queue);
        let are_gone = synced.is_some_and(|gone| gone.contains_all(ids));
        self.dropping = are_gone.then(|| (queue, ids.clone()));
        are_gone
    }
}

/// Leaves out rows of items that are gone. An earlier row under the same key, which may have others, must not come back.
struct Filters(AssertUnwindSafe<Arc<Mutex<Drops>>>);

impl Factory for Filters {
    fn name(&self) -> &'static str {
        "gone"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        // What is taken out later is of tables that this merge does not read.
        let gone = self.0.lock().synced.clone();
        Box::new(Filter { gone, hides: None })
    }
}

struct Filter {
    gone: OfQueues,
    /// The key of the last row that was left out: earlier rows under it are hidden by that one.
    hides: Option<UserKey>,
}

impl Filter {
    fn is_gone(&self, item: &ItemAccessor<'_>, context: &Context) -> Option<bool> {
        let at = Key::from_prefix(item.key())?;
        let gone = self.gone.get(&at.queue)?;
        if self.hides.as_ref() == Some(item.key()) {
            return Some(true);
        }
        let last = at.id.saturating_add(MOST_ITEMS as u64);
        if gone.contains_all(&(at.id..last)) {
            return Some(true);
        }
        // Such a merge has all earlier rows under the same key.
        if !context.is_last_level || !gone.contains(at.id) {
            return Some(false);
        }
        let value = item.value().ok()?;
        let row = ItemRow::read(item.key(), &value).ok()?;
        Some(gone.contains_all(&row.ids()))
    }
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, context: &Context) -> CompactionFilterResult {
        if self.is_gone(&item, context) != Some(true) {
            return Ok(Verdict::Keep);
        }
        self.hides = Some(item.key().clone());
        Ok(Verdict::Destroy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{value_of, Layout, NewChunk};
    use lsm_tree::compaction::PullDown;

    const ROWS: u64 = 10_000;

    fn key(id: u64) -> [u8; 12] {
        Key { queue: 0, id }.to_bytes()
    }

    /// Rows of ten thousand items, in ten tables.
    fn filled() -> (tempfile::TempDir, Tables) {
        let files = tempfile::tempdir().unwrap();
        let tables = Tables::open(files.path(), 1 << 20).unwrap();
        let items = &tables[ITEMS];
        for id in 0..ROWS {
            items.insert(key(id), [1; 100]).unwrap();
            if id % 1_000 == 999 {
                items.rotate_memtable_and_wait().unwrap();
            }
        }
        (files, tables)
    }

    fn put(tables: &Tables, ids: Range<u64>) {
        let mut gone = Ranges::default();
        gone.add(ids);
        tables.gone.put(0, gone);
    }

    fn left(tables: &Tables) -> usize {
        tables[ITEMS].range::<&[u8], _>(..).count()
    }

    #[test]
    fn only_what_is_written_is_dropped() {
        let (_files, tables) = filled();
        put(&tables, 0..5_000);
        tables.gone.note_written();
        put(&tables, 0..ROWS);
        // The last thousand numbers may be those of a chunk that has others.
        assert!(tables.drop_gone().unwrap() > 0);
        let most = left(&tables);
        assert!((6_000..=7_100).contains(&most), "{most}");
        tables[ITEMS].major_compact().unwrap();
        assert_eq!(left(&tables), 6_023);
        assert_eq!(tables.drop_gone().unwrap(), 0);
        tables.gone.note_written();
        tables.drop_gone().unwrap();
        tables[ITEMS].major_compact().unwrap();
        assert_eq!(left(&tables), 1_023);
    }

    /// The rows of a chunk, and of its first item alone, which comes later.
    fn rows() -> [([u8; 12], Vec<u8>); 2] {
        let mut chunk = NewChunk::default();
        let content = [0; 9];
        for id in 10..20 {
            assert!(chunk.add(Key { queue: 0, id }, Layout::Cold, None, &content));
        }
        let (first, chunk) = chunk.take().unwrap();
        let key = first.to_bytes();
        [(key, chunk), (key, value_of(&key, &content[8..]))]
    }

    #[test]
    fn a_row_that_a_merge_leaves_out_brings_no_earlier_one_back() {
        let files = tempfile::tempdir().unwrap();
        let tables = Tables::open(files.path(), 1 << 20).unwrap();
        let items = &tables[ITEMS];
        for (key, value) in rows() {
            items.insert(key, value).unwrap();
            items.rotate_memtable_and_wait().unwrap();
        }
        put(&tables, 10..11);
        tables.gone.note_written();
        tables.drop_gone().unwrap();
        items.major_compact().unwrap();
        assert_eq!(left(&tables), 0);
    }

    #[test]
    fn a_merge_without_earlier_rows_keeps_the_row_that_hides_them() {
        let files = tempfile::tempdir().unwrap();
        let tables = Tables::open(files.path(), 1 << 20).unwrap();
        let items = &tables[ITEMS];
        let [(_, chunk), (key, alone)] = rows();
        items.insert(key, chunk).unwrap();
        items.rotate_memtable_and_wait().unwrap();
        items.major_compact().unwrap();
        items.insert(key, &*alone).unwrap();
        items.rotate_memtable_and_wait().unwrap();
        put(&tables, 10..11);
        tables.gone.note_written();
        tables.drop_gone().unwrap();
        items.tree.compact(Arc::new(PullDown(0, 5)), 0).unwrap();
        assert_eq!(*items.get(key).unwrap().unwrap(), *alone);
    }

    #[test]
    fn what_is_taken_out_is_not_dropped() {
        for ids in [3_500..3_501, 0..u64::MAX] {
            let (_files, tables) = filled();
            put(&tables, 0..ROWS);
            tables.gone.note_written();
            tables.gone.take_out(0, &ids);
            tables.drop_gone().unwrap();
            tables[ITEMS].major_compact().unwrap();
            // And those before it that may be with it in a chunk.
            let some = if ids.end == u64::MAX { 10_000 } else { 2_047 };
            assert_eq!(left(&tables), some);
            assert!(tables[ITEMS].get(key(3_500)).unwrap().is_some());
        }
    }

    #[test]
    fn who_takes_something_out_waits_for_the_drop_of_its_tables() {
        let gone = Gone::default();
        assert!(!gone.drops.lock().begin(0, &(0..9)));
        let mut ranges = Ranges::default();
        ranges.add(0..100);
        gone.drops.lock().synced.insert(0, Arc::new(ranges));
        assert!(gone.drops.lock().begin(0, &(0..50)));
        gone.take_out(1, &(0..100));
        gone.take_out(0, &(50..60));
        std::thread::scope(|scope| {
            let (done, is_done) = std::sync::mpsc::channel();
            let waiting = &gone;
            scope.spawn(move || {
                waiting.take_out(0, &(49..50));
                done.send(()).unwrap();
            });
            for _ in 0..10_000 {
                std::thread::yield_now();
                assert!(is_done.try_recv().is_err());
            }
            gone.drops.lock().dropping = None;
            gone.ended.notify_all();
            is_done.recv().unwrap();
        });
        let left = &gone.drops.lock().synced[&0];
        assert!(left.iter().eq(&[0..49, 60..100]));
    }
}
