//! The witness: a file of its own with the number of the last acknowledged group of commits.
//!
//! A storage engine takes a damaged end of its journal for a write that a crash interrupted, and drops it. The witness
//! tells the two apart: what it names was acknowledged. It is written after each sync and not synced itself, so a power
//! loss may leave it behind, never ahead.

use crate::error::StoreError;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Two slots, written in turn, so that a torn write leaves the other: a number and its checksum.
const SLOT: usize = 16;

/// The file that names the last acknowledged group.
#[derive(Debug)]
pub(crate) struct Witness(File);

impl Witness {
    /// Opens the file, or creates it for a store without groups; returns the number in it too, 0 if there is none.
    pub(crate) fn open(path: &Path, has_groups: bool) -> Result<(Self, u64), StoreError> {
        let mut options = OpenOptions::new();
        let file = match options.read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !has_groups => Self::create(path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::damaged("the file `acknowledged` is missing"))
            }
            file => file?,
        };
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let len = len.min(2 * SLOT);
        let mut bytes = [0; 2 * SLOT];
        file.read_exact_at(&mut bytes[..len], 0)?;
        let (slots, _) = bytes.as_chunks::<SLOT>();
        let readable = slots.iter().filter_map(Self::read).max();
        // Empty: a crash came before the first group was acknowledged.
        if readable.is_none() && len > 0 {
            return Err(StoreError::damaged(
                "the file `acknowledged` cannot be read",
            ));
        }
        Ok((Self(file), readable.unwrap_or(0)))
    }

    fn create(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(file)
    }

    fn read(slot: &[u8; SLOT]) -> Option<u64> {
        let (number, checksum) = slot.split_first_chunk::<8>()?;
        (xxh3_64(number).to_le_bytes() == *checksum).then(|| u64::from_le_bytes(*number))
    }

    /// Names a group that is on the disk.
    pub(crate) fn write(&self, group: u64) -> io::Result<()> {
        let number = group.to_le_bytes();
        let mut slot = [0; SLOT];
        slot[..8].copy_from_slice(&number);
        slot[8..].copy_from_slice(&xxh3_64(&number).to_le_bytes());
        self.0.write_all_at(&slot, (group % 2) * SLOT as u64)
    }
}
