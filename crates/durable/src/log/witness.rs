//! The witness: a file of its own with the number of the last acknowledged group of commits.
//!
//! A storage engine takes a damaged end of its journal for a write that a crash interrupted, and drops it. The witness
//! tells the two apart: what it names was acknowledged. It is written after each sync and not synced itself, so a power
//! loss may leave it behind, never ahead.

use crate::error::StoreError;
use std::fs::{File, OpenOptions};
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
    /// Opens the file; returns the number in it too: 0 in a new one. With `accept_damage` also in a damaged one.
    pub(crate) fn open(path: &Path, accept_damage: bool) -> Result<(Self, u64), StoreError> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut bytes = [0; 2 * SLOT];
        let len = usize::try_from(file.metadata()?.len())
            .unwrap_or(usize::MAX)
            .min(2 * SLOT);
        file.read_exact_at(&mut bytes[..len], 0)?;
        let (slots, _) = bytes.as_chunks::<SLOT>();
        let readable = slots.iter().filter_map(Self::read).max();
        let number = match readable {
            Some(number) => number,
            None if len == 0 || accept_damage => 0,
            None => {
                return Err(StoreError::damaged(
                    "the file `acknowledged` cannot be read",
                ))
            }
        };
        Ok((Self(file), number))
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
