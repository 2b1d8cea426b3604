//! Checks the lists of tables of the storage engine, and the tables in them, before it opens them.
//!
//! Both are archives: sections, a table of contents with a checksum, and a trailer of fixed length. The storage engine allocates
//! memory for the number of sections in a file before it verifies the checksum, and for the number of blob files in a list
//! without a checksum. A failed allocation aborts the process, which `catch_unwind` cannot prevent. So everything that it
//! trusts is checked here: each table of contents, whose sections must be within their file, and each list. All other
//! lengths are in blocks, whose checksums it verifies first, and in journals, which are [read](super::journal) before.

use super::directory::read_at_most;
use crate::error::StoreError;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

const TRAILER: usize = 38;
/// The name of an archive, its version, and the kind of its checksum.
const TRAILER_START: &[u8; 6] = b"SFA!\x01\x00";
const CONTENTS_START: &[u8; 4] = b"TOC!";
/// More than the storage engine writes: it has ten sections at most.
const MOST_CONTENTS: u64 = 1 << 16;
/// More than a list of a hundred thousand tables has.
const MOST_LIST: u64 = 1 << 22;
/// What a list says of one table: its number, the kind of its checksum, that, and what is added to the numbers of its rows.
const TABLE: usize = 8 + 1 + 16 + 8;
/// The sections of a list that say how many files of large values there are. A store has none.
const NO_BLOB_FILES: [(&[u8], [u8; 4]); 2] = [(b"blob_files", [0; 4]), (b"blob_gc_stats", [0; 4])];

/// Checks that the list of a keyspace has its checksum, which is in a file of its own, and the tables in it. The storage engine
/// does not compare it, and deletes the tables that are not listed.
pub(super) fn check(keyspace: &Path) -> Result<(), StoreError> {
    let (list, checksum) = current(keyspace)?;
    let bytes = read(&list)?;
    if checksum != Some(xxh3_128(&bytes)) {
        let keyspace = keyspace.display();
        let details = format!("the list of tables in {keyspace} has a wrong checksum");
        return Err(StoreError::damaged(details));
    }
    check_tables(keyspace, &list, &bytes)
}

/// The same for a list that may have a wrong checksum: whether it can be tried.
pub(super) fn check_without_checksum(keyspace: &Path) -> Result<(), StoreError> {
    let (list, _) = current(keyspace)?;
    let bytes = read(&list)?;
    check_tables(keyspace, &list, &bytes)
}

/// The directories beside the keyspaces: the storage engine panics on them, and again while it is dropped, which aborts the
/// process. It ignores files.
pub(super) fn strays(keyspaces: &Path, count: usize) -> Result<Vec<PathBuf>, StoreError> {
    let mut strays = Vec::new();
    for entry in fs::read_dir(keyspaces).map_err(lost)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse::<usize>().ok());
        if number.is_none_or(|number| number >= count) && !entry.file_type()?.is_file() {
            strays.push(keyspaces.join(name));
        }
    }
    Ok(strays)
}

/// The directories among the tables of a keyspace, on which the storage engine panics.
pub(super) fn stray_tables(keyspace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(keyspace.join("tables")).into_iter().flatten();
    let strays = entries.flatten().filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| !kind.is_file())
    });
    strays.map(|entry| entry.path()).collect()
}

/// Where the list of a keyspace is, and its checksum, if it is readable.
fn current(keyspace: &Path) -> Result<(PathBuf, Option<u128>), StoreError> {
    let path = keyspace.join("current");
    let bytes = read(&path)?;
    let mut parts = Parts(&bytes);
    let list = parts.number(8).ok_or_else(|| unreadable(&path))?;
    let checksum = parts.bytes(16).map(number).filter(|_| parts.0 == [0]);
    Ok((keyspace.join(format!("v{list}")), checksum))
}

