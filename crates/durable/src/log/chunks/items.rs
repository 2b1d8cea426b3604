//! Reads items, whatever their rows are.

use super::{Chunk, Known};
use crate::error::StoreError;
use crate::format::level;
use crate::format::{
    is_key, last_row, split_value, unreadable, DueRow, Front, ItemRow, Key, Ranges, CHECKSUM,
    ITEMS, MOST_ITEMS,
};
use crate::log::tables::{guarded, rows};
use crate::log::{Disk, Visit};
use fjall::{Keyspace, Readable, Snapshot, UserKey, UserValue};
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

    /// The row of the due time of its row, if it is of level 0 of a queue that has such rows.
    pub(crate) fn due_row(&self) -> Option<DueRow> {
        let (first, count) = match &self.chunk {
            Some(chunk) => (chunk.0, chunk.1.count as usize),
            None => (self.at, 1),
        };
        DueRow::of(first, count, &self.content)
    }

    /// The number of its row.
    pub(crate) fn row(&self) -> u64 {
        self.chunk.as_ref().map_or(self.at.id, |chunk| chunk.0.id)
    }
}

/// Rows of a queue at one instant, between those of items that are gone.
pub(crate) struct Rows {
    snapshot: Snapshot,
    table: Keyspace,
    queue: u32,
    gaps: vec::IntoIter<RangeInclusive<u64>>,
    /// Those of the numbers that are being read.
    visit: Option<Visit>,
}

impl Rows {
    /// The rows of the next numbers.
    fn begin(&mut self, ids: RangeInclusive<u64>) -> Result<(), StoreError> {
        let queue = self.queue;
        let [first, last] = [*ids.start(), *ids.end()].map(|id| Key { queue, id });
        let (first, last) = (first.to_bytes(), last_row(last));
        let range = || self.snapshot.range(&self.table, &first[..]..=&last[..]);
        self.visit = Some(Visit::from(guarded(|| Ok(range()))?));
        Ok(())
    }
}

impl Iterator for Rows {
    type Item = Result<(UserKey, UserValue), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.visit.as_mut().and_then(Iterator::next) {
                return Some(row);
            }
            let ids = self.gaps.next()?;
            if let Err(error) = self.begin(ids) {
                return Some(Err(error));
            }
        }
    }
}

/// The items of rows that follow each other, in the order of their keys.
pub(crate) struct Items<R> {
    rows: R,
    /// A row that was read already.
    peeked: Option<(UserKey, UserValue)>,
    /// Items before this one are none.
    from: Key,
    /// Nor are those with these numbers.
    gone: Arc<Ranges>,
    /// What [`Disk::spread`] was before.
    spread: u64,
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
    /// Those of these rows, from this one on, without those that are gone. [`Disk::spread`] was this before.
    pub(crate) fn new(rows: R, from: Key, gone: Arc<Ranges>, spread: u64) -> Self {
        Self {
            rows,
            peeked: None,
            from,
            gone,
            spread,
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
        let due = items.first().filter(|_| level::of(first.id) == 0);
        let due = due.and_then(|range| DueRow::of(first, items.len(), &value[range.clone()]));
        let mut chunk = Chunk::new(items.len(), due, self.spread);
        let ids = first.id..first.id.saturating_add(chunk.count());
        while let Some(row) = self.next_row() {
            let (key, tombstone) = row?;
            if is_key(&key) {
                self.peeked = Some((key, tombstone));
                break;
            }
            let removed = ItemRow::read(&key, &tombstone)?.ids();
            // That of a chunk that is gone may be left without it.
            if ids.contains(&removed.start) {
                chunk.tombstones.push(removed);
            }
        }
        let gone = self.gone.within(ids.clone());
        let gone = gone.chain(chunk.tombstones.iter().cloned());
        gone.for_each(|gone| chunk.gone.add(gone));
        let items = ids.zip(items);
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
                Ok(Some((at, value))) if at >= self.from && !self.gone.contains(at.id) => {
                    return Some(Ok(Item::alone(at, value)));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Disk {
    /// The next page of a queue goes on with these: who opens rows anew waits for the storage engine while that syncs its list of tables.
    /// They keep what was there when they were opened in memory and on the disk, so only the last ones are kept, and
    /// [let go](Self::let_go) when memtables are written.
    pub(crate) fn keep(&self, items: Items<Rows>) {
        let before = self.reads.kept.lock().replace(items);
        drop(before);
    }

    /// Those of a queue, if they are kept.
    pub(crate) fn kept(&self, queue: u32) -> Option<Items<Rows>> {
        let mut kept = self.reads.kept.lock();
        kept.take_if(|items| items.rows.queue == queue)
    }

    pub(in crate::log) fn let_go(&self) {
        let kept = self.reads.kept.lock().take();
        drop(kept);
    }

    /// The items of a queue from a number on, in the rows of these numbers, as they are now. Where rows were removed, reading on
    /// takes time: so the last row should be no later than needed.
    pub(crate) fn items(
        &self,
        from: Key,
        in_rows: RangeInclusive<u64>,
    ) -> Result<Items<Rows>, StoreError> {
        let _whole = self.reads.spreading.read();
        self.items_of_group(from, in_rows)
    }

    /// The same, for the group that is being written.
    pub(super) fn items_of_group(
        &self,
        from: Key,
        in_rows: RangeInclusive<u64>,
    ) -> Result<Items<Rows>, StoreError> {
        let spread = self.spread();
        let snapshot = guarded(|| Ok(self.tables.database.snapshot()))?;
        // What is gone since then is so too.
        let gone = self.tables.gone(from.queue)?;
        // A chunk with a number behind a range may begin within it.
        let gaps = gone.gaps(in_rows, earliest).into_iter();
        let rows = Rows {
            snapshot,
            table: self.tables[ITEMS].clone(),
            queue: from.queue,
            gaps,
            visit: None,
        };
        Ok(Items::new(rows, from, gone, spread))
    }

    /// The number of the last row of a queue with an item.
    pub(crate) fn last_row(&self, queue: u32) -> Result<Option<Key>, StoreError> {
        let gaps = self.tables.gone(queue)?.gaps(0..=u64::MAX, earliest);
        for ids in gaps.into_iter().rev() {
            let [first, last] = [*ids.start(), *ids.end()].map(|id| Key { queue, id });
            let rows = rows(&self.tables[ITEMS], first.to_bytes()..=last.to_bytes())?;
            for row in rows.rev() {
                let (key, _) = row?;
                let first = Key::of(&key).ok().filter(|_| is_key(&key));
                let Some(first) = first else {
                    continue;
                };
                if self.items(first, first.id..=u64::MAX)?.next().is_some() {
                    return Ok(Some(first));
                }
            }
        }
        Ok(None)
    }

    /// The item with this number, if it is there now.
    pub(crate) fn item(&self, at: Key) -> Result<Option<Item>, StoreError> {
        let _whole = self.reads.spreading.read();
        self.item_of_group(at)
    }

    /// The same, for the group that is being written.
    pub(in crate::log) fn item_of_group(&self, at: Key) -> Result<Option<Item>, StoreError> {
        if self.tables.gone(at.queue)?.contains(at.id) {
            return Ok(None);
        }
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
        let mut items = self.items_of_group(at, row..=u64::MAX)?;
        let item = items.next().transpose()?;
        Ok(item.filter(|item| item.at == at))
    }
}
