//! What can be read of a damaged store becomes a new one, whose counts are right.

use super::directory::Directory;
use super::source::Source;
use super::tables::{guarded, Tables};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, open, queue_digest, row_digest, split_value, Counts, Digest, Key,
    LetterRow, Mark, OrderTag, QueueRow, StoreRow, ITEMS, LETTERS, MARKS, QUEUES, STORE, STORE_ROW,
};
use std::collections::{HashMap, HashSet};

/// How many rows are written as one.
const ROWS: usize = 1_000;

/// Puts a database with all that can be read in the place of the damaged one, which is put aside.
///
/// The tables and the changes in the journals are taken together if they have all that was committed. Otherwise some
/// journals may be damaged, and the tables newer than what is left of them.
pub(super) fn salvage(
    directory: &Directory,
    acknowledged: u64,
    memtable: u64,
) -> Result<Damage, StoreError> {
    let mut source = Source::open(directory, memtable)?;
    let (mut damage, is_whole) = copy(&source, directory, acknowledged, memtable)?;
    if !is_whole {
        source.forget_changes();
        (damage, _) = copy(&source, directory, acknowledged, memtable)?;
    }
    drop(source);
    directory.remove_copies()?;
    let aside = directory.put_aside()?;
    directory.put_in_place()?;
    damage.details = format!("the damaged database is in {}", aside.display()).into();
    Ok(damage)
}

/// Makes the new database; returns what is missing, and whether it has exactly what was committed.
fn copy(
    source: &Source,
    directory: &Directory,
    acknowledged: u64,
    memtable: u64,
) -> Result<(Damage, bool), StoreError> {
    let tables = Tables::open(&directory.empty("db.new")?, memtable)?;
    let mut salvaged = Salvaged::new(&tables);
    let is_whole = salvaged.copy(source, acknowledged)?;
    let damage = salvaged.damage;
    tables.sync()?;
    Ok((damage, is_whole))
}

/// The new database.
struct Salvaged<'t> {
    tables: &'t Tables,
    rows: Vec<(usize, Vec<u8>, Vec<u8>)>,
    queues: HashMap<u32, QueueRow>,
    last_id: u64,
    damage: Damage,
}

