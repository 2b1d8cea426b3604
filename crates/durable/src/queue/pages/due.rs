//! Items with due times that are on the disk only: they are read when they are due. And their rows, when a queue is opened.

use super::fill::{other_rows, Page};
use super::keys::{write, ROWS};
use super::scheduled::Scheduled;
use super::{Index, Pages, NOT_PLANNED};
use crate::batch::{Batch, Change, DueChange};
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{Digest, DueRow, WITH_DUE_CHUNKS};
use crate::log::chunks::{Item, Items, Known, Rows};
use crate::order::Engine;
use crate::queue::shared::Shared;
use std::iter::{self, Peekable};
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// How many items of a priority that are due, and on the disk only, are counted by a call.
const MOST_COUNTED: usize = 1_000;
/// How many chunks are spread at once.
const SPREAD: usize = 64;

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
        index.scheduled.forget_gone(is_there)
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
        let (mut bytes, mut items) = (self.budget.most() / 2, DueItems::default());
        for row in disk.due_rows(shared.id, 0..=Level::MAX, (0, 0))? {
            let row = row?;
            for item in items.read(shared, index, row)? {
                let due = row.of_one(item.at.id);
                if !index.has_next(item.at.id, Some(due)) {
                    continue;
                }
                bytes += item.content.len() + beside;
                if !self.budget.has_room(bytes) {
                    index.not_early = index.scheduled.digest;
                    return self.forget_gone(index);
                }
                index.scheduled.bring(item.at.id);
                self.take_scheduled(index, due, &item, page)?;
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
            let next = rows.find(|row| self.count_of(index, *row).is_ok_and(|count| count > 0))?;
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
        let end = index.scheduled.unwritten;
        if end <= now {
            if let Read::Page = self.read_due(index, level, page, end)? {
                return Ok(());
            }
            self.settle(index)?;
        }
        if let Read::Next(next) = self.read_due(index, level, page, now + 1)? {
            index.end_scheduled(level, next);
        }
        Ok(())
    }

    /// Reads what is due in a level before a time.
    fn read_due(
        &self,
        index: &mut Index,
        level: Level,
        page: &mut Page<T, O>,
        end: u64,
    ) -> Result<Read, StoreError> {
        let (shared, start) = (&self.shared, index.scheduled.start(level));
        let (disk, mut items) = (shared.log().disk(), DueItems::default());
        for row in disk.due_rows(shared.id, level..=level, start)? {
            let row = row?;
            if row.due >= end {
                return Ok(Read::Next(Some(row.due)));
            }
            let mut of_row = items.read(shared, index, row)?.into_iter().peekable();
            for id in row.ids() {
                let item = of_row.next_if(|item| item.at.id == id);
                let is_cold = index.pass_scheduled(row.of_one(id), row);
                if let Some(item) = item.filter(|_| is_cold) {
                    self.take_scheduled(index, row.of_one(id), &item, page)?;
                    if self.is_page(index, page) {
                        return Ok(Read::Page);
                    }
                }
            }
        }
        Ok(Read::Next(None))
    }

    /// An item with this due time is read.
    fn take_scheduled(
        &self,
        index: &mut Index,
        due: DueRow,
        item: &Item,
        page: &mut Page<T, O>,
    ) -> Result<(), StoreError> {
        if index.count_scheduled() == 0 {
            return Err(other_rows(&self.shared.name, 0, 1));
        }
        self.shared.log().disk().know(item.chunk.as_ref());
        index.digest.remove(item.at.digest());
        index.scheduled.remove(due);
        self.add(page, item.at.id, &item.content)
    }

    /// How many items of a row are on the disk only, and were not read.
    fn count_of(&self, index: &Index, row: DueRow) -> Result<usize, StoreError> {
        let has_next = |id| index.has_next(id, Some(row.of_one(id)));
        if !row.is_chunk() {
            return Ok(usize::from(has_next(row.item.id)));
        }
        let items = DueItems::default().read(&self.shared, index, row)?;
        Ok(items.iter().filter(|item| has_next(item.at.id)).count())
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
            let most = count + MOST_COUNTED;
            while let Some(row) = rows.next().transpose()? {
                if row.due > now {
                    are_all = false;
                    break;
                }
                count += self.count_of(index, row)?;
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
#[derive(Default)]
struct DueItems {
    /// What follows the items that were read last, if several rows were read that follow each other.
    items: Option<Peekable<Items<Rows>>>,
    end: u64,
}

impl DueItems {
    /// The items of a row that are there, or none if all of them are known to be in memory.
    fn read<T: Send + 'static, O: Engine<T>>(
        &mut self,
        shared: &Shared<T, O>,
        index: &Index,
        row: DueRow,
    ) -> Result<Vec<Item>, StoreError> {
        if !index.may_have(row) {
            return Ok(Vec::new());
        }
        let ids = row.ids();
        let follows = mem::replace(&mut self.end, ids.end) == ids.start;
        let before = self.items.take().filter(|_| follows);
        if !follows && !row.is_chunk() {
            return shared.item(ids.start).map(|item| vec![item]);
        }
        let mut items = match before {
            Some(items) => items,
            None => {
                let rows = ids.start..=level::last(0);
                shared.log().disk().items(row.item, rows)?.peekable()
            }
        };
        let is_of = |item: &_| !matches!(item, Ok(Item { at, .. }) if at.id >= ids.end);
        let of_row = iter::from_fn(|| items.next_if(is_of)).collect();
        self.items = Some(items);
        of_row
    }
}

/// The rows of due times of a queue.
pub(crate) struct DueRows<'s, T: Send + 'static, O: Engine<T>>(pub(crate) &'s Shared<T, O>);

impl<T: Send + 'static, O: Engine<T>> DueRows<'_, T, O> {
    /// That of an item, if items are read by these.
    pub(super) fn of(&self, item: &Item) -> Option<DueRow> {
        let is_scheduled = self.0.is_scheduled(item.at.id);
        is_scheduled.then(|| DueRow::of(item.at, &item.content))?
    }

    /// That of the item with this number, which may be one of these chunks, in the order of their numbers.
    pub(super) fn of_id(&self, id: u64, chunks: &[Known]) -> Result<Option<DueRow>, StoreError> {
        if !self.0.is_scheduled(id) {
            return Ok(None);
        }
        let before = chunks.partition_point(|chunk| chunk.0.id <= id);
        let chunk = before.checked_sub(1).map(|before| &chunks[before]);
        if let Some(chunk) = chunk.filter(|chunk| id < chunk.0.id + chunk.1.count()) {
            return Ok(chunk.1.due_of(id));
        }
        if let Some(due) = self.0.log().disk().known_due(self.0.key(id)) {
            return Ok(due);
        }
        let item = self.0.stored(id)?;
        Ok(item.and_then(|item| DueRow::of(item.at, &item.content)))
    }

    /// The scheduled items of a queue with pages, without those that are in memory. A queue that has no such rows gets them.
    pub(in crate::queue) fn open<'i>(
        &self,
        in_memory: impl Iterator<Item = &'i u64>,
    ) -> Result<Scheduled, StoreError> {
        let mut all = match self.known() {
            Some(all) => all,
            None => self.write_all()?,
        };
        for id in in_memory.filter(|id| level::of(**id) == 0) {
            all.remove(self.0.key(*id).digest());
        }
        Ok(Scheduled::open(all, &self.firsts()?))
    }

    /// A queue without pages does not need them.
    pub(in crate::queue) fn end(&self) -> Result<(), StoreError> {
        match self.known() {
            Some(_) => self.0.write(Change::Due(DueChange::Set(self.0.id, None))),
            None => Ok(()),
        }
    }

    /// The items that have such rows, if all have them that are to.
    fn known(&self) -> Option<Digest> {
        let catalog = self.0.log().disk().catalog();
        catalog.queues.get(self.0.id)?.index.due
    }

    /// Writes the rows, in place of those that an earlier process has left.
    fn write_all(&self) -> Result<Digest, StoreError> {
        let Self(shared) = self;
        let disk = shared.log().disk();
        let left = disk.due_rows(shared.id, 0..=Level::MAX, (0, 0))?;
        let remove = |row| Change::Due(DueChange::Remove(row));
        self.change(left.map(|row| row.map(remove)))?;
        shared.log().settle()?; // a group has no order
        self.spread()?;
        let mut all = Digest::default();
        let mut items = disk.items(shared.key(0), 0..=level::last(0))?;
        let mut last = None;
        let add = iter::from_fn(|| loop {
            let item = items.next()?;
            let row = item.map(|item| {
                all.add(item.at.digest());
                item.due_row()
            });
            match row {
                Ok(row) if row.is_none() || row == last => {}
                Ok(row) => {
                    last = row;
                    return Some(Ok(Change::Due(DueChange::Add(row?))));
                }
                Err(error) => return Some(Err(error)),
            }
        });
        self.change(add)?;
        shared.write(Change::Due(DueChange::Set(shared.id, Some(all))))?;
        Ok(all)
    }

    /// Items that are due at different times get rows of their own, as all do in a store of an earlier version.
    fn spread(&self) -> Result<(), StoreError> {
        let (shared, mut chunks) = (self.0, Vec::new());
        let log = shared.log();
        let are_whole = log.disk().is_of(WITH_DUE_CHUNKS);
        let mut last = None;
        for item in log.disk().items(shared.key(0), 0..=level::last(0))? {
            let item = item?;
            let Some(chunk) = &item.chunk else {
                continue;
            };
            let row = item.due_row();
            let before = last.replace((chunk.0, row));
            let is_whole =
                are_whole && before.is_none_or(|(first, due)| first != chunk.0 || due == row);
            if !is_whole && chunks.last() != Some(&chunk.0) {
                chunks.push(chunk.0);
            }
        }
        for chunks in chunks.chunks(SPREAD) {
            let spread = chunks.iter().map(|first| Change::Spread(*first));
            write(shared, &mut Batch::of(spread))?;
            log.settle()?; // a group of more would take much memory
        }
        Ok(())
    }

    /// Writes changes, so many at once.
    fn change(
        &self,
        mut changes: impl Iterator<Item = Result<Change, StoreError>>,
    ) -> Result<(), StoreError> {
        loop {
            let some = changes.by_ref().take(ROWS);
            let some = some.collect::<Result<Vec<_>, _>>()?;
            if some.is_empty() {
                return Ok(());
            }
            write(self.0, &mut Batch::of(some))?;
        }
    }

    /// The first row of each level.
    fn firsts(&self) -> Result<Vec<DueRow>, StoreError> {
        let (disk, mut firsts) = (self.0.log().disk(), Vec::new());
        let mut next = Some(0);
        while let Some(level) = next {
            let mut rows = disk.due_rows(self.0.id, level..=Level::MAX, (0, 0))?;
            let Some(row) = rows.next().transpose()? else {
                break;
            };
            next = row.level.checked_add(1);
            firsts.push(row);
        }
        Ok(firsts)
    }
}
