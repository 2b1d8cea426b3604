//! What can be read of a damaged store becomes a new one, whose counts are right.

use super::directory::Directory;
use super::journal;
use super::tables::{guarded, Tables};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, open, queue_digest, row_digest, split_value, Digest, Key, LetterRow,
    Mark, OrderTag, QueueRow, StoreRow, STORE_ROW,
};
use fjall::Keyspace;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

const ITEMS: usize = 0;
const MARKS: usize = 1;
const LETTERS: usize = 2;
const QUEUES: usize = 3;
const STORE: usize = 4;

/// How many rows are written as one.
const ROWS: usize = 1_000;
/// How often a table is read from another place after an error.
const ATTEMPTS: u32 = 10_000;

/// Puts a database with all that can be read in the place of the damaged one, which is put aside.
pub(super) fn salvage(
    directory: &Directory,
    acknowledged: u64,
    memtable: u64,
) -> Result<Damage, StoreError> {
    let source = Source::open(directory, memtable)?;
    let tables = Tables::open(&directory.at("db.new"), memtable)?;
    let mut salvaged = Salvaged::new(&tables);
    salvaged.copy(&source, acknowledged)?;
    let mut damage = salvaged.damage;
    drop(source);
    tables.sync()?;
    drop(tables);
    let aside = directory.put_aside()?;
    directory.put_in_place()?;
    damage.details = format!("the damaged database is in {}", aside.display()).into();
    Ok(damage)
}

/// What is left of a store.
enum Source {
    Tables(Tables),
    /// The rows in the journals, by table. The storage engine cannot open the tables.
    Journals(Rows),
}

type Rows = [BTreeMap<Vec<u8>, Vec<u8>>; 5];

type Row<'r> = &'r mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>;

impl Source {
    fn open(directory: &Directory, memtable: u64) -> Result<Self, StoreError> {
        let db = directory.at("db");
        match Tables::open(&db, memtable) {
            Err(StoreError::Damaged(_)) => Ok(Self::Journals(replay(&db)?)),
            tables => tables.map(Self::Tables),
        }
    }

    fn store(&self) -> Result<StoreRow, StoreError> {
        let mut store = StoreRow::default();
        self.each(STORE, &mut |key, value| {
            store = decode_row(key, value).unwrap_or(store);
            Ok(())
        })?;
        Ok(store)
    }

    /// Visits the rows of a table; returns how many places could not be read.
    fn each(&self, table: usize, row: Row<'_>) -> Result<u64, StoreError> {
        match self {
            Self::Tables(tables) => {
                let mut gaps = Gaps {
                    table: tables.all()[table],
                    attempts: ATTEMPTS,
                    unreadable: 0,
                };
                gaps.visit(0, u128::MAX, row)?;
                Ok(gaps.unreadable)
            }
            Self::Journals(tables) => {
                let mut rows = tables[table].iter();
                rows.try_for_each(|(key, value)| row(key, value))?;
                Ok(0)
            }
        }
    }
}

fn replay(db: &Path) -> Result<Rows, StoreError> {
    let mut tables = Rows::default();
    journal::replay(db, |(table, key, value)| {
        let index = usize::try_from(table)
            .ok()
            .and_then(|table| table.checked_sub(1));
        if let Some(rows) = index.and_then(|index| tables.get_mut(index)) {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
    })?;
    Ok(tables)
}

/// Reads a table with rows that cannot be read.
struct Gaps<'t> {
    table: &'t Keyspace,
    attempts: u32,
    unreadable: u64,
}

