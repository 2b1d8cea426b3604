//! Random groups of commits, compared with a model in memory after each reopening of the store.
//!
//! `DURABLE_CASES` sets the number of cases, `DURABLE_SEED` runs only the one that a failure names.

#[path = "../../../../tests/common/random.rs"]
mod random;

mod changes;

use super::Disk;
use crate::batch::{Batch, Change};
use crate::format::{
    decode_row, row_digest, Digest, Front, Key, Layout, LetterRow, Mark, OrderTag, QueueRow,
};
use crate::log::shrink::shrink;
use crate::log::{visit, Directory};
use changes::change;
use fjall::Keyspace;
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const QUEUES: usize = 4;
/// The one whose items are in chunks.
const CHUNKS: u32 = 0;
/// This one and those before have ranges of items that are gone.
const GONE: u32 = 1;
/// The items of this one have rows of their due times.
const DUE: u32 = 3;
const GROUPS: usize = 30;
/// Numbers that are taken between a number and its commit, so that its run is far from the others.
const FAR: u64 = 3_000;

type Item = (Front, Vec<u8>);
type Rows<R> = BTreeMap<Key, R>;

/// What the tables must hold.
#[derive(Default)]
struct Model {
    items: Rows<Item>,
    marks: Rows<Mark>,
    letters: Rows<LetterRow>,
    closed: BTreeMap<u32, bool>,
    /// Removed items, which may be marked late.
    gone: BTreeSet<Key>,
    /// Those of them that were.
    late: BTreeSet<Key>,
}

impl Model {
    fn remove(&mut self, key: Key) {
        assert!(self.items.remove(&key).is_some());
        self.marks.remove(&key);
        self.gone.insert(key);
    }

    fn remove_queue(&mut self, queue: u32) {
        self.items.retain(|key, _| key.queue != queue);
        self.marks.retain(|key, _| key.queue != queue);
        self.letters.retain(|key, _| key.queue != queue);
        self.gone.retain(|key| key.queue != queue);
        self.late.retain(|key| key.queue != queue);
        self.closed.remove(&queue);
    }
}

struct Case {
    random: Random,
    files: TempDir,
    disk: Option<Disk>,
    model: Model,
    /// The group that is collected, and its queues.
    group: Batch,
    queues: BTreeSet<u32>,
    /// The number of the last group.
    number: u64,
    /// Items that were pushed as if they were in memory, since the store was opened.
    hot: BTreeSet<Key>,
    /// How the batch that is being made writes chunks.
    layout: Layout,
    /// Numbers that were taken long ago.
    taken: Vec<Range<u64>>,
}

fn open_disk(files: &TempDir) -> Disk {
    let directory = Directory::enter(files.path(), false).unwrap();
    Disk::open(
        directory,
        &crate::StoreOptions::new().memtable(1 << 16).reserve(0),
    )
    .unwrap()
}

impl Case {
    fn new(seed: u64) -> Self {
        let files = tempfile::tempdir().unwrap();
        Self {
            random: Random::new(seed),
            disk: Some(open_disk(&files)),
            files,
            model: Model::default(),
            group: Batch::default(),
            queues: BTreeSet::new(),
            number: 0,
            hot: BTreeSet::new(),
            layout: Layout::Cold,
            taken: Vec::new(),
        }
    }

    fn disk(&self) -> &Disk {
        self.disk.as_ref().unwrap()
    }

    /// Numbers for items or letters: new ones, or those that a transaction took long ago.
    fn ids(&mut self, count: u64) -> Range<u64> {
        if self.random.percent(20) {
            if let Some(ids) = self.taken.pop() {
                return ids;
            }
        }
        let take = |count| self.disk().next_id.fetch_add(count, Ordering::Relaxed);
        let first = take(count);
        let ids = first..first + count;
        if self.random.percent(10) {
            self.taken.push(ids);
            let first = self.disk().next_id.fetch_add(FAR, Ordering::Relaxed);
            return first..first + count;
        }
        ids
    }

    /// The row of a queue is there before its first change.
    fn enter(&mut self, queue: u32) {
        self.queues.insert(queue);
        self.model.closed.entry(queue).or_default();
        let mut row = QueueRow::new(&format!("queue {queue}"), OrderTag::Fifo);
        if queue == DUE {
            row.order = OrderTag::ByPriority;
            row.index.due = Some(Digest::default());
        }
        if queue <= GONE {
            self.disk().let_gone_grow(queue).unwrap();
        }
        let mut catalog = self.disk().catalog();
        if catalog.queues.get(queue).is_none() {
            catalog.queues.insert(queue, row);
        }
    }

