//! What a group of commits changes in the tables.

mod due;
mod gone;

use super::catalog::Catalog;
use super::chunks::{earliest, Chunks, Item};
use super::disk::Disk;
use super::keys::Keys;
use super::pushed::{PushState, Pushed};
use super::tables::{visit, RowBatch};
use crate::batch::{Batch, Change, Run};
use crate::error::StoreError;
use crate::format::level::Level;
use crate::format::{
    due_rows, encode_row, key_rows, queue_digest, row_digest, with_item, Counts, Digest, DueRow,
    IndexRows, Key, LetterRow, Mark, NewChunk, Ranges, CHECKSUM, ITEMS, LETTERS, MARKS, QUEUES,
    STORE, STORE_ROW,
};
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

/// What a group changes, as one batch of the storage engine.
pub(super) fn rows<'d>(
    disk: &'d Disk,
    catalog: &mut Catalog,
    batch: &mut Batch,
    number: u64,
) -> Result<RowBatch<'d>, StoreError> {
    let mut chunks = disk.reads.chunks.lock();
    disk.learn(&mut chunks);
    let mut group = GroupWriter {
        disk,
        catalog,
        chunks,
        keys: disk.keys.lock(),
        unkeyed: HashSet::new(),
        removed_of: BTreeMap::new(),
        gone: BTreeMap::new(),
        rows: RowBatch::new(&disk.tables),
        pushed: Pushed::of(&batch.pushes, batch.lengths.len()),
        removed: HashSet::new(),
        replaced: HashMap::new(),
        changed: Vec::new(),
    };
    group.items(batch)?;
    group.write_keys(&batch.keys);
    group.rest(batch)?;
    group.write_removed();
    group.revive(&batch.pushes)?;
    group.write_gone();
    group.counts(number);
    Ok(group.rows)
}

/// A group that is being written.
pub(super) struct GroupWriter<'d, 'c> {
    pub(super) disk: &'d Disk,
    pub(super) catalog: &'c mut Catalog,
    pub(super) chunks: MutexGuard<'d, Chunks>,
    pub(super) keys: MutexGuard<'d, Keys>,
    /// The rows of unique keys that it removes: of a queue, by their hashes.
    pub(super) unkeyed: HashSet<(u32, u128)>,
    /// What it removes from chunks, by their first items.
    pub(super) removed_of: BTreeMap<Key, Ranges>,
    /// Of the queues in which it changes that: which items are gone.
    gone: BTreeMap<u32, Ranges>,
    pub(super) rows: RowBatch<'d>,
    pub(super) pushed: Pushed,
    /// The removed items that it did not push, if it has changes that depend on them.
    removed: HashSet<u64>,
    /// The values that items get.
    pub(super) replaced: HashMap<Key, Vec<u8>>,
    changed: Vec<(u32, QueueChange)>,
}

/// How the row of a queue changes.
#[derive(Default)]
pub(super) struct QueueChange {
    counts: Counts,
    closed: Option<bool>,
    has_keys: Option<bool>,
    /// The items that have rows of their due times.
    pub(super) due: Digest,
}

impl GroupWriter<'_, '_> {
    /// Pushes and removals. An item that the group pushes and removes is not written: the storage engine keeps no order
    /// within a batch.
    fn items(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let depends = !batch.others.is_empty();
        // By runs: a quarter of the instructions of batches that are pushed and popped.
        for run in &batch.removes {
            if !self.pushed.cancel(*run) {
                self.remove(*run, depends)?;
            }
        }
        for change in &mut batch.others {
            if let Change::Bury(key, letter) = change {
                let id = letter.item;
                self.remove(Run::of(Key { id, ..*key }, 1), depends)?;
            } else if let Change::Replaced(key, value) = change {
                self.replaced.insert(*key, mem::take(value));
            } else if let Change::Unkey(queue, hashes) = change {
                let hashes = mem::take(hashes).into_iter();
                self.unkeyed.extend(hashes.map(|hash| (*queue, hash)));
            }
        }
        let (mut values, mut lengths) = (&mut batch.values[..], &batch.lengths[..]);
        let mut chunk = NewChunk::default();
        for run in &batch.pushes {
            let of_run = lengths.split_off(..run.len()).unwrap_or_default();
            let bytes = of_run.iter().map(|length| *length as usize).sum::<usize>();
            let of_run = (of_run, values.split_off_mut(..bytes).unwrap_or_default());
            if !self.pushed.is_cancelled(*run) {
                self.insert_run(*run, of_run, &mut chunk);
            }
        }
        self.insert_chunk(&mut chunk);
        self.replace()
    }

