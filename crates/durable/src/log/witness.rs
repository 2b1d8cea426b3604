//! The witness: a file of its own with the number of the last acknowledged group of commits.
//!
//! A storage engine takes a damaged end of its journal for a write that a crash interrupted, and drops it. The witness
//! tells the two apart: what it names was acknowledged. It is written after each sync and not synced itself, so a power
//! loss may leave it behind, never ahead.

use super::directory::read_at_most;
use crate::error::StoreError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Two slots, written in turn, so that a torn write leaves the other: a number and its checksum.
const SLOT: usize = 16;

/// The file that names the last acknowledged group.
#[derive(Debug)]
pub(crate) struct Witness(File);

impl Witness {
    /// Opens the file, which is created if it is not there, or with `accept_damage` cannot be read; returns the number in it
    /// too: 0 in a new one.
    pub(crate) fn open(path: &Path, accept_damage: bool) -> Result<(Self, u64), StoreError> {
        if !path.exists() {
            Self::create(path)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let bytes = read_at_most(path, 2 * SLOT as u64)?;
        let (slots, _) = bytes.as_chunks::<SLOT>();
        match slots.iter().filter_map(Self::read).max() {
            Some(number) => Ok((Self(file), number)),
            None if accept_damage => {
                Self::create(path)?;
                Self::open(path, false)
            }
            None => Err(StoreError::damaged(
                "the file `acknowledged` cannot be read",
            )),
        }
    }

    /// Writes a new file. It is on the disk before it has its name; later writes change one sector, so that a power loss
    /// leaves one content or the other.
    fn create(path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        let witness = Self(File::create(&new)?);
        witness.write_to(0, 0)?;
        witness.write_to(1, 0)?;
        witness.0.sync_all()?;
        fs::rename(new, path)
    }

    fn read(slot: &[u8; SLOT]) -> Option<u64> {
        let (number, checksum) = slot.split_first_chunk::<8>()?;
        (xxh3_64(number).to_le_bytes() == *checksum).then(|| u64::from_le_bytes(*number))
    }

    /// Names a group that is on the disk.
    pub(crate) fn write(&self, group: u64) -> io::Result<()> {
        self.write_to(group % 2, group)
    }

    fn write_to(&self, slot: u64, group: u64) -> io::Result<()> {
        let number = group.to_le_bytes();
        let bytes = [number, xxh3_64(&number).to_le_bytes()].concat();
        self.0.write_all_at(&bytes, slot * SLOT as u64)
    }
}