    fn batch(&mut self, queue: u32) {
        self.enter(queue);
        self.layout = self.random.pick(&[Layout::Cold, Layout::Hot]);
        let mut batch = Batch::default();
        for _ in 0..=self.random.below(4) {
            match self.random.below(19) {
                0..=4 => self.push(&mut batch, queue),
                5..=7 => self.remove(&mut batch, queue),
                8..=10 => self.mark(&mut batch, queue),
                11 => self.mark_late(&mut batch, queue),
                12 => self.unmark(&mut batch, queue),
                13 => self.bury(&mut batch, queue),
                14 => self.unbury(&mut batch, queue),
                15..=16 => self.replace(&mut batch, queue),
                17 => self.window(&mut batch, queue),
                _ => {
                    let closed = self.random.percent(50);
                    change(&mut batch, Change::Close(queue, closed));
                    self.model.closed.insert(queue, closed);
                }
            }
        }
        self.group.append(&mut batch);
    }

    /// A group has nothing else of a queue that it removes.
    fn group(&mut self) {
        let removed = self.random.percent(5).then(|| self.random.below(QUEUES));
        let batches = self.random.below(6);
        let remove_after = self.random.below(batches + 1);
        for index in 0..=batches {
            if let (Some(removed), true) = (removed, index == remove_after) {
                let queue = u32::try_from(removed).unwrap();
                change(&mut self.group, Change::Remove(queue));
                self.model.remove_queue(queue);
            }
            let queue = self.random.below(QUEUES);
            if removed != Some(queue) {
                self.batch(u32::try_from(queue).unwrap());
            }
        }
        self.number += 1;
        let sync = self.random.percent(30);
        let mut group = std::mem::take(&mut self.group);
        self.disk().write(&mut group, self.number, sync).unwrap();
        if self.random.percent(10) {
            self.give_back();
        }
    }

    /// Drops tables, and merges others, or perhaps only some tables are written.
    fn give_back(&mut self) {
        let merge = self.random.percent(50);
        let tables = &self.disk().tables;
        tables.gone.note_written();
        shrink(tables, merge).unwrap();
        let catalog = self.disk().catalog();
        catalog.check_all(tables).unwrap();
    }

    fn reopen(&mut self) {
        self.taken.clear();
        self.hot.clear();
        self.disk = None;
        self.disk = Some(open_disk(&self.files));
        self.compare();
        // As the queues do when they are opened.
        let mut marks = Vec::new();
        let table = &self.disk().tables[crate::format::MARKS];
        visit::<&[u8]>(table, .., |bytes, value| {
            let Some(key) = Key::from_bytes(&bytes) else {
                return Ok(()); // a due time
            };
            marks.push((key, (decode_row(&bytes, &value)?, row_digest(key, &value))));
            Ok(())
        })
        .unwrap();
        self.disk().catalog().marks.extend(marks);
        if self.random.percent(30) {
            self.spread();
        }
    }

    /// As a queue by priority that has pages from now on.
    fn spread(&mut self) {
        let queue = self.random.pick(&[CHUNKS, DUE]);
        let from = Key { queue, id: 0 };
        let items = self.disk().items(from, 0..=u64::MAX).unwrap();
        let chunks: BTreeSet<_> = items
            .filter_map(|item| item.unwrap().chunk)
            .map(|it| it.0)
            .collect();
        let mut group = Batch::of(chunks.into_iter().map(Change::Spread));
        self.number += 1;
        self.disk().write(&mut group, self.number, false).unwrap();
        self.compare();
        let mut items = self.disk().items(from, 0..=u64::MAX).unwrap();
        assert!(items.all(|item| item.unwrap().chunk.is_none()));
    }

    fn compare(&self) {
        let (disk, model) = (self.disk(), &self.model);
        let catalog = disk.catalog();
        catalog.check_all(&disk.tables).unwrap();
        assert_eq!(catalog.store.group, self.number);
        let keys = model.items.keys().chain(model.letters.keys());
        let last = keys.map(|key| key.id).max().unwrap_or(0);
        assert!(disk.next_id.load(Ordering::Relaxed) > last);
        let closed = |queue: &u32| catalog.queues.get(*queue).is_some_and(|row| row.closed);
        assert!(model.closed.iter().all(|(queue, is)| closed(queue) == *is));
        let mut queues = catalog.queues.all();
        assert!(queues.all(|(id, _)| model.closed.contains_key(&id)));
        let items = catalog.queues.all().map(|(_, row)| row.counts.items.count);
        assert_eq!(catalog.queues.items(), items.sum::<u64>());
        let mut items = Rows::new();
        for queue in 0..u32::try_from(QUEUES).unwrap() {
            for item in disk.items(Key { queue, id: 0 }, 0..=u64::MAX).unwrap() {
                let item = item.unwrap();
                let (front, bytes) = item.split().unwrap();
                items.insert(item.at, (front, bytes.to_vec()));
            }
        }
        assert_eq!(items, model.items);
        let due = disk.items(Key { queue: DUE, id: 0 }, 0..=u64::MAX).unwrap();
        let due: BTreeMap<_, _> = due
            .map(|item| item.unwrap().due_row().unwrap())
            .map(|row| (row.key(), row.count))
            .collect();
        let rows_of_due = disk.due_rows(DUE, 0..=u16::MAX, (0, 0)).unwrap();
        let rows_of_due = rows_of_due.map(|row| row.unwrap());
        assert!(rows_of_due.map(|row| (row.key(), row.count)).eq(due));
        for key in self.model.gone.iter().chain(items.keys()) {
            let item = disk.item(*key).unwrap();
            let item = item.as_ref().map(|item| item.split().unwrap().1);
            assert_eq!(item, items.get(key).map(|(_, bytes)| &**bytes));
        }
        let letters = rows(&disk.tables[crate::format::LETTERS], |key, value| {
            decode_row::<LetterRow>(key, value).unwrap()
        });
        assert_eq!(letters, model.letters);
        let mut marks = rows(&disk.tables[crate::format::MARKS], |key, value| {
            decode_row::<Mark>(key, value).unwrap()
        });
        marks.retain(|key, _| !model.late.contains(key));
        assert_eq!(marks, model.marks);
    }
}