    /// Items of a run, unless they are cancelled, with the lengths of their values and these; and what replaces some. They may be
    /// the next ones of a chunk.
    fn insert_run(
        &mut self,
        run: Run,
        (lengths, mut values): (&[u32], &mut [u8]),
        chunk: &mut NewChunk,
    ) {
        let has_due = self.has_due(run.queue, run.first);
        for (key, length) in run.keys().zip(lengths) {
            let (value, rest) = values.split_at_mut(*length as usize);
            values = rest;
            if self.pushed.get(key.id) == PushState::Pushed {
                let other = self.replaced.remove(&key);
                let mut other = other.and_then(|other| with_item(value, &other));
                let value = other.as_deref_mut().unwrap_or(value);
                let change = self.change_of(key.queue);
                change.counts.items.add(key.digest());
                let mut due = None;
                if has_due {
                    change.due.add(key.digest());
                    due = DueRow::of(key, 1, &value[CHECKSUM..]);
                }
                if !chunk.add(key, run.layout, due, value) {
                    self.insert_chunk(chunk);
                    chunk.add(key, run.layout, due, value);
                }
            }
        }
    }

    /// Items of earlier groups get other values, unless they are gone. Their chunks are spread.
    fn replace(&mut self) -> Result<(), StoreError> {
        let chunk_of = |key: &Key| self.chunks.of(*key).map(|(first, _)| first);
        let chunks: HashSet<_> = self.replaced.keys().filter_map(chunk_of).collect();
        chunks
            .into_iter()
            .try_for_each(|first| self.spread(first))?;
        for key in self.replaced.keys().copied().collect::<Vec<_>>() {
            let item = self.disk.item_of_group(key)?;
            let is_there = |item: &Item| item.chunk.is_none() && !self.is_gone(key.id);
            if let Some(item) = item.filter(is_there) {
                self.insert_alone(key, &item.content);
            }
        }
        self.replaced.clear();
        Ok(())
    }

    /// Removes the items of a run: cancels those that the group pushes.
    fn remove(&mut self, run: Run, depends: bool) -> Result<(), StoreError> {
        let (mut written, has_due) = (Vec::new(), self.has_due(run.queue, run.first));
        for key in run.keys() {
            if self.pushed.get(key.id) == PushState::Pushed {
                self.pushed.set(key.id, PushState::Cancelled);
                continue;
            }
            Run::add(&mut written, key, 1);
            self.catalog.removed += 1;
            let change = self.change_of(key.queue);
            change.counts.items.remove(key.digest());
            if has_due {
                change.due.remove(key.digest());
            }
            if depends {
                self.removed.insert(key.id);
            }
            self.remove_key(key);
            if !self.catalog.marks.is_empty() {
                self.remove_mark(key);
            }
        }
        written
            .into_iter()
            .try_for_each(|run| self.remove_rows(run))
    }

    fn remove_mark(&mut self, key: Key) {
        if let Some((_, digest)) = self.catalog.marks.remove(&key) {
            self.rows.remove(MARKS, key.to_bytes());
            self.change_of(key.queue).counts.marks.remove(digest);
        }
    }

    pub(super) fn is_gone(&self, id: u64) -> bool {
        self.removed.contains(&id) || self.pushed.get(id) == PushState::Cancelled
    }

    /// Whether the group pushes the item, or a row has it. The group may remove it.
    fn is_there(&mut self, key: Key) -> Result<bool, StoreError> {
        if self.pushed.get(key.id) == PushState::Pushed {
            return Ok(true);
        }
        match self.chunks.has(key) {
            Some(has) => Ok(has),
            None => Ok(self.disk.item_of_group(key)?.is_some()),
        }
    }

    /// The changes that are not of items alone.
    fn rest(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let (mut marks, mut letters) = (HashMap::new(), HashMap::new());
        for change in batch.others.drain(..) {
            match change {
                Change::Delivered(key, attempts) => self.mark(&mut marks, key, |mark| {
                    (mark.attempts, mark.delayed) = (attempts, None);
                }),
                Change::Undelivered(key, attempts) => self.mark(&mut marks, key, |mark| {
                    // Unless it was delivered again: then this one counts too.
                    mark.attempts -= u32::from(mark.attempts == attempts && attempts > 0);
                }),
                Change::Delayed(key, attempts, due) => self.mark(&mut marks, key, |mark| {
                    (mark.attempts, mark.delayed) = (attempts, Some(due));
                }),
                Change::Failed(key, attempts, error) => self.mark(&mut marks, key, |mark| {
                    mark.attempts = attempts;
                    mark.more.get_or_insert_default().error = Some(error);
                }),
                // The item may have been popped since its schedule was changed in memory.
                Change::Rescheduled(key, schedule) if self.is_there(key)? => {
                    self.mark(&mut marks, key, |mark| mark.schedule = Some(schedule));
                }
                Change::Rescheduled(..) | Change::Replaced(..) | Change::Unkey(..) => (), // the last two: with the items
                Change::Spread(first) => self.spread(first)?,
                Change::Bury(key, letter) => drop(letters.insert(key, Some(letter))),
                Change::Recent(key, until, hash) => self.mark(&mut marks, key, |mark| {
                    mark.more.get_or_insert_default().recent = Some((until, hash));
                }),
                Change::Unmark(key) => {
                    marks.remove(&key);
                    self.remove_mark(key);
                }
                // One that the group wrote is not written after all.
                Change::Unbury(key) if letters.remove(&key).is_some() => {}
                Change::Unbury(key) => drop(letters.insert(key, None)),
                Change::Close(queue, closed) => self.change_of(queue).closed = Some(closed),
                Change::Gone(queue, ids) => self.note_gone(queue, ids),
                Change::HasKeys(queue, it) => self.change_of(queue).has_keys = Some(it),
                Change::Due(change) => self.change_due(&change),
                Change::Remove(queue) => self.remove_queue(queue)?,
            }
        }
        let marks = marks.into_iter();
        marks.for_each(|(key, mark)| self.write_mark(key, mark));
        let letters = letters.into_iter();
        letters.for_each(|(key, letter)| self.write_letter(key, letter));
        Ok(())
    }

