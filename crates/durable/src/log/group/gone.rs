//! Items that are gone without a change of their rows: another row has the ranges of their numbers.
//!
//! So of a queue that is consumed in the order of its rows nothing else is written to the table of the items but what is pushed, and
//! tables of such items are dropped as a whole.

use super::{earliest, GroupWriter, PushState};
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::level;
use crate::format::{encode_row, gone_key, is_key, ItemRow, Key, OrderTag, Ranges, ITEMS};
use crate::log::tables::rows;
use std::mem;
use std::ops::Range;

/// The most ranges of a queue, unless others split them: they are written with each group.
const MOST: usize = if cfg!(test) { 4 } else { 32 };
/// The longest gap between two ranges that is searched for rows.
const LONGEST_GAP: u64 = 1 << 16;
/// How many rows a search reads: what it finds out about the gaps between them is kept.
const SEARCHED: usize = if cfg!(test) { 3 } else { 64 };

fn has_room(gone: &Ranges, ids: &Range<u64>) -> bool {
    gone.len() < MOST || gone.touches(ids)
}

impl GroupWriter<'_, '_> {
    /// The items of a queue that are gone, to be changed.
    pub(super) fn gone(&mut self, queue: u32) -> &mut Ranges {
        let known = || self.disk.tables.gone.known(queue).unwrap_or_default();
        let staged = self.gone.entry(queue);
        staged.or_insert_with(|| known().as_ref().clone())
    }

    /// Notes that items are gone, if the queue has such ranges, and room for these. Their rows may stay as they are then. Gaps beside them
    /// that have no items are joined.
    pub(in crate::log) fn retire(&mut self, queue: u32, ids: Range<u64>) -> bool {
        let order = self.catalog.queues.get(queue).map(|row| row.order);
        // Level 0 of others is not consumed in the order of the numbers.
        let is_ordered = level::of(ids.start) > 0 || order == Some(OrderTag::Fifo);
        if !is_ordered || !self.disk.tables.gone.may_grow(queue) {
            return false;
        }
        let known = self.disk.tables.gone.known(queue).unwrap_or_default();
        let (before, after) = self.gone.get(&queue).unwrap_or(&known).around(&ids);
        let (mut start, mut end) = (ids.start, ids.end);
        if let Some(before) = before.filter(|before| self.is_vacant(queue, *before..ids.start)) {
            start = before;
        }
        if let Some(after) = after.filter(|after| self.is_vacant(queue, ids.end..*after)) {
            end = after;
        }
        let gone = self.gone.get(&queue).unwrap_or(&known);
        if !has_room(gone, &(start..end)) {
            return false;
        }
        let known = gone.within(ids.clone()).map(|ids| ids.end - ids.start);
        let new = ids.end - ids.start - known.sum::<u64>();
        self.gone(queue).add(start..end);
        self.catalog.retired += new;
        true
    }

    /// No item is left with these numbers.
    pub(super) fn note_gone(&mut self, queue: u32, ids: Range<u64>) {
        if has_room(self.gone(queue), &ids) {
            self.gone(queue).add(ids);
        }
    }

    /// Whether there is no item between two ranges. A push that has its number already, and is committed later, [comes back](Self::revive).
    fn is_vacant(&mut self, queue: u32, gap: Range<u64>) -> bool {
        let at = |id| Key { queue, id };
        if gap.end - gap.start > LONGEST_GAP || self.chunks.has_any(at(gap.start), gap.end) {
            return false;
        }
        // Of a known chunk that begins before, none is left there.
        let chunk = self.chunks.of(at(gap.start));
        let chunk_end = chunk.map(|(first, chunk)| first.id + chunk.count());
        let left = chunk_end.map_or(gap.start, |end| end.max(gap.start))..gap.end;
        if left.is_empty() || self.chunks.is_vacant(queue, &left) {
            return true;
        }
        // What cannot be read may be there.
        let vacant = self.search(at(left.start), chunk_end.is_some());
        let vacant = vacant.unwrap_or_default();
        let is_vacant = vacant.contains_all(&left);
        self.chunks.keep_vacant(at(left.start), vacant);
        is_vacant
    }

    /// The numbers without items from here on, as far as a few rows say.
    fn search(&self, from: Key, begins_behind_chunk: bool) -> Result<Ranges, StoreError> {
        let (mut vacant, mut next) = (Ranges::default(), from.id);
        if !begins_behind_chunk && self.is_within_chunk(from)? {
            return Ok(vacant);
        }
        let last = (from.id + LONGEST_GAP).min(level::last(level::of(from.id)));
        let keys = from.to_bytes()..=Key { id: last, ..from }.to_bytes();
        let mut rows = rows(&self.disk.tables[ITEMS], keys)?;
        for row in rows.by_ref().take(SEARCHED) {
            let (key, value) = row?;
            if is_key(&key) {
                let ids = ItemRow::read(&key, &value)?.ids();
                if next < ids.start {
                    vacant.add(next..ids.start);
                }
                next = next.max(ids.end);
            }
        }
        if next <= last && rows.next().is_none() {
            vacant.add(next..last + 1);
        }
        Ok(vacant)
    }

    /// Whether the row before an item is a chunk that has, or had, that one too.
    fn is_within_chunk(&self, at: Key) -> Result<bool, StoreError> {
        let id = earliest(at.id);
        let before = Key { id, ..at }.to_bytes()..at.to_bytes();
        for row in rows(&self.disk.tables[ITEMS], before)?.rev() {
            let (key, value) = row?;
            if is_key(&key) {
                return Ok(ItemRow::read(&key, &value)?.ids().end > at.id);
            }
        }
        Ok(false)
    }

    /// The items of these runs are there now. Numbers of some may be in a range, if those beside them were removed before this commit.
    pub(super) fn revive(&mut self, pushes: &[Run]) -> Result<(), StoreError> {
        for run in pushes {
            let (queue, ids) = (run.queue, run.first..run.end());
            self.chunks.occupy(queue, &ids);
            let known = self.disk.tables.gone(queue)?;
            let gone = self.gone.get(&queue).unwrap_or(&known);
            let ids: Vec<_> = gone.within(ids).flatten().collect();
            for id in ids {
                if self.pushed.get(id) == PushState::Pushed {
                    let ids = id..id + 1;
                    self.gone(queue).remove(&ids);
                    self.disk.tables.gone.take_out(queue, &ids);
                }
            }
        }
        Ok(())
    }

    pub(super) fn write_gone(&mut self) {
        for (queue, gone) in mem::take(&mut self.gone) {
            let key = gone_key(queue);
            self.rows.insert(ITEMS, key, encode_row(&key, &gone));
            self.disk.tables.gone.put(queue, gone);
        }
    }

    /// Before the rows of a queue are removed. Of those that a merge has left out there are no tombstones, and a crash may bring them back,
    /// from a journal: so if the queue has a row of what is gone, all is gone for good.
    pub(super) fn remove_gone(&mut self, queue: u32) -> Result<(), StoreError> {
        let known = self.disk.tables.gone(queue)?;
        if known.len() + self.gone.get(&queue).map_or(0, Ranges::len) > 0 {
            self.gone(queue).add(0..u64::MAX);
        }
        Ok(())
    }
}
