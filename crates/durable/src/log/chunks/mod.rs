//! Rows that have several items: which of them are partly gone.
//!
//! A tombstone removes an item of a chunk. With the last item, the chunk and its tombstones are removed. So a group needs the state of
//! the chunk: code that reads an item, which a transaction may remove later, calls [`Disk::know`] first. From then on groups
//! keep the state up to date, until the chunk is gone.

mod items;
mod write;

pub(crate) use items::{earliest, Content, Item, Items};

use super::Disk;
use crate::format::Key;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The chunks with items that may be removed, by their first ones.
#[derive(Default)]
pub(crate) struct Chunks(BTreeMap<Key, Chunk>);

/// A row of several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// How many it was written with.
    count: u32,
    /// The numbers of those that are gone: runs in their order, with others between.
    gone: Vec<Range<u64>>,
}

/// A chunk as it was read, and its first item.
pub(crate) type Known = Arc<(Key, Chunk)>;

impl Disk {
    /// Items of this chunk may be removed from now on. It is as it was read, unless one was removed before.
    pub(crate) fn know(&self, known: &Known) {
        let (first, chunk) = &**known;
        let mut chunks = self.chunks.lock();
        chunks.0.entry(*first).or_insert_with(|| chunk.clone());
    }
}

impl Chunks {
    /// The chunk of an item.
    pub(super) fn of(&mut self, key: Key) -> Option<(Key, &mut Chunk)> {
        let (first, chunk) = self.0.range_mut(..=key).next_back()?;
        let has = first.queue == key.queue && key.id < first.id + u64::from(chunk.count);
        has.then_some((*first, chunk))
    }

    /// Whether the chunk of an item has it still; `None` if none is known.
    pub(super) fn has(&mut self, key: Key) -> Option<bool> {
        let (_, chunk) = self.of(key)?;
        Some(!chunk.is_gone(key.id))
    }

    /// The first number from here on that a chunk has, or the end.
    fn next(&self, from: Key, end: u64) -> u64 {
        let next = self.0.range(from..).next();
        let next = next.filter(|(first, _)| first.queue == from.queue);
        next.map_or(end, |(first, _)| first.id.min(end))
    }

    /// They are no chunks any more.
    pub(super) fn forget(&mut self, queue: u32) {
        self.0.retain(|first, _| first.queue != queue);
    }
}

impl Chunk {
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.count)
    }

    fn new(count: usize) -> Self {
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            gone: Vec::new(),
        }
    }

    fn is_gone(&self, id: u64) -> bool {
        let after = self.gone.partition_point(|gone| gone.end <= id);
        self.gone.get(after).is_some_and(|gone| gone.contains(&id))
    }

    fn is_empty(&self) -> bool {
        let gone = self.gone.iter().map(|gone| gone.end - gone.start);
        gone.sum::<u64>() >= u64::from(self.count)
    }

    /// These are gone too.
    fn remove(&mut self, ids: Range<u64>) {
        let first = self.gone.partition_point(|gone| gone.end < ids.start);
        let after = self.gone.partition_point(|gone| gone.start <= ids.end);
        let known = &self.gone[first..after];
        let start = known.first().map_or(ids.start, |gone| gone.start);
        let end = known.last().map_or(ids.end, |gone| gone.end);
        let joined = start.min(ids.start)..end.max(ids.end);
        self.gone.splice(first..after, [joined]);
    }
}

#[cfg(test)]
mod tests;
