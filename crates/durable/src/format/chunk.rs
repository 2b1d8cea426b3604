//! Rows of several items.
//!
//! A *chunk* is one row for items of a queue with consecutive numbers, under the first of these. When some of its items are removed
//! and others are left, a *tombstone* is written for each run of them: a row under the last number of the run. The row of a single
//! item is as in the first version of the format.

use super::{begin_value, open, seal, unreadable, DueRow, Front, Key, CHECKSUM};
use crate::error::StoreError;
use std::ops::Range;

/// The first byte of the content of a chunk.
const CHUNK: u8 = 8;
/// The byte behind the key in that of a tombstone. Not 0: it would be the place of the key itself among keys of one length.
const TOMBSTONE: u8 = 1;

/// The most items of a chunk.
pub(crate) const MOST_ITEMS: usize = 1_024;

/// How pushed items are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each has a row of its own.
    #[default]
    Alone,
    /// In chunks of items that are in memory.
    Hot,
    /// In chunks of items that are on the disk only.
    Cold,
}

impl Layout {
    /// The most bytes of a chunk of several items. One that is held or delayed for long keeps the others on the disk. Those that are read
    /// from there are faster in large chunks.
    fn most_bytes(self) -> usize {
        match self {
            Self::Alone => 0,
            Self::Hot => 4 << 10,
            Self::Cold => 16 << 10,
        }
    }
}

/// What a row of `items` is.
pub(crate) enum ItemRow<'v> {
    /// One item: its content.
    One(Key, &'v [u8]),
    /// A chunk under its first number, with the contents of its items as ranges of its value.
    Chunk(Key, Vec<Range<usize>>),
    /// The numbers of removed items of a chunk; the key is the last one.
    Tombstone(Key, Range<u64>),
}

impl<'v> ItemRow<'v> {
    pub(crate) fn read(key: &[u8], value: &'v [u8]) -> Result<Self, StoreError> {
        let row = open(key, value).and_then(|content| Self::of(key, content));
        row.ok_or_else(|| unreadable(key))
    }

    fn of(bytes: &[u8], content: &'v [u8]) -> Option<Self> {
        if let Some(bytes) = bytes.strip_suffix(&[TOMBSTONE]).filter(|rest| is_key(rest)) {
            let at = Key::from_bytes(bytes)?;
            let count = u32::from_be_bytes(content.try_into().ok()?);
            let end = at.id.checked_add(1)?;
            let first = end.checked_sub(u64::from(count))?;
            return (first < end).then_some(Self::Tombstone(at, first..end));
        }
        let at = Key::from_bytes(bytes)?;
        match content.split_first() {
            Some((&CHUNK, rest)) => split(rest).map(|items| Self::Chunk(at, items)),
            _ => Some(Self::One(at, content)),
        }
    }

    /// The numbers of the items that it has, or has no more.
    pub(crate) fn ids(&self) -> Range<u64> {
        match self {
            Self::One(at, _) => at.id..at.id.saturating_add(1),
            Self::Chunk(at, items) => at.id..at.id.saturating_add(items.len() as u64),
            Self::Tombstone(_, ids) => ids.clone(),
        }
    }

    pub(crate) fn queue(&self) -> u32 {
        let (Self::One(at, _) | Self::Chunk(at, _) | Self::Tombstone(at, _)) = self;
        at.queue
    }

    /// The contents of the items in its value.
    pub(crate) fn contents<'s>(&'s self, value: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let (one, several) = match self {
            Self::One(_, content) => (Some(*content), &[][..]),
            Self::Chunk(_, items) => (None, &**items),
            Self::Tombstone(..) => (None, &[][..]),
        };
        let several = several.iter().map(|range| &value[range.clone()]);
        one.into_iter().chain(several)
    }

    /// The row of the due time of its first item, which its value has.
    pub(crate) fn due(&self, value: &[u8]) -> Option<DueRow> {
        let first = self.contents(value).next()?;
        DueRow::of(self.keys().next()?, self.keys().count(), first)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let queue = self.queue();
        self.ids().map(move |id| Key { queue, id })
    }
}

/// Whether these are the bytes of a key, and not those of a tombstone.
pub(crate) fn is_key(bytes: &[u8]) -> bool {
    bytes.len() == 12
}

