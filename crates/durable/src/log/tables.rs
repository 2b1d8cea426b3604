//! The storage engine, as the rest sees it: five tables, and panics that are errors.

mod gone;

use super::journal::{AROUND, HEADER};
use super::listed;
use super::memtables::BESIDE_ROW;
use crate::error::{is_damage, StoreError};
use crate::format::{ITEMS, MARKS};
use fjall::compaction::Leveled;
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy};
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, UserKey, UserValue,
};
use gone::Gone;
use lsm_tree::{AnyTree, Config, SequenceNumberCounter};
use std::fs;
use std::io;
use std::ops::{Deref, Index, RangeBounds, RangeInclusive};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long the journals that are not written to any more may be together before small tables are written for them: they are read
/// when a store is opened after a crash. The least that the storage engine allows.
const JOURNALS: u64 = 64 << 20;

/// How many new tables are merged at once. Each has new rows at one end of a queue and removed ones at the other, so a merge takes
/// all of the next level too. So that is small: as many tables of this size, which merges write.
const MERGED_AT: u8 = 8;
const TABLE: u64 = 8 << 20;
/// The size of the cache for blocks of tables, at least and at most: that of two memtables.
const CACHE: RangeInclusive<u64> = 1 << 20..=32 << 20;
/// How many threads write and merge tables. One of them only writes tables: while all others are busy it polls for what they are to merge,
/// with all of a core, and of fewer they often are.
const THREADS: usize = 4;

/// The table with the rows of unique keys, most of which are looked for in vain: filters say that they are not in a table, with a
/// probability of 99 %. Those of larger tables are read in parts, so that they need no memory.
const KEYED: &str = Tables::NAMES[MARKS];
const FILTER: FilterPolicyEntry =
    FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));

/// The tables of a store.
pub(crate) struct Tables {
    pub(crate) database: Guarded,
    /// By [name](Self::NAMES).
    all: Vec<Keyspace>,
    pub(super) gone: Arc<Gone>,
}

impl Index<usize> for Tables {
    type Output = Keyspace;

    fn index(&self, table: usize) -> &Keyspace {
        &self.all[table]
    }
}

/// Changes of rows that are written as one.
pub(super) struct RowBatch<'t> {
    tables: &'t Tables,
    batch: OwnedWriteBatch,
    length: usize,
}

impl<'t> RowBatch<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            batch: tables.database.batch(),
            length: AROUND,
        }
    }

    pub(super) fn insert<K, V>(&mut self, table: usize, key: K, value: V)
    where
        K: Into<UserKey>,
        V: Into<UserValue>,
    {
        let (key, value) = (key.into(), value.into());
        self.length += HEADER + key.len() + value.len();
        self.batch.insert(&self.tables[table], key, value);
    }

    pub(super) fn remove(&mut self, table: usize, key: impl Into<UserKey>) {
        let key = key.into();
        self.length += HEADER + key.len();
        self.batch.remove(&self.tables[table], key);
    }

    /// How long they are in the journal.
    pub(super) fn length(&self) -> u64 {
        self.length as u64
    }

    /// About how long they are in memory.
    pub(super) fn size(&self) -> u64 {
        (self.length + self.batch.len() * BESIDE_ROW) as u64
    }

    pub(super) fn commit(self, mode: PersistMode) -> Result<(), StoreError> {
        Ok(self.batch.durability(Some(mode)).commit()?)
    }
}

/// A database; when it is dropped it is closed, and a panic of that is ignored.
pub(crate) struct Guarded(Option<Database>);

impl Deref for Guarded {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = guarded(|| {
            drop(self.0.take());
            Ok(())
        });
    }
}

