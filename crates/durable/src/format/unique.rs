//! Rows that say which item has a unique key: in `marks`, behind the marks of all queues.

use super::{open, seal, unreadable, Key, CHECKSUM};
use crate::error::StoreError;
use std::ops::RangeInclusive;

/// The bit of a queue's number, which no queue has, in the keys of these rows.
const UNIQUE: u32 = 1 << 31;
/// The length of such a key.
const LENGTH: usize = 20;

/// Which item has, or had, the key with this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UniqueRow {
    pub(crate) item: Key,
    pub(crate) hash: u128,
}

impl UniqueRow {
    /// Whether the key of a row in `marks` is that of such a one.
    pub(crate) fn is_key(key: &[u8]) -> bool {
        key.len() == LENGTH
    }

    pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let row = open(key, value).and_then(|content| Self::of(key, content));
        row.ok_or_else(|| unreadable(key))
    }

    fn of(key: &[u8], content: &[u8]) -> Option<Self> {
        let (queue, hash) = key.split_first_chunk()?;
        let queue = u32::from_be_bytes(*queue).checked_sub(UNIQUE)?;
        let id = u64::from_be_bytes(content.try_into().ok()?);
        Some(Self {
            item: Key { queue, id },
            hash: u128::from_be_bytes(hash.try_into().ok()?),
        })
    }

    pub(crate) fn key(self) -> [u8; LENGTH] {
        key_row(self.item.queue, self.hash)
    }

    pub(crate) fn value(self) -> Vec<u8> {
        let mut value = vec![0; CHECKSUM];
        value.extend_from_slice(&self.item.id.to_be_bytes());
        seal(&self.key(), &mut value);
        value
    }
}

/// The key of the row for this hash.
pub(crate) fn key_row(queue: u32, hash: u128) -> [u8; LENGTH] {
    let mut key = [0; LENGTH];
    key[..4].copy_from_slice(&(queue | UNIQUE).to_be_bytes());
    key[4..].copy_from_slice(&hash.to_be_bytes());
    key
}

/// The keys of all such rows of a queue.
pub(crate) fn key_rows(queue: u32) -> RangeInclusive<[u8; LENGTH]> {
    key_row(queue, 0)..=key_row(queue, u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_written() {
        let (item, hash) = (Key { queue: 7, id: 9 }, 1 << 100 | 5);
        let row = UniqueRow { item, hash };
        let (key, mut value) = (row.key(), row.value());
        assert_eq!(key[..4], [0x80, 0, 0, 7]);
        assert_eq!(UniqueRow::read(&key, &value).unwrap(), row);
        assert!(key_rows(7).contains(&key) && !key_rows(6).contains(&key));
        assert!(
            Key {
                queue: 7,
                id: u64::MAX
            }
            .to_bytes()[..]
                < key[..]
        );
        value[15] ^= 1;
        UniqueRow::read(&key, &value).unwrap_err();
    }
}
