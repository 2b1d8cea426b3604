//! The rows of items that are on the disk only, without bringing these into memory.

use super::due_rows::DueRows;
use super::keys::KeyRows;
use super::{Index, Pages};
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::UniqueRow;
use crate::log::chunks::{Item, Items, Known, Rows};
use crate::order::Engine;
use std::time::Instant;

/// The cold part of a queue at one instant.
pub(in crate::queue) struct Snapshot {
    index: Index,
    items: Items<Rows>,
    /// Whose rows are visited, if not all.
    level: Option<Level>,
}

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// The cold part of the queue, or of a level, if it has one.
    pub(in crate::queue) fn snapshot(
        &self,
        level: Option<Level>,
    ) -> Result<Option<Snapshot>, StoreError> {
        if !self.is_cold() {
            return Ok(None);
        }
        let mut state = self.state();
        if let Some(error) = &state.index.failed {
            return Err(error.clone());
        }
        let log = self.shared.log();
        log.settle()?;
        state.index.keys.clear();
        let index = state.index.clone();
        if level == Some(0) && index.count_scheduled() == 0 {
            return Ok(None);
        }
        let (next, row) = index.start(level);
        let last = level.map_or(u64::MAX, |level| index.last_of(level));
        let items = log.disk().items(self.shared.key(next), row..=last)?;
        Ok(Some(Snapshot {
            index,
            items,
            level,
        }))
    }

    /// Visits the rows of a cold part. If it is all, checks that they are those that were committed.
    pub(in crate::queue) fn visit(
        &self,
        Snapshot {
            index,
            items,
            level,
        }: &mut Snapshot,
        mut visit: impl FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (mut left, disk) = (index.digest, self.shared.log().disk());
        let is_visited = |id| level.is_none_or(|level| level::of(id) == level);
        for id in index.late().filter(|id| is_visited(*id)) {
            left.remove(self.shared.key(id).digest());
            // It may have been taken since.
            let item = disk.item(self.shared.key(id))?;
            if let Some(item) = item.filter(|item| index.has(id, DueRows(&self.shared).of(item))) {
                visit(item)?;
            }
        }
        for item in items {
            let item = item?;
            if !is_visited(item.at.id) {
                break;
            }
            if index.has_next(item.at.id, DueRows(&self.shared).of(&item)) {
                left.remove(item.at.digest());
                visit(item)?;
            }
        }
        level.map_or_else(|| self.check_left(left), |_| Ok(()))
    }

    /// Whether an item in memory was on the disk only. One that cannot be read was not.
    pub(in crate::queue) fn had(&self, snapshot: &Snapshot, id: u64) -> bool {
        let due = DueRows(&self.shared).of_id(id, &[]);
        due.is_ok_and(|due| snapshot.index.has(id, due))
    }

    /// The time of a scheduled item that is not due.
    pub(in crate::queue) fn due(&self, item: &Item) -> Option<Instant> {
        let row = DueRows(&self.shared)
            .of(item)
            .filter(|row| row.due > self.shared.times.wall_time());
        self.shared.times.instant(row?.due)
    }

    pub(in crate::queue) fn decode(&self, item: &Item) -> Result<T, StoreError> {
        let decoded = self.shared.decode(item.at.id, &item.content);
        decoded.map(|(_, item)| item)
    }

    /// The row of an item's unique key, if there are such rows.
    pub(in crate::queue) fn key_of(&self, item: &Item) -> Option<UniqueRow> {
        let rows = KeyRows(&self.shared);
        self.shared.besides.has_keys.then(|| rows.of_stored(item))?
    }

    /// Gives up the items of these numbers, in ascending order, which are to be removed from their rows, with these of their unique keys,
    /// and from these chunks.
    /// Returns those that are in memory by now, and the others, whose rows are skipped until their removal
    /// [is over](Self::removed).
    pub(in crate::queue) fn give_up(
        &self,
        ids: &[u64],
        keys: Vec<UniqueRow>,
        mut chunks: Vec<Known>,
    ) -> (Vec<u64>, Vec<Run>) {
        chunks.sort_unstable_by_key(|chunk| chunk.0); // those of late items came first
        let due_of = |id| DueRows(&self.shared).of_id(id, &chunks).ok().flatten();
        let due = ids.iter().map(|id| (*id, due_of(*id)));
        let due: Vec<_> = due.collect();
        let mut state = self.state();
        let is_cold = |(id, due): &(u64, _)| state.index.has(*id, *due);
        let (gone, moved): (Vec<_>, Vec<_>) = due.into_iter().partition(is_cold);
        let moved: Vec<u64> = moved.into_iter().map(|(id, _)| id).collect();
        let runs = state.index.give_up(self.shared.id, &gone);
        // Those of the others may be gone, or known.
        let keys = keys.into_iter();
        let keys = keys.filter(|row| moved.binary_search(&row.item.id).is_err());
        self.shared.log().disk().know_keys(keys);
        for chunk in chunks {
            let (first, end) = (chunk.0.id, chunk.0.id + chunk.1.count());
            if runs.iter().any(|run| run.first < end && run.end() > first) {
                self.shared.log().disk().know(Some(&chunk));
            }
        }
        (moved, runs)
    }

    /// The rows are removed, and so may be items in memory.
    pub(in crate::queue) fn removed(&self, runs: &[Run]) {
        self.ram.give_room(runs.iter().map(|run| run.len()).sum());
        self.recount();
        let mut state = self.state();
        state.index.unskip(runs);
        state.index.note_unwritten(runs);
        state.index.scheduled.unwritten = Some(0);
        self.fill(&mut state, 1);
    }
}
