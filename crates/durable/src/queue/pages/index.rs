//! Which rows are those of items that are not in memory.

use crate::batch::Run;
use crate::error::StoreError;
use crate::format::{Digest, Key};
use crate::log::chunks::earliest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// The cold part of a queue: the rows from a number on, and some earlier ones.
#[derive(Clone, Default)]
pub(crate) struct Index {
    /// The rows from here on were not read.
    pub(super) next: u64,
    /// The row that may have it.
    pub(super) row: u64,
    /// Earlier ones, whose commits ended when those after them had been read.
    pub(super) late: VecDeque<Range<u64>>,
    /// Rows that are not read: those of commits and of removals that have not ended, by their first numbers.
    skipped: BTreeMap<u64, u64>,
    /// Rows that are not read, since their items were brought into memory when the queue was opened.
    pub(super) marked: BTreeSet<u64>,
    /// The first row that may not be in the tables yet, though its commit has ended: it may be in the log only.
    pub(super) unwritten: Option<u64>,
    /// How many transactions with pushes of the cold part have not ended.
    pub(super) open: usize,
    /// The rows that are to be read.
    pub(super) digest: Digest,
    /// Whether the last row was read.
    pub(super) is_at_end: bool,
    /// Why no more can be read.
    pub(super) failed: Option<StoreError>,
}

impl Index {
    /// That of a queue that is opened: all rows, except those of items that are in memory.
    pub(crate) fn open(digest: Digest, marked: BTreeSet<u64>) -> Self {
        Self {
            marked,
            digest,
            ..Self::default()
        }
    }

    /// How many items are on the disk only. Of a damaged store it is what should be there.
    pub(crate) fn count(&self) -> usize {
        // More may have been read than there should be.
        let count = self.digest.count.cast_signed().max(0);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// A cold part begins: no item in memory has this number or a later one.
    pub(super) fn begin(&mut self, next: u64) {
        self.next = next.max(self.next);
        self.row = earliest(self.next);
        self.marked.clear();
    }

    /// The rows of a transaction are not there after all.
    pub(super) fn forget(&mut self, runs: &[Run]) {
        self.unskip(runs);
        self.open -= 1;
    }

    /// The rows of a commit are there.
    pub(super) fn conclude(&mut self, runs: &[Run]) {
        self.forget(runs);
        self.is_at_end = false;
        for run in runs {
            let first = self
                .unwritten
                .map_or(run.first, |known| known.min(run.first));
            self.unwritten = Some(first);
            run.keys().for_each(|key| self.digest.add(key.digest()));
            let late = run.first..run.end().min(self.next);
            if !late.is_empty() {
                self.late.push_back(late);
            }
        }
    }

    /// The log has changes of these rows.
    pub(super) fn note_unwritten(&mut self, runs: &[Run]) {
        let firsts = runs.iter().map(|run| run.first);
        self.unwritten = firsts.chain(self.unwritten).min();
    }

    /// Whether all rows were read, and no transaction may add one.
    pub(super) fn is_over(&self) -> bool {
        self.is_at_end && self.open == 0 && self.digest == Digest::default()
    }

    /// Whether there is nothing to read, and commits may add something.
    pub(super) fn waits(&self) -> bool {
        self.open > 0 && self.digest == Digest::default()
    }

    pub(super) fn is_skipped(&self, id: u64) -> bool {
        let before = self.skipped.range(..=id).next_back();
        before.is_some_and(|(_, end)| id < *end)
    }

    pub(super) fn skip(&mut self, runs: &[Run]) {
        self.skipped
            .extend(runs.iter().map(|run| (run.first, run.end())));
    }

    pub(super) fn unskip(&mut self, runs: &[Run]) {
        for run in runs {
            self.skipped.remove(&run.first);
        }
    }

    /// Whether the row is that of an item that is on the disk only.
    pub(super) fn has(&self, id: u64) -> bool {
        let is_read = id < self.next || self.marked.contains(&id);
        (!is_read || self.late.iter().any(|late| late.contains(&id))) && !self.is_skipped(id)
    }

    /// Gives up the items of these numbers, in ascending order, whose rows are to be removed. Returns those that are in memory
    /// by now, and the rows that are skipped until their removal is [over](Self::unskip).
    pub(super) fn give_up(&mut self, queue: u32, ids: &[u64]) -> (Vec<u64>, Vec<Run>) {
        let (gone, moved): (Vec<u64>, _) = ids.iter().partition(|id| self.has(**id));
        for id in &gone {
            let key = Key { queue, id: *id };
            self.digest.remove(key.digest());
        }
        if !self.late.is_empty() {
            let late = self.late.iter().cloned().flatten();
            let left = late.filter(|id| gone.binary_search(id).is_err());
            self.late = left.map(|id| id..id + 1).collect();
        }
        let mut runs = Vec::new();
        Run::add_each(&mut runs, queue, gone.into_iter());
        self.skip(&runs);
        (moved, runs)
    }
}
