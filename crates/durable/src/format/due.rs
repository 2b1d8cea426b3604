//! Rows that say when the items of a queue by priority are due: in `marks`, behind those of unique keys. So they are in the order of the
//! levels, then of the times. A chunk has one row: its items are due at the same time.

use super::level::{self, Level};
use super::{checksum, split_value, unreadable, Key, Schedule, CHECKSUM, MOST_ITEMS};
use crate::error::StoreError;
use crate::order::Place;
use std::ops::{Range, RangeInclusive};

/// The bits of a queue's number, which no queue has, in the keys of these rows.
const DUE: u32 = 0b11 << 30;
/// The length of such a key.
const LENGTH: usize = 18;
/// Times and numbers take this many bytes of it: the upper bits of a number without a level are 0.
const PART: usize = 6;
/// The last time: in the year 10889.
const LATEST: u64 = u64::MAX >> (8 * (8 - PART));

/// When an item of level 0 is due, or those of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueRow {
    /// The first item.
    pub(crate) item: Key,
    /// How many the chunk was written with.
    pub(crate) count: u32,
    /// That of its priority.
    pub(crate) level: Level,
    /// In milliseconds since the Unix epoch; 0 if it always was.
    pub(crate) due: u64,
}

impl DueRow {
    /// The row of an item with this content, or of a chunk of `count` items that begins with it.
    pub(crate) fn of(item: Key, count: usize, content: &[u8]) -> Option<Self> {
        let schedule = split_value(content)?.0.schedule;
        let place = schedule.map(|Schedule { priority, .. }| Place {
            priority,
            due: None,
        });
        Some(Self {
            item,
            count: u32::try_from(count).ok()?,
            level: level::of_place(place.unwrap_or_default()),
            due: schedule
                .and_then(|schedule| schedule.due)
                .unwrap_or(0)
                .min(LATEST),
        })
    }

    /// Whether the key of a row in `marks` is that of such a one.
    pub(crate) fn is_key(key: &[u8]) -> bool {
        key.len() == LENGTH
    }

    pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let count = count(value.get(CHECKSUM..)).filter(|count| *count as usize <= MOST_ITEMS);
        let count = count.unwrap_or(1);
        let row = Self::from_key(key).map(|row| Self { count, ..row });
        let row = row.filter(|row| row.value() == value);
        row.ok_or_else(|| unreadable(key))
    }

    fn from_key(key: &[u8]) -> Option<Self> {
        let (queue, key) = key.split_first_chunk()?;
        let (level, key) = key.split_first_chunk()?;
        let (due, id) = key.split_first_chunk::<PART>()?;
        let queue = u32::from_be_bytes(*queue).checked_sub(DUE)?;
        let id = number(id.try_into().ok()?);
        Some(Self {
            item: Key { queue, id },
            count: 1,
            level: Level::from_be_bytes(*level),
            due: number(*due),
        })
    }

    pub(crate) fn key(self) -> [u8; LENGTH] {
        let mut key = [0; LENGTH];
        key[..4].copy_from_slice(&(self.item.queue | DUE).to_be_bytes());
        key[4..6].copy_from_slice(&self.level.to_be_bytes());
        key[6..12].copy_from_slice(&self.due.to_be_bytes()[8 - PART..]);
        key[12..].copy_from_slice(&self.item.id.to_be_bytes()[8 - PART..]);
        key
    }

    /// Its digest, and the number of items, unless it is one.
    pub(crate) fn value(self) -> Vec<u8> {
        let mut value = self.digest().to_le_bytes().to_vec();
        if self.is_chunk() {
            value.extend_from_slice(&self.count.to_be_bytes());
        }
        value
    }

    /// The checksum of its key and the number of items.
    pub(crate) fn digest(self) -> u64 {
        let (key, count) = (self.key(), self.count.to_be_bytes());
        let count = if self.is_chunk() { &count[..] } else { &[] };
        checksum(&key, &[&key, count].concat())
    }

    /// Where it is in its level.
    pub(crate) fn place(self) -> (u64, u64) {
        (self.due, self.item.id)
    }

    /// Whether it is that of a chunk.
    pub(crate) fn is_chunk(self) -> bool {
        self.count > 1
    }

    /// The numbers of its items.
    pub(crate) fn ids(self) -> Range<u64> {
        self.item.id..self.item.id + u64::from(self.count)
    }

    /// The same for one of its items.
    pub(crate) fn of_one(self, id: u64) -> Self {
        let item = Key { id, ..self.item };
        Self {
            item,
            count: 1,
            ..self
        }
    }

    /// Whether another one says the same of other items.
    pub(crate) fn is_like(self, other: Self) -> bool {
        (self.item.queue, self.level, self.due) == (other.item.queue, other.level, other.due)
    }
}

fn count(bytes: Option<&[u8]>) -> Option<u32> {
    bytes?.try_into().ok().map(u32::from_be_bytes)
}

fn number(bytes: [u8; PART]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The keys of the rows of these levels of a queue, in the first one from a place on.
pub(crate) fn due_rows(
    queue: u32,
    levels: RangeInclusive<Level>,
    (due, id): (u64, u64),
) -> RangeInclusive<[u8; LENGTH]> {
    let key = |level, due, id| {
        let item = Key { queue, id };
        let count = 1;
        DueRow {
            item,
            count,
            level,
            due,
        }
        .key()
    };
    key(*levels.start(), due, id)..=key(*levels.end(), LATEST, LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{begin_value, key_rows, Front, Schedule};

    #[test]
    fn a_row_says_what_was_written() {
        let item = Key { queue: 7, id: 9 };
        let (schedule, pushed) = (Some((4, Some(6))), Some(1));
        let schedule = schedule.map(|(priority, due)| Schedule { priority, due });
        let mut value = Vec::new();
        begin_value(&mut value, Front { schedule, pushed });
        let row = DueRow::of(item, 1, &value[CHECKSUM..]).unwrap();
        let (count, level, due) = (1, 5, 6);
        let expected = DueRow {
            item,
            count,
            level,
            due,
        };
        assert_eq!(row, expected);
        let (key, mut value) = (row.key(), row.value());
        assert_eq!(key[..12], [0xc0, 0, 0, 7, 0, 5, 0, 0, 0, 0, 0, 6]);
        assert_eq!(DueRow::read(&key, &value).unwrap(), row);
        assert!(due_rows(7, 5..=5, (6, 9)).contains(&key));
        assert!(!due_rows(7, 5..=5, (6, 10)).contains(&key));
        assert!(!due_rows(7, 6..=Level::MAX, (0, 0)).contains(&key));
        assert!(key_rows(u32::MAX >> 2).end()[..] < key[..]);
        let of_chunk = DueRow { count: 300, ..row };
        assert_eq!(DueRow::read(&key, &of_chunk.value()).unwrap(), of_chunk);
        for value in [&mut value, &mut of_chunk.value()] {
            value[0] ^= 1;
            DueRow::read(&key, value).unwrap_err();
        }
        let count = [&value[..], &[0, 0, 0, 2]].concat();
        DueRow::read(&key, &count).unwrap_err();
        let too_many = DueRow {
            count: 1_025,
            ..row
        };
        DueRow::read(&key, &too_many.value()).unwrap_err();
    }
}