impl Gaps<'_> {
    /// Reads the rows between two places from both ends, and where both fail, the halves between.
    fn visit(&mut self, from: u128, to: u128, row: Row<'_>) -> Result<(), StoreError> {
        let (mut first, mut last) = (from, to);
        if self.read(&mut first, to, false, row)? {
            return Ok(());
        }
        if self.read(&mut last, first, true, row)? {
            self.unreadable += 1;
            return Ok(());
        }
        let middle = first + (last.saturating_sub(first)) / 2;
        if first >= last || middle == first || self.attempts == 0 {
            self.unreadable += 1;
            return Ok(());
        }
        self.attempts -= 1;
        self.visit(first, middle, row)?;
        self.visit(middle, last, row)
    }

    /// Reads from one place towards another, which is not reached after an error. The place follows what was read.
    fn read(
        &self,
        at: &mut u128,
        end: u128,
        backwards: bool,
        row: Row<'_>,
    ) -> Result<bool, StoreError> {
        let (low, high) = if backwards { (end, *at) } else { (*at, end) };
        let range = bound(low)..bound(high);
        let Ok(mut rows) = guarded(|| Ok(self.table.range(range))) else {
            return Ok(false);
        };
        loop {
            let next = guarded(|| {
                let next = if backwards {
                    rows.next_back()
                } else {
                    rows.next()
                };
                Ok(next.map(fjall::Guard::into_inner).transpose()?)
            });
            let Ok(next) = next else {
                return Ok(false);
            };
            let Some((key, value)) = next else {
                return Ok(true);
            };
            *at = place(&key) + u128::from(!backwards);
            row(&key, &value)?;
        }
    }
}

/// The first key that is possible at a place: zeros at the end are those that [`place`] has added.
fn bound(place: u128) -> Vec<u8> {
    let mut bytes = place.to_be_bytes().to_vec();
    let zeros = place.trailing_zeros() / 8;
    bytes.truncate(bytes.len() - zeros as usize);
    bytes
}

/// The place of a key among those of 16 bytes.
fn place(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = key.len().min(16);
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
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

    fn copy(&mut self, source: &Source, acknowledged: u64) -> Result<(), StoreError> {
        let store = source.store()?;
        self.queue_rows(source)?;
        let expected = self.count();
        for row in self.queues.values_mut() {
            (row.items, row.letters, row.marks) = Default::default();
        }
        let buried = self.letters(source)?;
        let items = self.items(source, &buried)?;
        self.marks(source, &items)?;
        let there = self.count();
        self.damage.missing = expected.saturating_sub(there);
        self.damage.extra = there.saturating_sub(expected);
        self.damage.commits = acknowledged.saturating_sub(store.group);
        self.books(store, acknowledged)
    }

    /// How many items and letters there are.
    fn count(&self) -> u64 {
        let counts = |row: &QueueRow| row.items.count.wrapping_add(row.letters.count);
        self.queues.values().map(counts).sum()
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
            batch.insert(self.tables.all()[table], key, value);
        }
        Ok(batch.commit()?)
    }

    fn queue_rows(&mut self, source: &Source) -> Result<(), StoreError> {
        source.each(QUEUES, &mut |key, value| {
            let id = key.try_into().map(u32::from_be_bytes);
            if let (Ok(id), Ok(row)) = (id, decode_row(key, value)) {
                self.queues.insert(id, row);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The row of a queue, which is made up if it was lost.
    fn queue(&mut self, key: Key, order: OrderTag) -> &mut QueueRow {
        self.last_id = self.last_id.max(key.id);
        let id = key.queue;
        self.queues.entry(id).or_insert_with(|| QueueRow {
            name: format!("lost queue {id}"),
            order,
            closed: false,
            items: Digest::default(),
            letters: Digest::default(),
            marks: Digest::default(),
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
            self.queue(key, OrderTag::Fifo).marks.add(digest);
            self.put(MARKS, bytes, value)
        })?;
        Ok(())
    }

    /// Writes the counts of what was copied.
    fn books(&mut self, mut store: StoreRow, acknowledged: u64) -> Result<(), StoreError> {
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

fn order_of(has_schedule: bool) -> OrderTag {
    if has_schedule {
        OrderTag::ByPriority
    } else {
        OrderTag::Fifo
    }
}
