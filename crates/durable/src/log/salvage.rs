//! What can be read of a damaged store becomes a new one, whose counts are right.

use super::directory::Directory;
use super::source::Source;
use super::tables::{guarded, Tables};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, level, queue_digest, split_value, value_of, Counts, Digest, IndexRows,
    ItemRow, Key, OrderTag, QueueRow, Ranges, Row, StoreRow, ITEMS, LETTERS, MARKS, QUEUES, STORE,
    STORE_ROW,
};
use fjall::OwnedWriteBatch;
use std::collections::{HashMap, HashSet};
use std::mem;

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
    let mut salvaged = Salvaged {
        tables: &tables,
        batch: tables.database.batch(),
        queues: HashMap::new(),
        last_id: 0,
        damage: Damage::default(),
    };
    let is_whole = salvaged.copy(source, acknowledged)?;
    let damage = salvaged.damage;
    tables.sync()?;
    Ok((damage, is_whole))
}

/// The new database.
struct Salvaged<'t> {
    tables: &'t Tables,
    /// Rows that are not written yet.
    batch: OwnedWriteBatch,
    queues: HashMap<u32, QueueRow>,
    last_id: u64,
    damage: Damage,
}

impl Salvaged<'_> {
    /// Copies all rows; returns whether they are those that were committed.
    fn copy(&mut self, source: &Source, acknowledged: u64) -> Result<bool, StoreError> {
        let store = store_row(source)?;
        let queues = self.queue_rows(source)?;
        let (expected, expected_count) = (self.queues.clone(), self.count());
        for row in self.queues.values_mut() {
            row.counts = Counts::default();
        }
        self.rows(source)?;
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
        self.batch.insert(&self.tables[table], key, value);
        if self.batch.len() >= ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let batch = mem::replace(&mut self.batch, self.tables.database.batch());
        guarded(|| Ok(batch.commit()?))
    }

    /// Reads the rows of the queues; returns their digest.
    fn queue_rows(&mut self, source: &Source) -> Result<Digest, StoreError> {
        let mut digest = Digest::default();
        source.each(QUEUES, &mut |key, value| {
            let id = key.try_into().map(u32::from_be_bytes);
            if let (Ok(id), Ok(row)) = (id, decode_row(key, value)) {
                digest.add(queue_digest(id, value));
                let index = IndexRows::default(); // they are not copied
                self.queues.insert(id, QueueRow { index, ..row });
            }
            Ok(())
        })?;
        Ok(digest)
    }

    /// The row of a queue, which is made up if it was lost.
    fn queue(&mut self, key: Key, has_schedule: bool) -> &mut QueueRow {
        self.last_id = self.last_id.max(level::serial(key.id));
        let order = if has_schedule {
            OrderTag::ByPriority
        } else {
            OrderTag::Fifo
        };
        let made_up = || QueueRow::new(&format!("lost queue {}", key.queue), order);
        self.queues.entry(key.queue).or_insert_with(made_up)
    }

    /// Copies the rows of the queues: letters, the items that are none, and the marks of these.
    fn rows(&mut self, source: &Source) -> Result<(), StoreError> {
        let (mut no_items, gone) = removed(source)?;
        let mut items = HashSet::new();
        for table in [LETTERS, ITEMS, MARKS] {
            let mut unreadable = 0;
            unreadable += source.each(table, &mut |bytes, value| {
                let Ok(row) = Row::read(table, bytes, value) else {
                    unreadable += 1;
                    return Ok(());
                };
                let (key, has_schedule) = match &row {
                    Row::Letter(key, letter) => {
                        let id = letter.item;
                        no_items.insert(Key { id, ..*key });
                        (*key, letter.schedule.is_some())
                    }
                    Row::Mark(key) if items.contains(key) => (*key, false),
                    Row::Mark(_) | Row::Unique(_) | Row::Due(_) | Row::Gone(..) => return Ok(()),
                    Row::Items(row) => {
                        for (key, content) in row.keys().zip(row.contents(value)) {
                            let gone = gone.get(&key.queue);
                            let is_gone = gone.is_some_and(|gone| gone.contains(key.id));
                            if !is_gone && !no_items.contains(&key) && items.insert(key) {
                                self.item(key, content)?;
                            }
                        }
                        return Ok(());
                    }
                };
                self.queue(key, has_schedule)
                    .counts
                    .add(&row, value, &Ranges::default());
                self.put(table, bytes, value)
            })?;
            // Without its mark, an item is delivered as one that was pushed just now.
            self.damage.unreadable += if table == MARKS { 0 } else { unreadable };
        }
        Ok(())
    }

    /// Each item gets a row of its own.
    fn item(&mut self, key: Key, content: &[u8]) -> Result<(), StoreError> {
        let bytes = key.to_bytes();
        let front = split_value(content).map(|(front, _)| front);
        let has_schedule = front.is_some_and(|front| front.schedule.is_some());
        let counts = &mut self.queue(key, has_schedule).counts;
        counts.items.add(key.digest());
        self.put(ITEMS, &bytes, &value_of(&bytes, content))
    }

    /// Writes the counts of what was copied.
    fn catalog(&mut self, mut store: StoreRow, acknowledged: u64) -> Result<(), StoreError> {
        store.group = store.group.max(acknowledged);
        store.next_id = store.next_id.max(self.last_id + 1);
        store.queues = Digest::default();
        for (id, row) in mem::take(&mut self.queues) {
            let key = id.to_be_bytes();
            let row = encode_row(&key, &row);
            store.queues.add(queue_digest(id, &row));
            self.put(QUEUES, &key, &row)?;
        }
        self.put(STORE, STORE_ROW, &encode_row(STORE_ROW, &store))?;
        self.write()
    }
}

/// The items of chunks that were removed, and of each queue those that are gone.
fn removed(source: &Source) -> Result<(HashSet<Key>, HashMap<u32, Ranges>), StoreError> {
    let (mut tombstones, mut all_gone) = (HashSet::new(), HashMap::new());
    source.each(ITEMS, &mut |key, value| {
        match Row::read(ITEMS, key, value) {
            Ok(Row::Items(tombstone @ ItemRow::Tombstone(..))) => {
                tombstones.extend(tombstone.keys());
            }
            Ok(Row::Gone(queue, gone)) => drop(all_gone.insert(queue, gone)),
            _ => {}
        }
        Ok(())
    })?;
    Ok((tombstones, all_gone))
}

fn store_row(source: &Source) -> Result<StoreRow, StoreError> {
    let mut store = StoreRow::default();
    source.each(STORE, &mut |key, value| {
        store = decode_row(key, value).unwrap_or(store);
        Ok(())
    })?;
    Ok(store)
}
