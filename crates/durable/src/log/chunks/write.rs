//! How a group changes chunks.

use super::Chunk;
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::{
    seal, tombstone, tombstone_key, value_of, with_item, DueRow, Key, Layout, NewChunk, Ranges,
    ITEMS,
};
use crate::log::group::GroupWriter;
use std::mem;
use std::ops::Range;

impl GroupWriter<'_, '_> {
    /// Writes the row of a chunk, and that of its due time, and begins another one. Items in memory may be removed from it by the next group.
    pub(in crate::log) fn insert_chunk(&mut self, chunk: &mut NewChunk) {
        let (count, layout, due) = (chunk.len(), chunk.layout(), chunk.due());
        if let Some((first, value)) = chunk.take() {
            if count > 1 && layout == Layout::Hot {
                let state = Chunk::new(count, due, self.disk.spread());
                self.chunks.known.insert(first, state);
            }
            self.rows.insert(ITEMS, first.to_bytes(), value);
            if let Some(due) = due {
                self.write_due(due);
            }
        }
    }

    /// Removes the items of a run: [notes](Self::retire) that they are gone, or removes their rows.
    pub(in crate::log) fn remove_rows(&mut self, run: Run) -> Result<(), StoreError> {
        let (queue, mut ids) = (run.queue, run.first..run.end());
        while let Some(id) = ids.next() {
            let key = Key { queue, id };
            let Some((first, chunk)) = self.chunks.of(key) else {
                let end = self.chunks.next(key, ids.end);
                ids.start = end.max(ids.start);
                if !self.retire(queue, id..ids.start) {
                    let ids = id..ids.start;
                    self.remove_due_of(queue, ids.clone())?;
                    ids.for_each(|id| self.rows.remove(ITEMS, Key { queue, id }.to_bytes()));
                }
                continue;
            };
            let end = ids.end.min(first.id + chunk.count());
            chunk.gone.add(id..end);
            self.removed_of.entry(first).or_default().add(id..end);
            ids.start = end;
        }
        Ok(())
    }

    /// Writes what was removed from chunks: that it is gone, or tombstones, or removes the chunks.
    pub(in crate::log) fn write_removed(&mut self) {
        for (first, removed) in mem::take(&mut self.removed_of) {
            let queue = first.queue;
            let Some(chunk) = self.chunks.take_empty(first) else {
                self.write_tombstones(first, &removed);
                continue;
            };
            if !self.retire(queue, first.id..first.id + chunk.count()) {
                self.rows.remove(ITEMS, first.to_bytes());
                self.remove_due(chunk.due);
                self.remove_tombstones(queue, &chunk.tombstones);
            }
        }
    }

    /// Each run has one of its own, which never grows: so if damage is accepted, it is that of a commit which can be read.
    fn write_tombstones(&mut self, first: Key, removed: &Ranges) {
        for ids in removed.iter() {
            if self.retire(first.queue, ids.clone()) {
                continue;
            }
            if let Some(chunk) = self.chunks.known.get_mut(&first) {
                chunk.tombstones.push(ids.clone());
            }
            let (key, value) = tombstone(first.queue, ids);
            self.rows.insert(ITEMS, key, value);
        }
    }

    fn remove_tombstones(&mut self, queue: u32, tombstones: &[Range<u64>]) {
        for ids in tombstones {
            self.rows.remove(ITEMS, tombstone_key(queue, ids));
        }
    }

    /// Gives an item a row of its own, with the value that replaces its own, if there is one.
    pub(in crate::log) fn insert_alone(&mut self, at: Key, content: &[u8]) {
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
        let items = self.disk.items_of_group(first, first.id..=u64::MAX)?;
        let has_due = self.has_due(first.queue, first.id);
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
                let due = DueRow::of(item.at, 1, &item.content);
                if let Some(due) = due.filter(|_| has_due) {
                    self.write_due(due);
                }
            }
            spread = Some(chunk);
        }
        self.chunks.known.remove(&first);
        self.chunks.have_spread = true;
        self.removed_of.remove(&first);
        if let Some(chunk) = spread {
            self.remove_tombstones(first.queue, &chunk.1.tombstones);
            if !is_first_there {
                self.rows.remove(ITEMS, first.to_bytes());
                self.remove_due(chunk.1.due);
            }
        }
        Ok(())
    }
}
