//! What is left of a damaged store: the rows of its tables, and the changes in its journals.

use super::catalog::Catalog;
use super::directory::Directory;
use super::gaps::Readable;
use super::tables::{guarded, Tables};
use crate::error::StoreError;
use crate::format::{decode_row, StoreRow, STORE, STORE_ROW};
use fjall::Keyspace;
use std::collections::BTreeMap;

/// How often a table is read from another place after an error.
const ATTEMPTS: u32 = 10_000;

/// What the tables have without the journals.
#[derive(Default)]
pub(crate) struct Alone {
    /// The last group, if that can be read.
    pub(crate) group: Option<u64>,
    /// Whether they have all rows of that group, and no others.
    pub(crate) are_whole: bool,
}

impl Alone {
    /// Reads them in a copy, since the storage engine changes what it opens.
    #[cold]
    pub(super) fn read(directory: &Directory, memtable: u64) -> Result<Self, StoreError> {
        let alone = Tables::open_listed(&directory.copy_tables()?, memtable).and_then(
            |(tables, [.., is_there])| {
                let row = guarded(|| Ok(tables[STORE].get(STORE_ROW)?))?;
                let row = row.map_or(Ok(StoreRow::default()), |row| decode_row(STORE_ROW, &row));
                let group = row.ok().map(|row| row.group).filter(|_| is_there);
                let whole =
                    Catalog::read(&tables, 0).and_then(|catalog| catalog.check_all(&tables));
                let are_whole = match whole {
                    Err(StoreError::Damaged(_)) => false,
                    whole => whole.map(|()| true)?,
                };
                Ok(Self { group, are_whole })
            },
        );
        directory.remove_copies()?;
        match alone {
            Err(StoreError::Damaged(_)) => Ok(Self::default()),
            alone => alone,
        }
    }
}

/// The rows that are left. Those in the tables are read from a copy, since the storage engine deletes what it does not know.
pub(super) struct Source {
    /// `None`: the storage engine cannot open them.
    tables: Option<Tables>,
    /// Which tables were not lost.
    are_there: [bool; 5],
    changes: Changes,
    journals: Readable,
    /// The last group that the tables have without the journals, if that can be read.
    group: Option<u64>,
}

/// The last change of each row, by table; `None` is a removal.
type Changes = [BTreeMap<Vec<u8>, Option<Vec<u8>>>; 5];

pub(super) type Row<'r> = &'r mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>;

impl Source {
    /// Reads the journals, and opens the tables.
    pub(super) fn open(directory: &Directory, memtable: u64) -> Result<Self, StoreError> {
        let journals = Readable::find(&directory.at("db"))?;
        let changes = replay(&journals)?;
        let Alone { group, .. } = Alone::read(directory, memtable)?;
        let copy = directory.copy_tables()?;
        journals.copy(&copy)?;
        let (tables, are_there) = match Tables::open_listed(&copy, memtable) {
            Err(StoreError::Damaged(_)) => (None, [false; 5]),
            opened => opened.map(|(tables, are_there)| (Some(tables), are_there))?,
        };
        Ok(Self {
            tables,
            are_there,
            changes,
            journals,
            group,
        })
    }

    /// How many of the acknowledged groups are neither in the tables nor in the journals.
    pub(super) fn missing(&self, acknowledged: u64) -> u64 {
        self.journals.missing(self.group, acknowledged)
    }

    /// Leaves it to the storage engine which changes in the journals are newer than the tables, as far as they are there.
    pub(super) fn forget_changes(&mut self) {
        for (changes, is_there) in self.changes.iter_mut().zip(self.are_there) {
            if is_there {
                changes.clear();
            }
        }
    }

    /// Visits the rows of a table; returns how many places could not be read.
    pub(super) fn each(&self, table: usize, row: Row<'_>) -> Result<u64, StoreError> {
        let changes = &self.changes[table];
        let mut unreadable = 0;
        if let Some(tables) = &self.tables {
            let mut gaps = Gaps {
                table: &tables[table],
                attempts: ATTEMPTS,
                unreadable: 0,
            };
            gaps.visit(0, u128::MAX, &mut |key, value| {
                if changes.contains_key(key) {
                    return Ok(());
                }
                row(key, value)
            })?;
            unreadable = gaps.unreadable;
        }
        for (key, value) in changes {
            if let Some(value) = value {
                row(key, value)?;
            }
        }
        Ok(unreadable)
    }
}

fn replay(journals: &Readable) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    journals.replay(|(table, key, value)| {
        let index = usize::try_from(table)
            .ok()
            .and_then(|table| table.checked_sub(1));
        if let Some(rows) = index.and_then(|index| changes.get_mut(index)) {
            rows.insert(key, value);
        }
    })?;
    Ok(changes)
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
