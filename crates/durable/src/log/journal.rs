//! Reads the journals of the storage engine before it opens them.
//!
//! The storage engine drops everything after the first batch that it cannot read, or refuses to open the journal. This module
//! decides what that batch is: a write that a crash interrupted, which was never acknowledged and is cut off; or damage, which
//! is an error, and nothing is changed.

use super::directory::is_journal;
use super::gaps::Readable;
use super::source::Alone;
use crate::error::{Damage, StoreError};
use crate::format::{decode_row, StoreRow, STORE_ROW};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::mem;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

pub(super) const START: u8 = 1;
pub(super) const ITEM: u8 = 2;
const END: u8 = 3;
const TRAILER: &[u8; 4] = b"FJL\x03";

/// What a batch has besides its changes, and a change besides its key and its value, in bytes.
pub(super) const AROUND: usize = 2 * (1 + 8 + 4);
pub(super) const HEADER: usize = 21;

/// More than a store can write. The storage engine panics when it runs out of numbers, at twice as many.
pub(super) const MOST_BATCHES: u64 = 1 << 62;

pub(super) static ZEROS: [u8; 4096] = [0; 4096];

/// A change of a row: the number of its table, its key, and its value unless it is removed.
pub(crate) type RowChange = (u64, Vec<u8>, Option<Vec<u8>>);

/// A journal, up to the first batch that cannot be read.
struct Journal {
    path: PathBuf,
    /// Where its last readable batch ends.
    end: u64,
    /// Whether something follows that.
    is_broken: bool,
    /// The group of its last readable batch.
    group: Option<u64>,
}

/// Prepares the journals in a directory for the storage engine: cuts off a torn end. Returns how long they are then together.
///
/// An error: they lack acknowledged commits, and nothing was changed. `tables` says what the tables have without the journals; it
/// is called if these do not reach the last acknowledged group.
pub(crate) fn mend(
    directory: &Path,
    acknowledged: u64,
    tables: impl FnOnce() -> Result<Alone, StoreError>,
) -> Result<u64, StoreError> {
    let journals = read(directory)?;
    let group = journals.iter().rev().find_map(|journal| journal.group);
    if group.unwrap_or(0) < acknowledged {
        let tables = tables()?;
        let group = group.max(tables.group);
        if group.unwrap_or(0) < acknowledged || !tables.are_whole {
            let commits = Readable::find(directory)?.missing(tables.group, acknowledged);
            return Err(damage(&journals, commits));
        }
    } else if journals
        .iter()
        .rev()
        .skip_while(|newest| newest.is_empty())
        .skip(1)
        .any(|older| older.is_broken)
    {
        // All but the last that has something were synced as a whole.
        let commits = Readable::find(directory)?.missing(tables()?.group, acknowledged);
        return Err(damage(&journals, commits));
    }
    let mut broken = journals.iter().filter(|journal| journal.is_broken);
    broken.try_for_each(Journal::cut)?;
    Ok(journals.iter().map(|journal| journal.end).sum())
}

fn damage(journals: &[Journal], commits: u64) -> StoreError {
    let broken = journals.iter().find(|journal| journal.is_broken);
    let details = broken.map_or_else(
        || "the last commits are missing".to_owned(),
        |journal| format!("{} is damaged at byte {}", journal.name(), journal.end),
    );
    StoreError::Damaged(Damage {
        commits,
        details: details.into(),
        ..Damage::default()
    })
}

fn read(directory: &Path) -> io::Result<Vec<Journal>> {
    paths(directory)?.into_iter().map(Journal::read).collect()
}

/// Removes the journals of new tables, which are empty. The storage engine creates a journal with the length that it will
/// have, but appends to one that it finds; then each sync writes the length of the file too, which takes half as long again.
pub(super) fn remove_all(directory: &Path) -> io::Result<()> {
    paths(directory)?.into_iter().try_for_each(fs::remove_file)
}

/// Empties the journals of tables that have all that is in them. They stay: without a journal the storage engine would number its
/// batches from the start, and take what it writes for older than the tables.
pub(super) fn empty_all(directory: &Path) -> io::Result<()> {
    let open = |path| OpenOptions::new().write(true).open(path);
    let mut journals = paths(directory)?.into_iter();
    journals.try_for_each(|path| open(path)?.set_len(0))
}

/// The journals in a directory, oldest first.
pub(super) fn paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(numbered(directory)?
        .into_iter()
        .map(|(_, path)| path)
        .collect())
}

/// The number of the newest journal in a directory, if there is one.
pub(super) fn newest(directory: &Path) -> io::Result<Option<u64>> {
    Ok(numbered(directory)?.last().map(|(number, _)| *number))
}

fn numbered(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        if let (true, Some(number)) = (is_journal(&path), number) {
            journals.push((number, path));
        }
    }
    journals.sort_by_key(|(number, _): &(u64, PathBuf)| *number);
    Ok(journals)
}

impl Journal {
    fn read(path: PathBuf) -> io::Result<Self> {
        let mut reader = Reader::open(&path)?;
        let mut journal = Self {
            path,
            end: 0,
            is_broken: false,
            group: None,
        };
        let mut last = None;
        while let Some(number) = reader.batch()? {
            if last.is_some_and(|last| number <= last) || number > MOST_BATCHES {
                // The number has no checksum: a damaged one would put the batch at another place, or be the last one.
                break;
            }
            last = Some(number);
            journal.end = reader.at();
            journal.group = reader.group().or(journal.group);
        }
        journal.is_broken = reader.has_more(&journal)?;
        Ok(journal)
    }

