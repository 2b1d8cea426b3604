//! Reads items, whatever their rows are.

use super::{Chunk, Known};
use crate::error::StoreError;
use crate::format::{
    is_key, split_value, unreadable, Front, ItemRow, Key, CHECKSUM, ITEMS, MOST_ITEMS,
};
use crate::log::tables::{guarded, rows};
use crate::log::{Disk, Visit};
use fjall::{UserKey, UserValue};
use std::ops::{Deref, Range, RangeInclusive};
use std::sync::Arc;
use std::vec;

/// What is in front of an item, and its bytes: a part of the value of its row.
pub(crate) struct Content(UserValue, Range<usize>);

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[self.1.clone()]
    }
}

/// An item on the disk.
pub(crate) struct Item {
    pub(crate) at: Key,
    pub(crate) content: Content,
    /// The chunk whose part it is. Who may remove the item lets the log [know](Disk::know) it.
    pub(crate) chunk: Option<Known>,
}

impl Item {
    /// One with a row of its own.
    fn alone(at: Key, value: UserValue) -> Self {
        let all = CHECKSUM..value.len();
        Self {
            at,
            content: Content(value, all),
            chunk: None,
        }
    }

    /// What is in front of it, and its bytes.
    pub(crate) fn split(&self) -> Result<(Front, &[u8]), StoreError> {
        split_value(&self.content).ok_or_else(|| unreadable(&self.at.to_bytes()))
    }

    /// The number of its row.
    pub(crate) fn row(&self) -> u64 {
        self.chunk.as_ref().map_or(self.at.id, |chunk| chunk.0.id)
    }
}

/// The items of rows that follow each other, in the order of their keys.
pub(crate) struct Items<R> {
    rows: R,
    /// A row that was read already.
    peeked: Option<(UserKey, UserValue)>,
    /// Items before this one are none.
    from: Key,
    /// The chunk that is being read, what it is of, and where the other items are in it.
    chunk: Option<(Known, UserValue, Numbered)>,
}

/// Numbers, and where their items are.
type Numbered = std::iter::Zip<Range<u64>, vec::IntoIter<Range<usize>>>;

/// The number from which on rows may have this item.
pub(crate) fn earliest(id: u64) -> u64 {
    id.saturating_sub(MOST_ITEMS as u64 - 1)
}

impl<R: Iterator<Item = Result<(UserKey, UserValue), StoreError>>> Items<R> {
    /// Those of these rows, from this one on.
    pub(crate) fn new(rows: R, from: Key) -> Self {
        Self {
            rows,
            peeked: None,
            from,
            chunk: None,
        }
    }

    fn next_row(&mut self) -> Option<Result<(UserKey, UserValue), StoreError>> {
        self.peeked.take().map(Ok).or_else(|| self.rows.next())
    }

    /// The next item of the chunk that is being read.
    fn next_of_chunk(&mut self) -> Option<Item> {
        let (chunk, value, items) = self.chunk.as_mut()?;
        let (first, state) = &**chunk;
        let (queue, from) = (first.queue, self.from);
        let is_there = |id: u64| Key { queue, id } >= from && !state.is_gone(id);
        let next = items.find(|(id, _)| is_there(*id));
        let item = next.map(|(id, range)| Item {
            at: Key { queue, id },
            content: Content(value.clone(), range),
            chunk: Some(Arc::clone(chunk)),
        });
        if item.is_none() {
            self.chunk = None;
        }
        item
    }

    /// Begins to read a chunk. Its tombstones follow it.
    fn begin(
        &mut self,
        first: Key,
        value: UserValue,
        items: Vec<Range<usize>>,
    ) -> Result<(), StoreError> {
        let mut chunk = Chunk::new(items.len());
        while let Some(row) = self.next_row() {
            let (key, tombstone) = row?;
            if is_key(&key) {
                self.peeked = Some((key, tombstone));
                break;
            }
            chunk.remove(ItemRow::read(&key, &tombstone)?.ids());
        }
        let items = (first.id..u64::MAX).zip(items);
        self.chunk = Some((Arc::new((first, chunk)), value, items));
        Ok(())
    }
}

impl<R: Iterator<Item = Result<(UserKey, UserValue), StoreError>>> Iterator for Items<R> {
    type Item = Result<Item, StoreError>;

    fn next(&mut self) -> Option<Result<Item, StoreError>> {
        loop {
            if let Some(item) = self.next_of_chunk() {
                return Some(Ok(item));
            }
            let row = self.next_row()?.and_then(|(key, value)| {
                let (at, items) = match ItemRow::read(&key, &value)? {
                    ItemRow::One(at, _) => return Ok(Some((at, value))),
                    ItemRow::Chunk(first, items) => (first, items),
                    ItemRow::Tombstone(..) => return Ok(None), // of a chunk before these rows
                };
                self.begin(at, value, items).map(|()| None)
            });
            match row {
                Ok(Some((at, value))) if at >= self.from => {
                    return Some(Ok(Item::alone(at, value)));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Disk {
    /// The items of a queue from a number on, in the rows of these numbers, as they are now. Where rows were removed, reading on
    /// takes time: so the last row should be no later than needed.
    pub(crate) fn items(
        &self,
        from: Key,
        in_rows: RangeInclusive<u64>,
    ) -> Result<Items<Visit>, StoreError> {
        let key = |id| Key { id, ..from }.to_bytes();
        let (first, last) = in_rows.into_inner();
        let rows = rows(&self.tables[ITEMS], key(first)..=key(last))?;
        Ok(Items::new(rows, from))
    }

    /// The item with this number, if it is there now.
    pub(crate) fn item(&self, at: Key) -> Result<Option<Item>, StoreError> {
        let (key, table) = (at.to_bytes(), &self.tables[ITEMS]);
        if let Some(value) = guarded(|| Ok(table.get(key)?))? {
            if let ItemRow::One(..) = ItemRow::read(&key, &value)? {
                return Ok(Some(Item::alone(at, value)));
            }
        }
        let id = earliest(at.id);
        let mut before = rows(table, Key { id, ..at }.to_bytes()..=key)?;
        // The last row that is no tombstone has the item, or none has it.
        let row = loop {
            let Some(row) = before.next_back() else {
                return Ok(None);
            };
            let (key, _) = row?;
            if is_key(&key) {
                break Key::of(&key)?.id;
            }
        };
        let item = self.items(at, row..=u64::MAX)?.next().transpose()?;
        Ok(item.filter(|item| item.at == at))
    }
}