fn rows<R>(table: &Keyspace, decode: impl Fn(&[u8], &[u8]) -> R) -> Rows<R> {
    let mut rows = BTreeMap::new();
    visit::<&[u8]>(table, .., |key, value| {
        if let Some(at) = Key::from_bytes(&key) {
            rows.insert(at, decode(&key, &value));
        }
        Ok(())
    })
    .unwrap();
    rows
}

#[test]
fn groups_change_the_tables_as_their_commits_one_by_one() {
    random::cases(10, |seed| {
        let mut case = Case::new(seed);
        for _ in 0..GROUPS {
            case.group();
            if case.random.percent(30) {
                case.reopen();
            }
        }
        case.reopen();
    });
}

/// A disk with the row of a queue whose items are noted as gone.
struct Noted {
    _files: TempDir,
    disk: Disk,
    number: u64,
}

impl Noted {
    fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let disk = open_disk(&files);
        let row = QueueRow::new("jobs", OrderTag::Fifo);
        disk.catalog().queues.insert(0, row);
        disk.let_gone_grow(0).unwrap();
        Self {
            _files: files,
            disk,
            number: 0,
        }
    }

    /// Writes a group; returns what is gone then.
    fn write(
        &mut self,
        pushed: impl IntoIterator<Item = u64>,
        removed: impl IntoIterator<Item = u64>,
    ) -> Vec<(u64, u64)> {
        let key = |id| Key { queue: 0, id };
        let item = (Front::default(), vec![1; 100]);
        let mut group = Batch::default();
        let keys = pushed.into_iter().map(key);
        keys.for_each(|key| changes::push(&mut group, key, &item));
        let keys = removed.into_iter().map(key);
        keys.for_each(|key| changes::remove(&mut group, key));
        self.number += 1;
        self.disk.write(&mut group, self.number, false).unwrap();
        let gone = self.disk.gone(0).unwrap();
        gone.iter().map(|ids| (ids.start, ids.end)).collect()
    }
}

/// Its number was skipped when those beside it were removed.
#[test]
fn an_item_that_is_pushed_and_removed_by_a_group_splits_no_range() {
    let mut noted = Noted::new();
    noted.write([10, 12], []);
    assert_eq!(noted.write([], [10, 12]), [(10, 13)]);
    assert_eq!(noted.write([11], [11]), [(10, 13)]);
    assert_eq!(noted.write([11], []), [(10, 11), (12, 13)]);
    assert_eq!(noted.write([], [11]), [(10, 13)]);
}

#[test]
fn an_item_that_comes_late_is_not_merged_away() {
    let mut noted = Noted::new();
    let others = || (0..5_000).filter(|id| *id != 2_000);
    noted.write(others(), []);
    assert_eq!(noted.write([], others()), [(0, 5_000)]);
    noted.disk.tables.gone.note_written();
    shrink(&noted.disk.tables, true).unwrap();
    assert_eq!(noted.write([2_000], []), [(0, 2_000), (2_001, 5_000)]);
    shrink(&noted.disk.tables, true).unwrap();
    let at = Key {
        queue: 0,
        id: 2_000,
    };
    assert!(noted.disk.item(at).unwrap().is_some());
}

/// A search has found the gap in which it is, before it came.
#[test]
fn an_item_that_comes_late_is_in_no_gap() {
    let mut noted = Noted::new();
    noted.write([10, 20, 30, 40, 50], []);
    assert_eq!(noted.write([], [10, 20]), [(10, 21)]);
    assert_eq!(noted.write([25], []), [(10, 21)]);
    assert_eq!(noted.write([], [30]), [(10, 21), (30, 31)]);
    assert_eq!(noted.write([], [25]), [(10, 31)]);
}
