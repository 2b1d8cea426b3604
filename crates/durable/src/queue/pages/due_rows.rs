//! The rows of due times, when a queue is opened.

use super::keys::{write, ROWS};
use super::scheduled::Scheduled;
use crate::batch::{Batch, Change, DueChange};
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{Digest, DueRow, WITH_DUE_CHUNKS};
use crate::log::chunks::{Item, Known};
use crate::order::Engine;
use crate::queue::shared::Shared;

/// How many chunks are spread at once.
const SPREAD: usize = 64;

/// The rows of due times of a queue.
pub(crate) struct DueRows<'s, T: Send + 'static, O: Engine<T>>(pub(crate) &'s Shared<T, O>);

impl<T: Send + 'static, O: Engine<T>> DueRows<'_, T, O> {
    /// That of an item, if items are read by these.
    pub(super) fn of(&self, item: &Item) -> Option<DueRow> {
        let is_scheduled = self.0.is_scheduled(item.at.id);
        is_scheduled.then(|| DueRow::of(item.at, 1, &item.content))?
    }

    /// That of the item with this number, which may be one of these chunks, in the order of their numbers, or be gone.
    pub(super) fn of_id(&self, id: u64, chunks: &[Known]) -> Result<Option<DueRow>, StoreError> {
        if !self.0.is_scheduled(id) {
            return Ok(None);
        }
        let before = chunks.partition_point(|chunk| chunk.0.id <= id);
        let chunk = before.checked_sub(1).map(|before| &chunks[before]);
        if let Some(chunk) = chunk.filter(|chunk| id < chunk.0.id + chunk.1.count()) {
            return Ok(chunk.1.due_of(id));
        }
        let known = self.0.log().disk().known_due(self.0.key(id));
        if known.is_some() {
            return Ok(known);
        }
        let item = self.0.stored(id)?;
        Ok(item.and_then(|item| DueRow::of(item.at, 1, &item.content)))
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
        let (items, mut last) = (disk.items(shared.key(0), 0..=level::last(0))?, None);
        let add = items.filter_map(|item| {
            let row = item.map(|item| {
                all.add(item.at.digest());
                item.due_row()
            });
            let row = row.transpose()?;
            let is_last = row
                .as_ref()
                .is_ok_and(|row| last.replace(*row) == Some(*row));
            (!is_last).then(|| row.map(|row| Change::Due(DueChange::Add(row))))
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
        for item in log.disk().items(shared.key(0), 0..=level::last(0))? {
            let item = item?;
            // The first one may be gone.
            let is_like = |chunk: &Known| are_whole && item.due_row() == chunk.1.due();
            let chunk = item.chunk.as_ref().filter(|chunk| !is_like(chunk));
            let new = chunk.filter(|chunk| chunks.last() != Some(&chunk.0));
            chunks.extend(new.map(|chunk| chunk.0));
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
