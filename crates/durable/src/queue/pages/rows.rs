//! The rows of items that are on the disk only, without bringing these into memory.

use super::{Index, Pages};
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::{Key, ITEMS};
use crate::log;
use crate::order::Engine;
use fjall::UserValue;

/// The cold part of a queue at one instant.
pub(in crate::queue) struct Snapshot {
    index: Index,
    rows: log::Visit,
}

impl Snapshot {
    /// Whether the item was on the disk only.
    pub(in crate::queue) fn has(&self, id: u64) -> bool {
        self.index.has(id)
    }
}

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// The cold part of the queue, if it has one.
    pub(in crate::queue) fn snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        if !self.is_cold() {
            return Ok(None);
        }
        let state = self.state();
        if let Some(error) = &state.index.failed {
            return Err(error.clone());
        }
        let index = state.index.clone();
        let log = self.shared.log();
        log.settle()?;
        let key = |id| self.shared.key(id).to_bytes();
        let rows = log::rows(&log.disk().tables[ITEMS], key(index.next)..=key(u64::MAX))?;
        Ok(Some(Snapshot { index, rows }))
    }

    /// Visits the rows of a cold part, and checks that they are those that were committed.
    pub(in crate::queue) fn visit(
        &self,
        Snapshot { index, rows }: &mut Snapshot,
        mut visit: impl FnMut(Key, UserValue) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut left = index.digest;
        for id in index.late.iter().cloned().flatten() {
            left.remove(self.shared.key(id).digest());
            // It may have been taken since.
            if let Some(value) = self.shared.stored(id)?.filter(|_| index.has(id)) {
                visit(self.shared.key(id), value)?;
            }
        }
        for row in rows {
            let (key, value) = row?;
            let at = Key::of(&key)?;
            if index.has(at.id) {
                left.remove(at.digest());
                visit(at, value)?;
            }
        }
        self.check_left(left)
    }

    /// The item of a row.
    pub(in crate::queue) fn decode(&self, at: Key, value: &[u8]) -> Result<T, StoreError> {
        let decoded = self.shared.decode(at.id, &at.to_bytes(), value);
        decoded.map(|(_, item)| item)
    }

    /// Gives up the items of these numbers, in ascending order, whose rows are to be removed. Returns those that are in memory
    /// by now, and the others, whose rows are skipped until their removal [is over](Self::removed).
    pub(in crate::queue) fn give_up(&self, ids: &[u64]) -> (Vec<u64>, Vec<Run>) {
        self.state().index.give_up(self.shared.id, ids)
    }

    /// The rows are removed, and so may be items in memory.
    pub(in crate::queue) fn removed(&self, runs: &[Run]) {
        self.ram.give_room(runs.iter().map(|run| run.len()).sum());
        let mut state = self.state();
        state.index.unskip(runs);
        state.index.note_unwritten(runs);
        self.fill(&mut state, 1);
    }
}