fn check_tables(keyspace: &Path, list: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let sections = sections(list)?;
    let section = |name: &[u8]| {
        let (_, range) = sections.iter().find(|(known, _)| known == name)?;
        let at = |at| usize::try_from(at).ok();
        bytes.get(at(range.start)?..at(range.end)?)
    };
    let has_none = NO_BLOB_FILES
        .iter()
        .all(|(name, none)| section(name) == Some(none));
    let tables = section(b"tables").and_then(tables).filter(|_| has_none);
    for table in tables.ok_or_else(|| unreadable(list))? {
        self::sections(&keyspace.join("tables").join(table.to_string()))?;
    }
    match stray_tables(keyspace).first() {
        Some(stray) => Err(unreadable(stray)),
        None => Ok(()),
    }
}

/// The numbers of the tables of a list, by levels and runs.
fn tables(section: &[u8]) -> Option<Vec<u64>> {
    let (mut numbers, mut parts) = (Vec::new(), Parts(section));
    for _ in 0..parts.number(1)? {
        for _ in 0..parts.number(1)? {
            for _ in 0..parts.number(4)? {
                numbers.push(parts.number(8)?);
                parts.bytes(TABLE - 8)?;
            }
        }
    }
    parts.0.is_empty().then_some(numbers)
}

type Sections = Vec<(Vec<u8>, Range<u64>)>;

/// The sections of an archive.
fn sections(path: &Path) -> Result<Sections, StoreError> {
    let contents = File::open(path).and_then(|file| contents(&file));
    let (contents, end) = contents.map_err(lost)?.ok_or_else(|| unreadable(path))?;
    parse(&contents, end).ok_or_else(|| unreadable(path))
}

/// The table of contents of an archive, and where it begins, if its checksum is right.
fn contents(file: &File) -> io::Result<Option<(Vec<u8>, u64)>> {
    let end = file.metadata()?.len().checked_sub(TRAILER as u64);
    let Some(end) = end else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER];
    file.read_exact_at(&mut trailer, end)?;
    let [checksum, start, len] = [6..22, 22..30, 30..38].map(|range| number(&trailer[range]));
    let start = u64::try_from(start).unwrap_or(u64::MAX);
    let is_sound = trailer.starts_with(TRAILER_START)
        && end.checked_sub(start).map(u128::from) == Some(len)
        && len <= MOST_CONTENTS.into();
    if !is_sound {
        return Ok(None);
    }
    let mut contents = vec![0; usize::try_from(end - start).unwrap_or(0)];
    file.read_exact_at(&mut contents, start)?;
    Ok((xxh3_128(&contents) == checksum).then_some((contents, start)))
}

fn parse(contents: &[u8], end: u64) -> Option<Sections> {
    let mut parts = Parts(contents.strip_prefix(CONTENTS_START)?);
    let mut sections = Vec::new();
    for _ in 0..parts.number(4)? {
        let (start, len, name) = (parts.number(8)?, parts.number(8)?, parts.number(2)?);
        let name = parts.bytes(usize::try_from(name).ok()?)?;
        let stop = start.checked_add(len).filter(|stop| *stop <= end);
        sections.push((name.to_vec(), start..stop?));
    }
    parts.0.is_empty().then_some(sections)
}

/// What is left of a list.
struct Parts<'b>(&'b [u8]);

impl<'b> Parts<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of up to eight bytes.
    fn number(&mut self, len: usize) -> Option<u64> {
        u64::try_from(number(self.bytes(len)?)).ok()
    }
}

/// A number of up to sixteen bytes.
fn number(bytes: &[u8]) -> u128 {
    let fold = |number, byte: &u8| number << 8 | u128::from(*byte);
    bytes.iter().rev().fold(0, fold)
}

/// A file as a whole, which is short unless it is damaged.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    read_at_most(path, MOST_LIST).map_err(lost)
}

fn lost(error: io::Error) -> StoreError {
    super::tables::unreadable(error.into())
}

fn unreadable(path: &Path) -> StoreError {
    StoreError::damaged(format!("{} is damaged", path.display()))
}
