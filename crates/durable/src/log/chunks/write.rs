//! How a group changes chunks.

use super::Chunk;
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::{seal, tombstone, tombstone_key, value_of, with_item, Key, NewChunk, ITEMS};
use crate::log::group::GroupWriter;
use std::mem;
use std::ops::Range;

impl GroupWriter<'_, '_> {
    /// Writes the row of a chunk, and begins another one.
    pub(in crate::log) fn insert_chunk(&mut self, chunk: &mut NewChunk) {
        if let Some((first, value)) = chunk.take() {
            self.rows.insert(ITEMS, first.to_bytes(), value);
        }
    }

    /// Removes the items of a run from their rows.
    pub(in crate::log) fn remove_rows(&mut self, run: Run) {
        let (queue, mut ids) = (run.queue, run.first..run.end());
        while let Some(id) = ids.next() {
            let key = Key { queue, id };
            let Some((first, chunk)) = self.chunks.of(key) else {
                let end = self.chunks.next(key, ids.end);
                ids.start = end.max(ids.start);
                for id in id..ids.start {
                    self.rows.remove(ITEMS, Key { queue, id }.to_bytes());
                }
                continue;
            };
            let end = ids.end.min(first.id + u64::from(chunk.count));
            let before = self.tombstones.entry(first);
            before.or_insert_with(|| chunk.gone.clone());
            chunk.remove(id..end);
            ids.start = end;
        }
    }

    /// Writes the tombstones of chunks from which items were removed, or removes the chunks.
    pub(in crate::log) fn write_tombstones(&mut self) {
        for (first, before) in mem::take(&mut self.tombstones) {
            let queue = first.queue;
            let Some(Chunk { gone, .. }) = self.chunks.0.get(&first).filter(|it| !it.is_empty())
            else {
                self.chunks.0.remove(&first);
                self.rows.remove(ITEMS, first.to_bytes());
                self.remove_tombstones(queue, before.iter());
                continue;
            };
            let new = gone.iter().filter(|ids| !before.contains(ids));
            for ids in new {
                let (key, value) = tombstone(queue, ids);
                self.rows.insert(ITEMS, key, value);
            }
            let ends: Vec<u64> = gone.iter().map(|ids| ids.end).collect();
            let joined = before.iter().filter(|ids| !ends.contains(&ids.end));
            self.remove_tombstones(queue, joined);
        }
    }

    fn remove_tombstones<'r>(
        &mut self,
        queue: u32,
        tombstones: impl Iterator<Item = &'r Range<u64>>,
    ) {
        for ids in tombstones {
            self.rows.remove(ITEMS, tombstone_key(queue, ids));
        }
    }

    /// Gives an item a row of its own, with the value that replaces its own, if there is one.
    fn insert_alone(&mut self, at: Key, content: &[u8]) {
        let key = at.to_bytes();
        let mut value = value_of(&key, content);
        let other = self.replaced.remove(&at);
        if let Some(other) = other.and_then(|other| with_item(&value, &other)) {
            value = other;
            seal(&key, &mut value);
        }
        self.rows.insert(ITEMS, key, value);
    }

    /// Gives each item of a chunk a row, except those that the group has removed.
    pub(in crate::log) fn spread(&mut self, first: Key) -> Result<(), StoreError> {
        let items = self.disk.items(first, first.id..=u64::MAX)?;
        let mut is_first_there = false;
        let mut spread = None;
        for item in items {
            let item = item?;
            let Some(chunk) = item.chunk.filter(|chunk| chunk.0 == first) else {
                break;
            };
            if !self.is_gone(item.at.id) {
                is_first_there |= item.at == first;
                self.insert_alone(item.at, &item.content);
            }
            spread = Some(chunk);
        }
        self.chunks.0.remove(&first);
        self.tombstones.remove(&first);
        if let Some(chunk) = spread {
            self.remove_tombstones(first.queue, chunk.1.gone.iter());
            if !is_first_there {
                self.rows.remove(ITEMS, first.to_bytes());
            }
        }
        Ok(())
    }
}
