//! Room ahead in the journal that is being written, so that a sync writes what was appended and nothing else.
//!
//! A sync also writes metadata of the file system if what was appended has no blocks yet, or makes the file longer; that takes
//! half as long again. The storage engine creates a journal with the length that it will have, but without blocks, and makes one
//! that it finds longer with each append.
//!
//! So zeros are written to a new journal, ahead of what the storage engine writes. Readers take them for the end, as they do
//! those of a journal without blocks. Nothing can be ahead in a journal that was found, since the storage engine appends to the
//! end of the file: after some synced groups it is [replaced](Ahead::renew) by a new one.

mod journals;

use super::journal::{self, ZEROS};
use super::tables::{RowBatch, Tables};
use crate::error::StoreError;
use crate::format::{STORE, STORE_ROW};
use fjall::PersistMode;
use journals::Journals;
use rustix::fs::{openat, statat, AtFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How many zeros are written at once. Each call writes a page: the kernel would cache more as one piece, and write all of it
/// again when a part of it changes.
const AHEAD: u64 = 1 << 20;
/// The length of the groups that have zeros ahead of their ends. Larger ones gain little.
const MOST: u64 = AHEAD / 4;

/// How many groups are synced in a journal that was found.
const FOUND: u32 = 64;
/// The storage engine begins a new journal if the one that it has is as long as that when it writes a memtable.
const FULL: u64 = 64_000_001;
/// Polls, and the pause between two, until it has done so.
const POLLS: u32 = 2_000;
const POLL: Duration = Duration::from_millis(1);

/// The journal that is being written.
pub(super) struct Ahead {
    directory: File,
    number: u64,
    /// `None`: nothing can be written ahead.
    file: Option<File>,
    /// What the storage engine has written ends here, or before.
    written: u64,
    /// The zeros end here.
    end: u64,
    /// The length of the last group.
    last: u64,
    /// If the storage engine has found the journal: how many groups were synced since.
    found: Option<u32>,
    pub(super) journals: Journals,
}

impl Ahead {
    /// The newest journal in a directory, which the storage engine has `found`, or created.
    pub(super) fn of(directory: &Path, found: bool) -> io::Result<Self> {
        let mut newest = Self {
            directory: File::open(directory)?,
            number: journal::newest(directory)?.unwrap_or(0),
            file: None,
            written: 0,
            end: 0,
            last: 0,
            found: None,
            journals: Journals::default(),
        };
        let journal = newest.open()?;
        if found {
            newest.written = journal.metadata()?.len();
            newest.found = Some(0);
        } else {
            newest.file = Some(journal);
        }
        Ok(newest)
    }

    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let journal = openat(&self.directory, name(self.number), flags, Mode::empty())?;
        Ok(journal.into())
    }

    /// Before a group of this length is written. With `zeros`, which is synced, zeros are written ahead of its end.
    pub(super) fn reserve(&mut self, length: u64, zeros: bool) {
        self.follow();
        self.last = length;
        let start = self.written.max(self.end);
        self.written += length;
        self.journals.add(length);
        if let (Some(synced), true) = (&mut self.found, zeros) {
            *synced += 1;
        }
        if !zeros || length > MOST || self.written <= self.end {
            return;
        }
        // The storage engine will see what is wrong with the disk.
        self.file.take_if(|file| write_zeros(file, start).is_err());
        self.end = start + AHEAD;
    }

    /// Goes on with a newer journal, if there is one. It has the last group at most, since one was looked for before that.
    fn follow(&mut self) {
        // The storage engine begins none before that.
        if self.written < FULL {
            return;
        }
        // One that had only the last group may have been removed since, if that was long.
        let steps = if self.last < FULL { 1 } else { 2 };
        while let Some(number) = self.newer(steps) {
            self.number = number;
            self.file = self.open().ok();
            (self.written, self.end, self.found) = (self.last, 0, None);
        }
    }

    /// The number of a newer journal that has its length, if one of the next `steps` numbers has.
    fn newer(&self, steps: u64) -> Option<u64> {
        let is_there = |number: &u64| {
            let file = statat(&self.directory, name(*number), AtFlags::empty());
            file.is_ok_and(|file| file.st_size > 0)
        };
        (self.number + 1..=self.number + steps).find(is_there)
    }

    /// Whether the journal is to be replaced by a new one.
    pub(super) fn is_due(&self) -> bool {
        self.found.is_some_and(|synced| synced >= FOUND)
    }

    /// Lets the storage engine write its tables and begin a new journal, while no group is written. It does so only if the
    /// journal is long; so this one is long for a moment, with a row behind the gap that is the same as before.
    ///
    /// An error: there may be a gap in front of what is appended from now on.
    #[cold]
    pub(super) fn renew(&mut self, tables: &Tables, row: &[u8]) -> Result<(), StoreError> {
        let Ok(journal) = self.open() else {
            return Ok(());
        };
        self.found = None;
        let end = journal.metadata()?.len();
        self.written = end.max(FULL);
        journal.set_len(self.written)?;
        let begun = self.begin(tables, row);
        // Before the next group: what is behind a gap is lost in a crash.
        journal.set_len(end)?;
        journal.sync_all()?;
        begun
    }

    fn begin(&self, tables: &Tables, row: &[u8]) -> Result<(), StoreError> {
        let mut rows = RowBatch::new(tables);
        rows.insert(STORE, STORE_ROW, row);
        rows.commit(PersistMode::Buffer)?;
        for table in tables.all() {
            table.rotate_memtable()?;
        }
        let mut polls = 0..POLLS;
        while self.newer(1).is_none() && polls.next().is_some() {
            thread::sleep(POLL);
        }
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("{number}.jnl")
}

/// Writes zeros over zeros from there on, so nothing that is there changes. They do not make the file longer: to a longer one the
/// storage engine might append.
fn write_zeros(file: &File, start: u64) -> io::Result<()> {
    let (mut there, end) = (ZEROS, start + AHEAD);
    if end > file.metadata()?.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    for at in (start..end).step_by(ZEROS.len()) {
        file.read_exact_at(&mut there, at)?;
        if there != ZEROS {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        file.write_all_at(&ZEROS, at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
