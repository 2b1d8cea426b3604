//! The storage engine, as the rest sees it: five tables, and panics that are errors.

use crate::error::StoreError;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, UserKey, UserValue};
use lsm_tree::{Config, SequenceNumberCounter};
use std::fs;
use std::io;
use std::ops::{Deref, RangeBounds};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The tables of a store.
pub(crate) struct Tables {
    pub(crate) database: Guarded,
    pub(crate) items: Keyspace,
    pub(crate) marks: Keyspace,
    pub(crate) letters: Keyspace,
    pub(crate) queues: Keyspace,
    pub(crate) store: Keyspace,
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
        guarded(|| {
            let database = Database::builder(path)
                .manual_journal_persist(true)
                .open()
                .map_err(unreadable)?;
            let options = || KeyspaceCreateOptions::default().max_memtable_size(memtable);
            let table = |name| database.keyspace(name, options).map_err(unreadable);
            let [items, marks, letters, queues, store] = Self::NAMES.map(table);
            Ok(Self {
                items: items?,
                marks: marks?,
                letters: letters?,
                queues: queues?,
                store: store?,
                database: Guarded(Some(database)),
            })
        })
    }

    /// Checks the lists of tables. The storage engine does not, and deletes the tables that are not listed.
    pub(super) fn check_lists(path: &Path) -> Result<(), StoreError> {
        // It has a keyspace of its own.
        (0..=Self::NAMES.len()).try_for_each(|number| check_list(&keyspace(path, number)))
    }

    /// Opens the tables in a directory whose lists may be wrong; with whether each of them is there. Otherwise it is empty.
    pub(super) fn open_listed(path: &Path, memtable: u64) -> Result<(Self, [bool; 5]), StoreError> {
        check_list(&keyspace(path, 0))?;
        let mut are_there = [true; 5];
        for (index, is_there) in are_there.iter_mut().enumerate() {
            let keyspace = keyspace(path, index + 1);
            *is_there = check_list(&keyspace)
                .or_else(|_| try_list(&keyspace))
                .is_ok();
            if !*is_there {
                fs::remove_dir_all(keyspace).or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })?;
            }
        }
        Ok((Self::open(path, memtable)?, are_there))
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        guarded(|| Ok(self.database.persist(PersistMode::SyncAll)?))
    }

    /// The tables by [name](Self::NAMES).
    pub(super) fn all(&self) -> [&Keyspace; 5] {
        [
            &self.items,
            &self.marks,
            &self.letters,
            &self.queues,
            &self.store,
        ]
    }
}

/// Compares the list of the tables of a keyspace with its checksum, which is in a file of its own.
fn check_list(keyspace: &Path) -> Result<(), StoreError> {
    let read = |name: &str| {
        let bytes = fs::read(keyspace.join(name));
        bytes.map_err(|error| unreadable(error.into()))
    };
    let current = read("current")?;
    let parts = current.split_first_chunk::<8>();
    let parts = parts.and_then(|(number, rest)| Some((number, rest.split_first_chunk::<16>()?)));
    if let Some((number, (checksum, [0]))) = parts {
        let list = read(&format!("v{}", u64::from_le_bytes(*number)))?;
        if xxh3_128(&list) == u128::from_le_bytes(*checksum) {
            return Ok(());
        }
    }
    let keyspace = keyspace.display();
    let details = format!("the list of tables in {keyspace} has a wrong checksum");
    Err(StoreError::damaged(details))
}

/// Opens a keyspace by its list, and closes it. A panic is an error: a database that panics while it is opened ends the process.
fn try_list(keyspace: &Path) -> Result<(), StoreError> {
    // Otherwise it would be created.
    fs::metadata(keyspace.join("current"))?;
    guarded(|| {
        let numbers = SequenceNumberCounter::default;
        let config = Config::new(keyspace, numbers(), numbers());
        config.open().map(drop).map_err(fjall::Error::from)?;
        Ok(())
    })
}

fn keyspace(database: &Path, number: usize) -> PathBuf {
    database.join("keyspaces").join(number.to_string())
}

/// What went wrong when files were opened. Files that are too short or not there are damage.
fn unreadable(error: fjall::Error) -> StoreError {
    use std::io::ErrorKind::{AlreadyExists, InvalidData, InvalidInput, NotFound, UnexpectedEof};
    match error {
        fjall::Error::Io(error)
            if matches!(
                error.kind(),
                AlreadyExists | InvalidData | InvalidInput | NotFound | UnexpectedEof
            ) =>
        {
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

/// Visits the rows of a range, in the order of their keys.
pub(crate) fn visit<K: AsRef<[u8]>>(
    table: &Keyspace,
    range: impl RangeBounds<K>,
    mut row: impl FnMut(UserKey, UserValue) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut rows = guarded(|| Ok(table.range(range)))?;
    while let Some(next) = guarded(|| Ok(rows.next().map(fjall::Guard::into_inner)))? {
        let (key, value) = next.map_err(unreadable)?;
        row(key, value)?;
    }
    Ok(())
}
