//! Brings what the journals have into the tables, before the storage engine opens these.
//!
//! By itself the storage engine takes some microseconds for each row of a journal, whether the tables have it already or not, and
//! keeps all the others in memory. So they are written to tables here, by parts. Of the journals only the last group stays, in the
//! newest: its number says that none is missing.
//!
//! A crash meanwhile leaves journals with rows that the tables have. These rows are known by the numbers of their batches, here and
//! by the storage engine.

use super::directory;
use super::journal::{self, Reader};
use super::tables::{guarded, unreadable, Tables};
use crate::error::StoreError;
use lsm_tree::{AbstractTree, AnyTree};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Shorter journals are left to the storage engine, in bytes: it takes less time for them than to open the tables twice.
pub(super) const LEAST: u64 = 256 << 10;
/// The size of the rows that are in memory at once, as the storage engine counts it.
const PART: u64 = 8 << 20;

/// The journals as they were, until what has taken their place is opened.
pub(super) struct Replayed {
    db: PathBuf,
    /// Links to them.
    aside: PathBuf,
}

impl Replayed {
    /// Brings the rows of the journals of `db` into its tables. The journals have been [mended](journal::mend). Links to them are in
    /// the directory `aside` then. `None`: there is a table that is not known, or nothing to read.
    ///
    /// An error: the journals are as before.
    pub(super) fn new(db: &Path, aside: PathBuf) -> Result<Option<Self>, StoreError> {
        let replayed = Self {
            db: db.to_owned(),
            aside,
        };
        let Some(group) = guarded(|| bring(db))? else {
            return Ok(None);
        };
        replayed.shorten(&group)?;
        Ok(Some(replayed))
    }

    /// Puts a group in place of all that is in the journals.
    fn shorten(&self, group: &[u8]) -> io::Result<()> {
        let journals = journal::paths(&self.db)?;
        let Some((newest, older)) = journals.split_last() else {
            return Ok(());
        };
        fs::create_dir(&self.aside)?;
        for journal in &journals {
            directory::link(journal, &self.aside.join(name(journal)))?;
        }
        let new = self.db.join("journal.new");
        let mut file = File::create(&new)?;
        file.write_all(group)?;
        file.sync_all()?;
        fs::rename(&new, newest)?;
        // Before the others are removed: one of them may have been the only one with the group.
        File::open(&self.db)?.sync_all()?;
        older.iter().try_for_each(fs::remove_file)
    }

    /// The store is open. After a crash before that, the journals with the last group only are right as well.
    pub(super) fn keep(self) -> io::Result<()> {
        fs::remove_dir_all(&self.aside)
    }

    /// Puts the journals back: the store could not be opened, and nothing shall have changed.
    pub(super) fn undo(self) -> io::Result<()> {
        for journal in journal::paths(&self.aside)? {
            fs::rename(&journal, self.db.join(name(&journal)))?;
        }
        self.keep()
    }
}

fn name(journal: &Path) -> &OsStr {
    journal.file_name().unwrap_or_default()
}

/// Brings the rows of the journals in a directory into its tables. Returns the batch that is the last group.
fn bring(db: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let (mut trees, mut last) = (Trees::open(db)?, None);
    for path in journal::paths(db)? {
        let mut reader = Reader::open(&path)?;
        loop {
            let start = reader.at();
            let Some(number) = reader.batch()? else {
                break;
            };
            if !trees.apply(&reader, number)? {
                return Ok(None);
            }
            if reader.group().is_some() {
                last = Some((path.clone(), start, reader.at()));
            }
        }
    }
    trees.flush()?;
    let Some((path, start, end)) = last else {
        return Ok(None);
    };
    let mut group = vec![0; usize::try_from(end - start).unwrap_or(0)];
    File::open(path)?.read_exact_at(&mut group, start)?;
    Ok(Some(group))
}

/// The tables of a directory, and rows that are not in them yet.
struct Trees {
    /// With the number of the last batch that each of them has.
    all: Vec<(AnyTree, Option<u64>)>,
    size: u64,
    /// The number of the last batch.
    last: u64,
}

impl Trees {
    fn open(directory: &Path) -> Result<Self, StoreError> {
        let with_last = |tree: AnyTree| {
            let last = tree.get_highest_persisted_seqno();
            (tree, last)
        };
        let all = Tables::open_alone(directory)?;
        Ok(Self {
            all: all.into_iter().map(with_last).collect(),
            size: 0,
            last: 0,
        })
    }

    /// Adds the rows of a batch that the tables do not have. Returns `false` if a table is not known.
    fn apply(&mut self, batch: &Reader, number: u64) -> Result<bool, StoreError> {
        self.last = self.last.max(number);
        for (table, key, value) in batch.changes() {
            let index = usize::try_from(table).ok().and_then(|it| it.checked_sub(1));
            let Some((tree, has)) = index.and_then(|index| self.all.get(index)) else {
                return Ok(false);
            };
            if has.is_some_and(|has| number <= has) {
                continue;
            }
            let (size, _) = match value {
                Some(value) => tree.insert(key, value, number),
                None => tree.remove(key, number),
            };
            self.size += size;
        }
        // Not within a batch: its number says that a table has all of its rows.
        if self.size >= PART {
            self.flush()?;
        }
        Ok(true)
    }

    /// Writes the rows to tables. Nobody reads earlier rows of the same keys.
    fn flush(&mut self) -> Result<(), StoreError> {
        for (tree, _) in &self.all {
            let lock = tree.get_flush_lock();
            tree.rotate_memtable();
            let flushed = tree.flush(&lock, self.last + 1);
            flushed.map_err(|error| unreadable(error.into()))?;
        }
        self.size = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