/// Where the contents of the items of a chunk are in its value.
fn split(rest: &[u8]) -> Option<Vec<Range<usize>>> {
    let (count, rest) = rest.split_first_chunk()?;
    let count = u32::from_be_bytes(*count) as usize;
    let lengths = rest.get(..count.checked_mul(4)?)?;
    let end = CHECKSUM + 1 + 4 + rest.len();
    let mut start = CHECKSUM + 1 + 4 + lengths.len();
    let mut items = Vec::with_capacity(count);
    for length in lengths.chunks_exact(4) {
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        items.push(start..start.checked_add(length)?);
        start += length;
    }
    (count > 1 && count <= MOST_ITEMS && start == end).then_some(items)
}

/// The row of a tombstone, by the numbers of its items.
pub(crate) fn tombstone(queue: u32, ids: &Range<u64>) -> ([u8; 13], Vec<u8>) {
    let key = tombstone_key(queue, ids);
    let count = u32::try_from(ids.end - ids.start).unwrap_or(u32::MAX);
    let mut value = [&[0; CHECKSUM][..], &count.to_be_bytes()].concat();
    seal(&key, &mut value);
    (key, value)
}

pub(crate) fn tombstone_key(queue: u32, ids: &Range<u64>) -> [u8; 13] {
    let id = ids.end - 1;
    last_row(Key { queue, id })
}

/// The last key of a row under this number: that of a tombstone.
pub(crate) fn last_row(at: Key) -> [u8; 13] {
    let mut key = [TOMBSTONE; 13];
    key[..12].copy_from_slice(&at.to_bytes());
    key
}

/// The value of an item, with its checksum, by its content.
pub(crate) fn value_of(key: &[u8], content: &[u8]) -> Vec<u8> {
    let mut value = [&[0; CHECKSUM], content].concat();
    seal(key, &mut value);
    value
}

/// A chunk that is being made.
#[derive(Default)]
pub(crate) struct NewChunk {
    first: Option<Key>,
    layout: Layout,
    /// When its items are due, if there are rows of that.
    due: Option<DueRow>,
    lengths: Vec<u32>,
    contents: Vec<u8>,
}