impl Tables {
    /// Their names, in the order in which the storage engine numbers them, from 1.
    pub(super) const NAMES: [&'static str; 5] = ["items", "marks", "letters", "queues", "store"];

    /// Opens the tables in a directory, or creates them.
    pub(super) fn open(path: &Path, memtable: u64) -> Result<Self, StoreError> {
        let gone = Arc::<Gone>::default();
        let filter = gone.filter();
        guarded(|| {
            let database = Database::builder(path)
                .with_compaction_filter_factories(Arc::new(move |name| {
                    (name == Self::NAMES[ITEMS]).then(|| Arc::clone(&filter))
                }))
                .manual_journal_persist(true)
                .max_journaling_size(JOURNALS)
                .worker_threads(THREADS)
                .cache_size(
                    memtable
                        .saturating_mul(2)
                        .clamp(*CACHE.start(), *CACHE.end()),
                )
                .open()
                .map_err(unreadable)?;
            let table = |name| {
                let keyspace = database.keyspace(name, || options(name, memtable));
                keyspace.map_err(unreadable)
            };
            let all = Self::NAMES
                .into_iter()
                .map(table)
                .collect::<Result<_, _>>()?;
            let database = Guarded(Some(database));
            Ok(Self {
                database,
                all,
                gone,
            })
        })
    }

    /// Checks the lists of tables, and the tables in them: the storage engine trusts them.
    pub(super) fn check_lists(path: &Path) -> Result<(), StoreError> {
        if listed::read(&path.join(VERSION))? != VERSION_3 {
            let details = "the file of the storage engine's version is damaged";
            return Err(StoreError::damaged(details));
        }
        if let [stray, ..] = &*listed::strays(&path.join(KEYSPACES), COUNT)? {
            let details = format!("{} is of another program", stray.display());
            return Err(StoreError::damaged(details));
        }
        (0..COUNT).try_for_each(|number| listed::check(&keyspace(path, number)))
    }

    /// Opens the tables in a directory whose lists may be wrong; with whether each of them is there. Otherwise it is empty.
    pub(super) fn open_listed(path: &Path, memtable: u64) -> Result<(Self, [bool; 5]), StoreError> {
        // A link, which must not be written through.
        remove(&path.join(VERSION))?;
        fs::write(path.join(VERSION), VERSION_3)?;
        for stray in listed::strays(&path.join(KEYSPACES), COUNT)? {
            remove(&stray)?;
        }
        listed::check(&keyspace(path, 0))?;
        let mut are_there = [true; 5];
        for (index, is_there) in are_there.iter_mut().enumerate() {
            let keyspace = keyspace(path, index + 1);
            for stray in listed::stray_tables(&keyspace) {
                remove(&stray)?;
            }
            match try_list(&keyspace) {
                // One that could not be read because of the system is not lost.
                Err(error @ StoreError::Io(_)) => return Err(error.at(&keyspace)),
                tried => *is_there = tried.is_ok(),
            }
            if !*is_there {
                remove(&keyspace)?;
            }
        }
        Ok((Self::open(path, memtable)?, are_there))
    }

    /// Opens the tables in a directory without its journals, in their order.
    pub(super) fn open_alone(path: &Path) -> Result<Vec<AnyTree>, StoreError> {
        (1..COUNT)
            .map(|number| open_keyspace(&keyspace(path, number)).map_err(unreadable))
            .collect()
    }

    /// The same tables, for another thread.
    pub(super) fn share(&self) -> Self {
        Self {
            database: Guarded(Some(self.database.clone())),
            all: self.all.clone(),
            gone: Arc::clone(&self.gone),
        }
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        guarded(|| Ok(self.database.persist(PersistMode::SyncAll)?))
    }

    pub(super) fn all(&self) -> &[Keyspace] {
        &self.all
    }
}

fn options(name: &str, memtable: u64) -> KeyspaceCreateOptions {
    let compaction = Leveled::default().with_l0_threshold(MERGED_AT);
    let compaction = compaction.with_table_target_size(TABLE);
    let options = KeyspaceCreateOptions::default().max_memtable_size(memtable);
    let options = options.compaction_strategy(Arc::new(compaction));
    match name {
        KEYED => options
            .filter_policy(FilterPolicy::all(FILTER))
            .filter_block_partitioning_policy(PartitioningPolicy::new([false, true])),
        // Rows are read in order, or are known to be there.
        _ => options.filter_policy(FilterPolicy::disabled()),
    }
}

/// The keyspaces: those of the store, after one of the storage engine.
const COUNT: usize = 1 + Tables::NAMES.len();
const KEYSPACES: &str = "keyspaces";
/// The file with the version of the storage engine's format, and what is in it.
const VERSION: &str = "version";
const VERSION_3: &[u8] = b"FJL\x03";

/// Opens a keyspace by its list, and closes it. A panic is an error: a database that panics while it is opened ends the process.
fn try_list(keyspace: &Path) -> Result<(), StoreError> {
    listed::check_without_checksum(keyspace)?;
    guarded(|| {
        open_keyspace(keyspace)?;
        Ok(())
    })
}

fn open_keyspace(keyspace: &Path) -> fjall::Result<AnyTree> {
    let numbers = SequenceNumberCounter::default;
    let config = Config::new(keyspace, numbers(), numbers());
    Ok(config.filter_policy(FilterPolicy::disabled()).open()?)
}

fn keyspace(database: &Path, number: usize) -> PathBuf {
    database.join(KEYSPACES).join(number.to_string())
}

/// Removes a file, or a directory with all that is in it, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// What went wrong when files were opened.
pub(super) fn unreadable(error: fjall::Error) -> StoreError {
    match error {
        fjall::Error::Io(error) if is_damage(&error) => {
            StoreError::damaged(format!("a file of the storage engine: {error}"))
        }
        error => error.into(),
    }
}

/// Calls the storage engine, which panics on some damage.
pub(crate) fn guarded<R>(call: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
        let why = why.unwrap_or("for an unknown reason");
        Err(StoreError::damaged(format!(
            "the storage engine panicked: {why}"
        )))
    })
}

/// The rows of a range of a table.
pub(crate) struct Visit(fjall::Iter);

impl From<fjall::Iter> for Visit {
    fn from(rows: fjall::Iter) -> Self {
        Self(rows)
    }
}

impl Visit {
    fn read(
        &mut self,
        next: impl FnOnce(&mut fjall::Iter) -> Option<fjall::Guard>,
    ) -> Option<Result<(UserKey, UserValue), StoreError>> {
        match guarded(|| Ok(next(&mut self.0).map(fjall::Guard::into_inner))) {
            Ok(next) => next.map(|row| row.map_err(unreadable)),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Iterator for Visit {
    type Item = Result<(UserKey, UserValue), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read(Iterator::next)
    }
}

impl DoubleEndedIterator for Visit {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.read(DoubleEndedIterator::next_back)
    }
}

/// The rows of a range, as they are now, in the order of their keys.
pub(crate) fn rows<K: AsRef<[u8]>>(
    table: &Keyspace,
    range: impl RangeBounds<K>,
) -> Result<Visit, StoreError> {
    guarded(|| Ok(Visit(table.range(range))))
}

/// Visits the rows of a range, in the order of their keys.
pub(crate) fn visit<K: AsRef<[u8]>>(
    table: &Keyspace,
    range: impl RangeBounds<K>,
    mut row: impl FnMut(UserKey, UserValue) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for next in rows(table, range)? {
        let (key, value) = next?;
        row(key, value)?;
    }
    Ok(())
}