impl<'t> Salvaged<'t> {
    fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            rows: Vec::new(),
            queues: HashMap::new(),
            last_id: 0,
            damage: Damage::default(),
        }
    }

    /// Copies all rows; returns whether they are those that were committed.
    fn copy(&mut self, source: &Source, acknowledged: u64) -> Result<bool, StoreError> {
        let store = store_row(source)?;
        let queues = self.queue_rows(source)?;
        let (expected, expected_count) = (self.queues.clone(), self.count());
        for row in self.queues.values_mut() {
            row.counts = Counts::default();
        }
        let buried = self.letters(source)?;
        let items = self.items(source, &buried)?;
        self.marks(source, &items)?;
        let there = self.count();
        self.damage.missing = expected_count.saturating_sub(there);
        self.damage.extra = there.saturating_sub(expected_count);
        let is_newest = store.group >= acknowledged && queues == store.queues;
        let is_whole = is_newest && self.queues == expected;
        if !is_whole {
            self.damage.commits = source.missing(acknowledged);
        }
        self.catalog(store, acknowledged)?;
        Ok(is_whole)
    }

    /// How many items and letters there are.
    fn count(&self) -> u64 {
        let rows = self.queues.values();
        rows.map(|row| row.counts.all_items()).sum()
    }

    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.rows.push((table, key.to_vec(), value.to_vec()));
        if self.rows.len() >= ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let mut batch = self.tables.database.batch();
        for (table, key, value) in self.rows.drain(..) {
            batch.insert(&self.tables[table], key, value);
        }
        guarded(|| Ok(batch.commit()?))
    }

    /// Reads the rows of the queues; returns their digest.
    fn queue_rows(&mut self, source: &Source) -> Result<Digest, StoreError> {
        let mut digest = Digest::default();
        source.each(QUEUES, &mut |key, value| {
            let id = key.try_into().map(u32::from_be_bytes);
            if let (Ok(id), Ok(row)) = (id, decode_row(key, value)) {
                digest.add(queue_digest(id, value));
                self.queues.insert(id, row);
            }
            Ok(())
        })?;
        Ok(digest)
    }

    /// The row of a queue, which is made up if it was lost.
    fn queue(&mut self, key: Key, order: OrderTag) -> &mut QueueRow {
        self.last_id = self.last_id.max(key.id);
        let id = key.queue;
        self.queues.entry(id).or_insert_with(|| QueueRow {
            name: format!("lost queue {id}"),
            order,
            closed: false,
            counts: Counts::default(),
        })
    }

    /// Copies the dead letters; returns the items that they were.
    fn letters(&mut self, source: &Source) -> Result<HashSet<Key>, StoreError> {
        let mut buried = HashSet::new();
        let mut unreadable = 0;
        unreadable += source.each(LETTERS, &mut |bytes, value| {
            let row: Result<LetterRow, _> = decode_row(bytes, value);
            let (Some(key), Ok(letter)) = (Key::from_bytes(bytes), row) else {
                unreadable += 1;
                return Ok(());
            };
            buried.insert(Key {
                id: letter.item,
                ..key
            });
            self.queue(key, order_of(letter.schedule.is_some()))
                .counts
                .letters
                .add(key.digest());
            self.put(LETTERS, bytes, value)
        })?;
        self.damage.unreadable += unreadable;
        Ok(buried)
    }

    /// Copies the items that are no dead letters; returns which.
    fn items(
        &mut self,
        source: &Source,
        buried: &HashSet<Key>,
    ) -> Result<HashSet<Key>, StoreError> {
        let mut items = HashSet::new();
        let mut unreadable = 0;
        unreadable += source.each(ITEMS, &mut |bytes, value| {
            let content = open(bytes, value).and_then(split_value);
            let (Some(key), Some((schedule, _))) = (Key::from_bytes(bytes), content) else {
                unreadable += 1;
                return Ok(());
            };
            if buried.contains(&key) || !items.insert(key) {
                return Ok(());
            }
            self.queue(key, order_of(schedule.is_some()))
                .counts
                .items
                .add(key.digest());
            self.put(ITEMS, bytes, value)
        })?;
        self.damage.unreadable += unreadable;
        Ok(items)
    }

    /// Copies the marks of items.
    fn marks(&mut self, source: &Source, items: &HashSet<Key>) -> Result<(), StoreError> {
        source.each(MARKS, &mut |bytes, value| {
            let key = Key::from_bytes(bytes).filter(|key| items.contains(key));
            let (Some(key), Ok(_)) = (key, decode_row::<Mark>(bytes, value)) else {
                return Ok(());
            };
            let digest = row_digest(key, value);
            self.queue(key, OrderTag::Fifo).counts.marks.add(digest);
            self.put(MARKS, bytes, value)
        })?;
        Ok(())
    }

    /// Writes the counts of what was copied.
    fn catalog(&mut self, mut store: StoreRow, acknowledged: u64) -> Result<(), StoreError> {
        store.group = store.group.max(acknowledged);
        store.next_id = store.next_id.max(self.last_id + 1);
        store.queues = Digest::default();
        for (id, row) in std::mem::take(&mut self.queues) {
            let key = id.to_be_bytes();
            let row = encode_row(&key, &row);
            store.queues.add(queue_digest(id, &row));
            self.put(QUEUES, &key, &row)?;
        }
        self.put(STORE, STORE_ROW, &encode_row(STORE_ROW, &store))?;
        self.write()
    }
}

fn store_row(source: &Source) -> Result<StoreRow, StoreError> {
    let mut store = StoreRow::default();
    source.each(STORE, &mut |key, value| {
        store = decode_row(key, value).unwrap_or(store);
        Ok(())
    })?;
    Ok(store)
}

fn order_of(has_schedule: bool) -> OrderTag {
    if has_schedule {
        OrderTag::ByPriority
    } else {
        OrderTag::Fifo
    }
}