impl NewChunk {
    /// Adds an item, by its value without a checksum; `false` if it is none for this chunk, which has items of one layout, and of one due
    /// time if there are rows of that.
    pub(crate) fn add(
        &mut self,
        key: Key,
        layout: Layout,
        due: Option<DueRow>,
        value: &[u8],
    ) -> bool {
        let (content, count) = (&value[CHECKSUM..], self.len());
        let first = *self.first.get_or_insert(key);
        let is_next = key.queue == first.queue && key.id == first.id + count as u64;
        let bytes = self.contents.len() + content.len();
        let fits = count < MOST_ITEMS && bytes <= layout.most_bytes() && layout == self.layout;
        let is_like = || match (due, self.due) {
            (Some(due), Some(first)) => due.is_like(first),
            (due, first) => due == first,
        };
        let fits = count == 0 || fits && is_like();
        let length = u32::try_from(content.len()).ok();
        let Some(length) = length.filter(|_| is_next && fits) else {
            return false;
        };
        if count == 0 {
            (self.layout, self.due) = (layout, due);
        }
        self.lengths.push(length);
        self.contents.extend_from_slice(content);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The row of the due time.
    pub(crate) fn due(&self) -> Option<DueRow> {
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        self.due.map(|due| DueRow { count, ..due })
    }

    /// Its row, if it has items. One item alone is a row of the first version of the format. What is left is empty.
    pub(crate) fn take(&mut self) -> Option<(Key, Vec<u8>)> {
        let first = self.first.take()?;
        let mut value = Vec::new();
        if self.lengths.len() > 1 {
            begin_value(&mut value, Front::default());
            value[CHECKSUM] = CHUNK;
            let count = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
            value.extend_from_slice(&count.to_be_bytes());
            let lengths = self.lengths.iter().flat_map(|length| length.to_be_bytes());
            value.extend(lengths);
        } else {
            value.resize(CHECKSUM, 0);
        }
        value.append(&mut self.contents);
        self.lengths.clear();
        seal(&first.to_bytes(), &mut value);
        Some((first, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Layout::{Cold, Hot};

    const FIRST: Key = Key { queue: 3, id: 7 };

    fn chunk(contents: &[&[u8]]) -> Vec<u8> {
        let mut chunk = NewChunk::default();
        for (id, content) in (FIRST.id..).zip(contents) {
            let value = [&[0; CHECKSUM], *content].concat();
            assert!(chunk.add(Key { id, ..FIRST }, Cold, None, &value));
        }
        chunk.take().unwrap().1
    }

    #[test]
    fn a_chunk_has_the_contents_of_its_items() {
        let value = chunk(&[b"\0a", b"\0", b"\0ccc"]);
        let bytes = [
            &[CHUNK, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4][..],
            b"\0a\0\0ccc",
        ];
        assert_eq!(value[CHECKSUM..], bytes.concat());
        let key = FIRST.to_bytes();
        let Ok(row @ ItemRow::Chunk(..)) = ItemRow::read(&key, &value) else {
            panic!("no chunk");
        };
        assert_eq!((row.queue(), row.ids()), (3, 7..10));
        let ItemRow::Chunk(_, items) = row else {
            unreachable!()
        };
        let items: Vec<_> = items.into_iter().map(|item| &value[item]).collect();
        assert_eq!(items, [&b"\0a"[..], b"\0", b"\0ccc"]);
        for length in 1..bytes.concat().len() {
            let cut = value_of(&key, &value[CHECKSUM..CHECKSUM + length]);
            assert!(ItemRow::read(&key, &cut).is_err(), "{length}");
        }
        assert!(ItemRow::read(&[1; 12], &value).is_err());
    }

    #[test]
    fn one_item_is_a_row_of_the_first_version() {
        let value = chunk(&[b"\0a"]);
        let read = ItemRow::read(&FIRST.to_bytes(), &value);
        assert!(matches!(read, Ok(ItemRow::One(FIRST, b"\0a"))));
    }

    #[test]
    fn a_chunk_ends_where_numbers_or_room_do() {
        let mut chunk = NewChunk::default();
        let (mut key, value) = (FIRST, vec![0; CHECKSUM + Cold.most_bytes()]);
        assert!(chunk.add(FIRST, Cold, None, &value));
        key.id += 1;
        assert!(!chunk.add(key, Cold, None, &value[..9]));
        assert_eq!(chunk.take().unwrap().0, FIRST);
        assert!(chunk.add(FIRST, Cold, None, &value[..9]));
        assert!(!chunk.add(Key { id: 9, ..FIRST }, Cold, None, &value[..9]));
        assert!(!chunk.add(Key { queue: 4, id: 8 }, Cold, None, &value[..9]));
        assert!(!chunk.add(key, Hot, None, &value[..9]));
        for _ in 1..MOST_ITEMS {
            assert!(chunk.add(key, Cold, None, &value[..9]));
            key.id += 1;
        }
        assert!(!chunk.add(key, Cold, None, &value[..9]));
        assert!(chunk.take().is_some() && chunk.take().is_none());
        let half = &value[..CHECKSUM + (2 << 10)];
        let keys = [FIRST.id, 8, 9].map(|id| Key { id, ..FIRST });
        assert_eq!(
            keys.map(|key| chunk.add(key, Hot, None, half)),
            [true, true, false]
        );
        assert!(chunk.take().is_some());
        assert_eq!(
            keys.map(|key| chunk.add(key, Layout::Alone, None, &value[..9])),
            [true, false, false]
        );
    }

    #[test]
    fn items_of_a_chunk_are_due_at_one_time() {
        let (mut chunk, value) = (NewChunk::default(), [0; CHECKSUM + 1]);
        let add = |chunk: &mut NewChunk, id, due, level| {
            let row = DueRow {
                item: Key { id, ..FIRST },
                count: 1,
                level,
                due,
            };
            chunk.add(row.item, Hot, Some(row), &value)
        };
        assert!(add(&mut chunk, 7, 5, 2) && add(&mut chunk, 8, 5, 2));
        assert!(!add(&mut chunk, 9, 5, 3) && !add(&mut chunk, 9, 6, 2));
        assert!(!chunk.add(Key { id: 9, ..FIRST }, Hot, None, &value));
        let due = chunk.due().unwrap();
        assert_eq!((due.ids(), due.level, due.due), (7..9, 2, 5));
        chunk.take();
        assert!(add(&mut chunk, 9, 6, 2) && chunk.due().is_some_and(|due| due.due == 6));
    }

    #[test]
    fn a_tombstone_is_behind_its_last_item() {
        let (key, value) = tombstone(3, &(5..8));
        let item = FIRST.to_bytes();
        assert!(item[..] < key[..] && key[..] < Key { queue: 3, id: 8 }.to_bytes()[..]);
        let read = ItemRow::read(&key, &value);
        assert!(matches!(read, Ok(ItemRow::Tombstone(FIRST, ids)) if ids == (5..8)));
        for count in [0, 9_u32] {
            let wrong = value_of(&key, &count.to_be_bytes());
            assert!(ItemRow::read(&key, &wrong).is_err());
        }
    }
}
