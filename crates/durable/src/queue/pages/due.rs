//! Items with due times that are on the disk only: they are read when they are due.

use super::fill::{other_rows, Page};
use super::{Index, Pages, NOT_PLANNED};
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::DueRow;
use crate::log::chunks::{Item, Items, Rows};
use crate::order::Engine;
use std::iter::Peekable;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// How many items of a priority that are due, and on the disk only, are counted by a call.
const MOST_COUNTED: usize = 1_000;

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// Has what is due next read in time, also if nobody looks for it but waiting pops.
    pub(super) fn plan(&self, index: &Index) {
        // ORDERING: Relaxed; it changes under the lock.
        let reads = self.is_cold.load(Ordering::Relaxed) && index.failed.is_none();
        let next = index.scheduled.next().filter(|_| reads);
        let next = next.unwrap_or(NOT_PLANNED);
        // ORDERING: Relaxed; it changes under the lock, except that it is reset: then the next thread that fills plans anew.
        if self.planned.swap(next, Ordering::Relaxed) == next {
            return;
        }
        if next == NOT_PLANNED {
            return;
        }
        if let (Some(at), Some(pages)) = (self.shared.times.instant(next), self.shared.pages.get())
        {
            let pages = Weak::clone(pages);
            let call = move || pages.upgrade().iter().for_each(|pages| pages.remind());
            self.ram.call_at(at, Arc::new(call));
        }
    }

    /// Forgets those of the items that came into memory before their times that are gone.
    pub(super) fn forget_gone(&self, index: &mut Index) -> Result<(), StoreError> {
        let shared = &self.shared;
        let is_there = |id| Ok(shared.log().disk().item(shared.key(id))?.is_some());
        index
            .scheduled
            .forget_gone(is_there, || shared.log().settle())
    }

    /// Reads scheduled items that are not due, as many as there is room for beside others.
    pub(super) fn read_early(
        &self,
        index: &mut Index,
        page: &mut Page<T, O>,
    ) -> Result<(), StoreError> {
        self.settle(index)?;
        let shared = &self.shared;
        let (disk, beside) = (shared.log().disk(), shared.besides.bytes());
        let (mut bytes, mut items) = (self.budget.most() / 2, DueItems::new(self));
        for row in disk.due_rows(shared.id, 0..=Level::MAX, (0, 0))? {
            let row = row?;
            for item in items.read(index, row)? {
                if !index.has_next(item.at.id, Some(row.of_one(item.at.id))) {
                    continue;
                }
                bytes += item.content.len() + beside;
                if !self.budget.has_room(bytes) {
                    index.not_early = index.scheduled.digest;
                    return self.forget_gone(index);
                }
                index.scheduled.bring(item.at.id);
                items.take(index, row, &item, page)?;
            }
        }
        self.check_left(index.scheduled.digest)
    }

    /// When the next item on the disk only is due that is not due by now.
    pub(in crate::queue) fn next_scheduled(&self) -> Option<Instant> {
        let mut state = self.state();
        let (shared, index) = (&self.shared, &mut state.index);
        if index.count_scheduled() == 0 {
            return None;
        }
        self.settle(index).ok()?;
        let from = (shared.times.wall_time() + 1, 0);
        let next = |level| {
            let rows = shared.log().disk().due_rows(shared.id, level..=level, from);
            let mut rows = rows.ok()?.map_while(Result::ok);
            let mut items = DueItems::new(self);
            let next = rows.find(|row| items.count(index, *row).is_ok_and(|count| count > 0))?;
            Some(next.due)
        };
        let next = index.scheduled.levels().filter_map(next).min()?;
        shared.times.instant(next)
    }

    /// Reads what is due by now in a level. The log is settled only if these rows may be there: that waits for the sync of a group.
    pub(super) fn read_scheduled(
        &self,
        index: &mut Index,
        level: Level,
        page: &mut Page<T, O>,
    ) -> Result<(), StoreError> {
        let now = self.shared.times.wall_time();
        let mut items = DueItems::new(self);
        if let Some(unwritten) = index.scheduled.unwritten.filter(|due| *due <= now) {
            if let Read::Page = items.read_page(index, level, page, unwritten)? {
                return Ok(());
            }
            self.settle(index)?;
            items = DueItems::new(self);
        }
        if let Read::Next(next) = items.read_page(index, level, page, now.saturating_add(1))? {
            let first = next.into_iter().chain(index.scheduled.unwritten).min();
            index.end_scheduled(level, first);
        }
        Ok(())
    }

    /// How many items are due, and were not read.
    pub(super) fn count_due(&self, index: &mut Index) -> Result<usize, StoreError> {
        let (shared, now) = (&self.shared, self.shared.times.wall_time());
        index.ripen(now);
        let (mut count, mut are_all) = (0, index.scheduled.next().is_none());
        for level in index.scheduled.due().collect::<Vec<_>>() {
            self.settle(index)?;
            let start = index.scheduled.start(level);
            let disk = shared.log().disk();
            let mut rows = disk.due_rows(shared.id, level..=level, start)?;
            let (most, mut items) = (count + MOST_COUNTED, DueItems::new(self));
            for row in rows.by_ref().take(MOST_COUNTED) {
                let row = row?;
                if row.due > now {
                    are_all = false;
                    break;
                }
                count += items.count(index, row)?;
                if count >= most {
                    break;
                }
            }
            let last = rows.next_back().transpose()?;
            are_all &= last.is_none_or(|row| row.due <= now);
        }
        Ok(if are_all {
            index.count_scheduled()
        } else {
            count
        })
    }
}

