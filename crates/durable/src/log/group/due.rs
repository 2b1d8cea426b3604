//! Rows of due times: in queues that have them, each item of level 0 has one, which is written and removed with the item.

use super::GroupWriter;
use crate::batch::{DueChange, Run};
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{due_rows, open, DueRow, Key, QueueRow, CHECKSUM, ITEMS, MARKS};
use crate::log::tables::rows;
use crate::log::Disk;
use std::ops::RangeInclusive;

impl Disk {
    /// The rows of these levels of a queue, in the first one from a place on.
    pub(crate) fn due_rows(
        &self,
        queue: u32,
        levels: RangeInclusive<Level>,
        from: (u64, u64),
    ) -> Result<impl DoubleEndedIterator<Item = Result<DueRow, StoreError>>, StoreError> {
        let rows = rows(&self.tables[MARKS], due_rows(queue, levels, from))?;
        Ok(rows.map(|row| row.and_then(|(key, value)| DueRow::read(&key, &value))))
    }
}

impl GroupWriter<'_, '_> {
    /// Whether these items have rows of their due times.
    pub(super) fn has_due(&self, run: Run) -> bool {
        let row = || self.catalog.queues.get(run.queue);
        level::of(run.first) == 0 && row().is_some_and(|row| row.index.due.is_some())
    }

    /// Writes that of an item that the group pushes, by its value.
    pub(super) fn write_due(&mut self, item: Key, value: &[u8]) {
        if let Some(row) = DueRow::of(item, &value[CHECKSUM..]) {
            self.rows.insert(MARKS, row.key(), row.value());
            self.change_of(item.queue).due.add(item.digest());
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
            DueChange::Add(row) => self.rows.insert(MARKS, row.key(), row.value()),
            DueChange::Remove(row) => self.rows.remove(MARKS, row.key()),
        }
    }

    /// Before items are removed that earlier groups have pushed.
    pub(super) fn remove_due(&mut self, items: Run) -> Result<(), StoreError> {
        let first = Key {
            queue: items.queue,
            id: items.first,
        };
        let last = Key {
            id: items.end() - 1,
            ..first
        };
        for row in rows(&self.disk.tables[ITEMS], first.to_bytes()..=last.to_bytes())? {
            let (key, value) = row?;
            let item = Key::of(&key)?; // level 0 has no tombstones, whose keys are longer
            let content = open(&key, &value);
            if let Some(row) = content.and_then(|content| DueRow::of(item, content)) {
                self.rows.remove(MARKS, row.key());
                self.change_of(item.queue).due.remove(item.digest());
            }
        }
        Ok(())
    }
}