    fn is_empty(&self) -> bool {
        self.end == 0 && !self.is_broken
    }

    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("the journal {}", name.to_string_lossy())
    }

    fn cut(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_len(self.end)?;
        file.sync_all()
    }
}

/// Where a change is: the number of its table, and the ends of its header, its key and its value.
struct Place {
    table: u64,
    is_removal: bool,
    ends: [usize; 3],
}

/// Reads the batches of a journal.
pub(super) struct Reader {
    file: BufReader<File>,
    len: u64,
    /// How many bytes were not read.
    left: u64,
    /// How many bytes were read.
    #[cfg(test)]
    pub(super) read: u64,
    /// The changes of the batch that was read, as they are in the file.
    batch: Vec<u8>,
    /// Where they are in it.
    places: Vec<Place>,
    /// Where it ends, if it has an end and a wrong checksum.
    pub(super) wrong_end: Option<u64>,
}

impl Reader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self {
            file: BufReader::with_capacity(1 << 20, file),
            len,
            left: len,
            #[cfg(test)]
            read: 0,
            batch: Vec::new(),
            places: Vec::new(),
            wrong_end: None,
        })
    }

    pub(super) fn file(&self) -> &File {
        self.file.get_ref()
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Where the next batch is read.
    pub(super) fn at(&self) -> u64 {
        self.len - self.left
    }

    pub(super) fn seek(&mut self, at: u64) -> io::Result<()> {
        self.left = self.len.saturating_sub(at);
        self.file.seek(SeekFrom::Start(at)).map(drop)
    }

    /// Reads a batch, and returns its number; `None` if there is none that can be read.
    pub(super) fn batch(&mut self) -> io::Result<Option<u64>> {
        self.batch.clear();
        self.places.clear();
        self.wrong_end = None;
        match self.whole_batch() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            result => result,
        }
    }

    fn whole_batch(&mut self) -> io::Result<Option<u64>> {
        let [START] = self.array()? else {
            return Ok(None);
        };
        let count = u32::from_le_bytes(self.array()?);
        let number = u64::from_le_bytes(self.array()?);
        for _ in 0..count {
            if !self.item()? {
                return Ok(None);
            }
        }
        let [END] = self.array()? else {
            return Ok(None);
        };
        let is_right = u64::from_le_bytes(self.array()?) == xxh3_64(&self.batch);
        let is_whole = self.array()? == *TRAILER;
        self.wrong_end = (is_whole && !is_right).then(|| self.at());
        Ok((is_right && is_whole).then_some(number))
    }

    fn item(&mut self) -> io::Result<bool> {
        let header: [u8; HEADER] = self.array()?;
        let [ITEM, kind @ 0..=2, ..] = header else {
            return Ok(false);
        };
        let (_, lengths) = header.split_at(3);
        let table = number(&lengths[..8]);
        let (key, value) = (number(&lengths[8..10]), number(&lengths[14..]));
        self.batch.extend_from_slice(&header);
        let ends = [self.batch.len(), self.bytes(key)?, self.bytes(value)?];
        self.places.push(Place {
            table,
            is_removal: kind != 0,
            ends,
        });
        Ok(true)
    }

    /// The changes of the batch that was read: the numbers of their tables, their keys, and their values unless they are removals.
    pub(super) fn changes(&self) -> impl DoubleEndedIterator<Item = (u64, &[u8], Option<&[u8]>)> {
        self.places.iter().map(|place| {
            let [header, key, value] = place.ends;
            let value = &self.batch[key..value];
            let value = (!place.is_removal).then_some(value);
            (place.table, &self.batch[header..key], value)
        })
    }

    /// The number of the group that the batch is.
    pub(super) fn group(&self) -> Option<u64> {
        let (_, _, row) = self.changes().rev().find(|(_, key, _)| *key == STORE_ROW)?;
        let row: StoreRow = decode_row(STORE_ROW, row?).ok()?;
        Some(row.group)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(bytes)?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        #[cfg(test)]
        (self.read += bytes.len() as u64);
        Ok(())
    }

    /// Adds bytes to the batch; returns where they end.
    fn bytes(&mut self, count: u64) -> io::Result<usize> {
        let len = usize::try_from(count).ok().filter(|_| count <= self.left);
        let start = self.batch.len();
        let end = start + len.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut batch = mem::take(&mut self.batch);
        batch.resize(end, 0);
        let filled = self.fill(&mut batch[start..]);
        self.batch = batch;
        filled.map(|()| end)
    }

    /// Whether the end of a journal holds more than the zeros that the storage engine has put there for later.
    fn has_more(mut self, journal: &Journal) -> io::Result<bool> {
        self.file.seek(SeekFrom::Start(journal.end))?;
        loop {
            let bytes = self.file.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            if bytes
                .chunks(ZEROS.len())
                .any(|part| *part != ZEROS[..part.len()])
            {
                return Ok(true);
            }
            let len = bytes.len();
            self.file.consume(len);
        }
    }
}

/// A number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    let fold = |number, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, fold)
}