    fn write_letter(&mut self, key: Key, letter: Option<LetterRow>) {
        let bytes = key.to_bytes();
        let letters = &mut self.change_of(key.queue).counts.letters;
        if let Some(letter) = letter {
            letters.add(key.digest());
            let row = encode_row(&bytes, &letter);
            self.rows.insert(LETTERS, bytes, row);
        } else {
            letters.remove(key.digest());
            self.rows.remove(LETTERS, bytes);
        }
    }

    /// Nothing else in the group is of this queue.
    fn remove_queue(&mut self, queue: u32) -> Result<(), StoreError> {
        self.remove_gone(queue)?;
        let key = |id| Key { queue, id }.to_bytes();
        for table in [ITEMS, MARKS, LETTERS] {
            self.remove_all(table, key(0)..=key(u64::MAX))?;
        }
        self.remove_all(MARKS, key_rows(queue))?;
        self.remove_all(MARKS, due_rows(queue, 0..=Level::MAX, (0, 0)))?;
        self.keys.forget(queue);
        self.rows.remove(QUEUES, queue.to_be_bytes());
        if let Some(digest) = self.catalog.written.remove(&queue) {
            self.catalog.store.queues.remove(digest);
        }
        self.catalog.queues.remove(queue);
        self.chunks.forget(queue);
        self.catalog.marks.retain(|key, _| key.queue != queue);
        Ok(())
    }

    fn remove_all<K: AsRef<[u8]>>(
        &mut self,
        table: usize,
        keys: RangeInclusive<K>,
    ) -> Result<(), StoreError> {
        visit(&self.disk.tables[table], keys, |key, _| {
            self.rows.remove(table, key);
            Ok(())
        })
    }

    /// Changes the mark of an item that is still there.
    fn mark(&self, marks: &mut HashMap<Key, Mark>, key: Key, change: impl FnOnce(&mut Mark)) {
        if self.is_gone(key.id) {
            return;
        }
        let known = || {
            self.catalog
                .marks
                .get(&key)
                .map_or_else(Mark::default, |known| known.0.clone())
        };
        change(marks.entry(key).or_insert_with(known));
    }

    fn write_mark(&mut self, key: Key, mark: Mark) {
        let bytes = key.to_bytes();
        let value = encode_row(&bytes, &mark);
        let digest = row_digest(key, &value);
        let before = self.catalog.marks.insert(key, (mark, digest));
        let marks = &mut self.change_of(key.queue).counts.marks;
        if let Some((_, before)) = before {
            marks.remove(before);
        }
        marks.add(digest);
        self.rows.insert(MARKS, bytes, value);
    }

    /// How the row of a queue changes: groups change few queues.
    pub(super) fn change_of(&mut self, queue: u32) -> &mut QueueChange {
        let known = self.changed.iter().position(|(known, _)| *known == queue);
        let index = known.unwrap_or_else(|| {
            self.changed.push((queue, QueueChange::default()));
            self.changed.len() - 1
        });
        &mut self.changed[index].1
    }

    /// Writes the counts.
    fn counts(&mut self, number: u64) {
        for (queue, change) in self.changed.drain(..) {
            let row = self.catalog.queues.change(queue, |row| {
                row.counts.merge(change.counts);
                row.closed = change.closed.unwrap_or(row.closed);
                let IndexRows { has_keys, due } = &mut row.index;
                *has_keys = change.has_keys.unwrap_or(*has_keys);
                if let Some(due) = due {
                    due.merge(change.due);
                }
            });
            let row = row.expect("the row of a queue is there before its first change");
            let key = queue.to_be_bytes();
            let row = encode_row(&key, row);
            let (queues, digest) = (&mut self.catalog.store.queues, queue_digest(queue, &row));
            if let Some(before) = self.catalog.written.insert(queue, digest) {
                queues.remove(before);
            }
            queues.add(digest);
            self.rows.insert(QUEUES, key, row);
        }
        self.catalog.store.group = number;
        // Relaxed: an item's number is in its batch, so it was taken before the group was.
        self.catalog.store.next_id = self.disk.next_id.load(Ordering::Relaxed);
        let row = encode_row(STORE_ROW, &self.catalog.store);
        self.rows.insert(STORE, STORE_ROW, row);
    }
}

#[cfg(test)]
mod tests;
