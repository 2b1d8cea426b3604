//! Rows that have several items: which of them are partly gone.
//!
//! A tombstone removes a run of items of a chunk. With the last item, the chunk and its tombstones are removed. So a group needs the state of
//! the chunk: code that reads an item, which a transaction may remove later, calls [`Disk::know`] first. From then on groups
//! keep the state up to date, until the chunk is gone.

mod items;
mod write;

pub(crate) use items::{earliest, Item, Items, Rows};

use super::tables::guarded;
use super::Disk;
use crate::format::level::{self, Level};
use crate::format::{DueRow, ItemRow, Key, Ranges, ITEMS};
use fjall::UserValue;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The chunks with items that may be removed, by their first ones.
#[derive(Default)]
pub(crate) struct Chunks {
    known: BTreeMap<Key, Chunk>,
    /// The group that is being written has spread some.
    have_spread: bool,
    /// Of each level of a queue, numbers without rows.
    vacant: HashMap<(u32, Level), Ranges>,
}

/// What readers of items share with the thread that writes groups.
#[derive(Default)]
pub(crate) struct Reads {
    /// Locked after the catalog.
    pub(super) chunks: Mutex<Chunks>,
    /// Those that were read since the last group was made.
    learned: Mutex<Vec<Known>>,
    /// How many groups have spread chunks.
    spread: AtomicU64,
    /// Locked by a group that may spread chunks, after the catalog, until it is written. A reader that does not wait may find neither the chunk
    /// of an item nor a row of its own.
    pub(crate) spreading: RwLock<()>,
    /// See [`Disk::keep`].
    pub(crate) kept: Mutex<Option<Items<Rows>>>,
}

/// Of how many levels that is kept.
const MOST_VACANT: usize = 4_096;
/// The most gaps of a level.
const MOST_GAPS: usize = 128;

/// A row of several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// How many it was written with.
    count: u32,
    /// The row of its due time, if the queue has such rows.
    due: Option<DueRow>,
    /// What [`Disk::spread`] was before it was read.
    spread: u64,
    /// The numbers of those that are gone.
    gone: Ranges,
    /// Those of them that have tombstones, by the runs of these.
    tombstones: Vec<Range<u64>>,
}

/// A chunk as it was read, and its first item.
pub(crate) type Known = Arc<(Key, Chunk)>;

impl Disk {
    /// Items of this chunk may be removed from now on. It is as it was read, unless one was removed before, or it was spread. Does not wait
    /// for a group that is being written, which removes nothing of what is learned now.
    pub(crate) fn know(&self, known: Option<&Known>) {
        let mut learned = self.reads.learned.lock();
        let is_last = |known: &&Known| learned.last().is_some_and(|last| last.0 == known.0);
        let new = known.filter(|known| !is_last(known)).cloned();
        learned.extend(new);
    }

    /// Before a group is made: it knows what was learned.
    pub(super) fn learn(&self, chunks: &mut Chunks) {
        let learned = mem::take(&mut *self.reads.learned.lock());
        for known in learned {
            let (first, chunk) = &*known;
            let is_known = chunks.known.contains_key(first);
            if !is_known && (chunk.spread == self.spread() || self.is_chunk(*first)) {
                chunks.known.insert(*first, chunk.clone());
            }
        }
    }

    /// How many groups have spread chunks.
    pub(crate) fn spread(&self) -> u64 {
        // ORDERING: Acquire; pairs with `note_spread`: the rows of these groups are found.
        self.reads.spread.load(Ordering::Acquire)
    }

    /// A group is written.
    pub(super) fn note_spread(&self) {
        if mem::take(&mut self.reads.chunks.lock().have_spread) {
            // ORDERING: Release; pairs with `spread`.
            self.reads.spread.fetch_add(1, Ordering::Release);
        }
    }

    /// When an item of a chunk that the log knows is due, if there are rows of that. The item may be gone.
    pub(crate) fn known_due(&self, item: Key) -> Option<DueRow> {
        let mut chunks = self.reads.chunks.lock();
        chunks.of(item)?.1.due_of(item.id)
    }