/// What was read.
enum Read {
    /// As much as a page has.
    Page,
    /// All; the next row has this due time.
    Next(Option<u64>),
}

/// Reads the items of rows of due times, in the order of these rows.
struct DueItems<'p, T: Send + 'static, O: Engine<T>> {
    pages: &'p Pages<T, O>,
    /// What follows the items that were read last, if several rows were read that follow each other.
    items: Option<Peekable<Items<Rows>>>,
    end: u64,
}

impl<'p, T: Send + 'static, O: Engine<T>> DueItems<'p, T, O> {
    fn new(pages: &'p Pages<T, O>) -> Self {
        let (items, end) = (None, 0);
        Self { pages, items, end }
    }

    /// Reads what is due in a level before a time.
    fn read_page(
        &mut self,
        index: &mut Index,
        level: Level,
        page: &mut Page<T, O>,
        end: u64,
    ) -> Result<Read, StoreError> {
        let (shared, start) = (&self.pages.shared, index.scheduled.start(level));
        for row in shared
            .log()
            .disk()
            .due_rows(shared.id, level..=level, start)?
        {
            let row = row?;
            if row.due >= end {
                return Ok(Read::Next(Some(row.due)));
            }
            let mut of_row = self.read(index, row)?.into_iter().peekable();
            for id in row.ids() {
                let item = of_row.next_if(|item| item.at.id == id);
                let is_cold = index.pass_scheduled(row.of_one(id), row);
                if let Some(item) = item.filter(|_| is_cold) {
                    self.take(index, row, &item, page)?;
                    if self.pages.is_page(index, page) {
                        return Ok(Read::Page);
                    }
                }
            }
        }
        Ok(Read::Next(None))
    }

    /// The items of a row that are there, or none if all of them are known to be in memory.
    fn read(&mut self, index: &Index, row: DueRow) -> Result<Vec<Item>, StoreError> {
        if !index.may_have(row) {
            return Ok(Vec::new());
        }
        let (shared, ids) = (&self.pages.shared, row.ids());
        let follows = mem::replace(&mut self.end, ids.end) == ids.start;
        let before = self.items.take().filter(|_| follows);
        if !follows && !row.is_chunk() {
            return shared.stored(ids.start).map(Vec::from_iter);
        }
        let last = if follows { level::last(0) } else { ids.end - 1 };
        let mut items = if let Some(items) = before {
            items
        } else {
            let items = shared.log().disk().items(row.item, ids.start..=last);
            items?.peekable()
        };
        let mut of_row: Vec<Item> = Vec::new();
        let is_of = |item: &_| !matches!(item, Ok(Item { at, .. }) if at.id >= ids.end);
        // What follows the last one is not looked at.
        while of_row.last().is_none_or(|item| item.at.id + 1 < ids.end) {
            match items.next_if(is_of) {
                Some(item) => of_row.push(item?),
                None => break,
            }
        }
        self.items = follows.then_some(items);
        Ok(of_row)
    }

    /// An item of a row is read.
    fn take(
        &self,
        index: &mut Index,
        row: DueRow,
        item: &Item,
        page: &mut Page<T, O>,
    ) -> Result<(), StoreError> {
        let shared = &self.pages.shared;
        if index.count_scheduled() == 0 {
            return Err(other_rows(&shared.name, 0, 1));
        }
        shared.log().disk().know(item.chunk.as_ref());
        index.digest.remove(item.at.digest());
        index.scheduled.remove(row.of_one(item.at.id));
        self.pages.add(page, item.at.id, &item.content)
    }

    /// How many items of a row are on the disk only, and were not read.
    fn count(&mut self, index: &Index, row: DueRow) -> Result<usize, StoreError> {
        let has_next = |id| index.has_next(id, Some(row.of_one(id)));
        if !row.is_chunk() {
            return Ok(usize::from(has_next(row.item.id)));
        }
        let items = self.read(index, row)?;
        Ok(items.iter().filter(|item| has_next(item.at.id)).count())
    }
}
