//! Rows of due times: in queues that have them, each row of items of level 0 has one, which is written and removed with that row.

use super::GroupWriter;
use crate::batch::DueChange;
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{due_rows, DueRow, ItemRow, Key, QueueRow, ITEMS, MARKS};
use crate::log::tables::{guarded, rows};
use crate::log::{Disk, Visit};
use fjall::Readable;
use std::ops::{Range, RangeInclusive};

impl Disk {
    /// The rows of these levels of a queue, in the first one from a place on, as they are now: also of a chunk that is being spread.
    pub(crate) fn due_rows(
        &self,
        queue: u32,
        levels: RangeInclusive<Level>,
        from: (u64, u64),
    ) -> Result<impl DoubleEndedIterator<Item = Result<DueRow, StoreError>>, StoreError> {
        let _whole = self.reads.spreading.read();
        let rows = guarded(|| {
            let snapshot = self.tables.database.snapshot();
            Ok(snapshot.range(&self.tables[MARKS], due_rows(queue, levels, from)))
        });
        let rows = rows.map(Visit::from)?;
        Ok(rows.map(|row| row.and_then(|(key, value)| DueRow::read(&key, &value))))
    }
}

impl GroupWriter<'_, '_> {
    /// Whether this item of a queue, and those of its level, have rows of their due times.
    pub(in crate::log) fn has_due(&self, queue: u32, id: u64) -> bool {
        let row = || self.catalog.queues.get(queue);
        level::of(id) == 0 && row().is_some_and(|row| row.index.due.is_some())
    }

    pub(in crate::log) fn write_due(&mut self, row: DueRow) {
        self.rows.insert(MARKS, row.key(), row.value());
    }

    /// Removes that of the row of this item, if there are such rows.
    pub(in crate::log) fn remove_due(&mut self, row: Option<DueRow>) {
        let row = row.filter(|row| self.has_due(row.item.queue, row.item.id));
        if let Some(row) = row {
            self.rows.remove(MARKS, row.key());
        }
    }

    /// How these rows of a queue change apart from its items.
    pub(super) fn change_due(&mut self, change: &DueChange) {
        match *change {
            DueChange::Set(queue, items) => {
                self.change_of(queue); // its row is written
                let set = |row: &mut QueueRow| row.index.due = items;
                self.catalog.queues.change(queue, set);
            }
            DueChange::Add(row) => {
                self.chunks.set_due(row);
                self.write_due(row);
            }
            DueChange::Remove(row) => self.rows.remove(MARKS, row.key()),
        }
    }

    /// Before rows of single items that earlier groups have written are removed.
    pub(in crate::log) fn remove_due_of(
        &mut self,
        queue: u32,
        ids: Range<u64>,
    ) -> Result<(), StoreError> {
        if !self.has_due(queue, ids.start) {
            return Ok(());
        }
        let keys = [ids.start, ids.end - 1].map(|id| Key { queue, id }.to_bytes());
        for row in rows(&self.disk.tables[ITEMS], keys[0]..=keys[1])? {
            let (key, value) = row?;
            if let Ok(ItemRow::One(item, content)) = ItemRow::read(&key, &value) {
                self.remove_due(DueRow::of(item, 1, content));
            }
        }
        Ok(())
    }
}