    /// Whether the row under this key is a chunk. One that cannot be read is one: so nothing of it is lost.
    fn is_chunk(&self, first: Key) -> bool {
        let key = first.to_bytes();
        let row = guarded(|| Ok(self.tables[ITEMS].get(key)?));
        let is_chunk =
            |value: UserValue| matches!(ItemRow::read(&key, &value), Ok(ItemRow::Chunk(..)));
        row.map_or(true, |row| row.is_some_and(is_chunk))
    }
}

impl Chunks {
    /// The chunk of an item.
    pub(super) fn of(&mut self, key: Key) -> Option<(Key, &mut Chunk)> {
        let (first, chunk) = self.known.range_mut(..=key).next_back()?;
        let has = first.queue == key.queue && key.id < first.id + chunk.count();
        has.then_some((*first, chunk))
    }

    /// The row of the due time of this chunk is this one from now on.
    pub(super) fn set_due(&mut self, row: DueRow) {
        if let Some(chunk) = self.known.get_mut(&row.item) {
            chunk.due = Some(row);
        }
    }

    /// Whether the chunk of an item has it still; `None` if none is known.
    pub(super) fn has(&mut self, key: Key) -> Option<bool> {
        let (_, chunk) = self.of(key)?;
        Some(!chunk.is_gone(key.id))
    }

    /// Whether a chunk has one of the items from this one up to a number.
    pub(super) fn has_any(&self, from: Key, end: u64) -> bool {
        let chunks = self.known.range(..Key { id: end, ..from }).rev();
        let chunks = chunks.take_while(|(first, chunk)| {
            first.queue == from.queue && from.id < first.id + chunk.count()
        });
        chunks.into_iter().any(|(first, chunk)| {
            let ids = from.id.max(first.id)..end.min(first.id + chunk.count());
            !chunk.gone.contains_all(&ids)
        })
    }

    /// Whether these numbers are known to have no rows.
    pub(super) fn is_vacant(&self, queue: u32, ids: &Range<u64>) -> bool {
        let vacant = self.vacant.get(&(queue, level::of(ids.start)));
        vacant.is_some_and(|vacant| vacant.contains_all(ids))
    }

    /// No row is under these numbers of a level, from one on.
    pub(super) fn keep_vacant(&mut self, from: Key, vacant: Ranges) {
        if self.vacant.len() >= MOST_VACANT {
            self.vacant.clear();
        }
        let level = level::of(from.id);
        self.vacant.insert((from.queue, level), vacant);
    }

    /// Rows are written under these numbers.
    pub(super) fn occupy(&mut self, queue: u32, ids: &Range<u64>) {
        let level = (queue, level::of(ids.start));
        if let Some(vacant) = self.vacant.get_mut(&level) {
            vacant.remove(ids);
            if vacant.len() > MOST_GAPS {
                self.vacant.remove(&level);
            }
        }
    }

    /// The first number from here on that a chunk has, or the end.
    fn next(&self, from: Key, end: u64) -> u64 {
        let next = self.known.range(from..).next();
        let next = next.filter(|(first, _)| first.queue == from.queue);
        next.map_or(end, |(first, _)| first.id.min(end))
    }

    /// A chunk without items, which is none any more.
    fn take_empty(&mut self, first: Key) -> Option<Chunk> {
        let is_empty = self.known.get(&first).is_some_and(Chunk::is_empty);
        is_empty.then(|| self.known.remove(&first))?
    }

    /// They are no chunks any more.
    pub(super) fn forget(&mut self, queue: u32) {
        self.known.retain(|first, _| first.queue != queue);
        self.vacant.retain(|(other, _), _| *other != queue);
    }
}

impl Chunk {
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.count)
    }

    fn new(count: usize, due: Option<DueRow>, spread: u64) -> Self {
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            due,
            spread,
            gone: Ranges::default(),
            tombstones: Vec::new(),
        }
    }

    fn is_gone(&self, id: u64) -> bool {
        self.gone.contains(id)
    }

    pub(crate) fn due(&self) -> Option<DueRow> {
        self.due
    }

    /// When an item of it is due.
    pub(crate) fn due_of(&self, id: u64) -> Option<DueRow> {
        self.due.map(|due| due.of_one(id))
    }

    fn is_empty(&self) -> bool {
        self.gone.count() >= self.count()
    }
}

#[cfg(test)]
mod tests;
