//! Which rows are those of items that are not in memory.

use super::scheduled::Scheduled;
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{Digest, DueRow, Key};
use crate::log::chunks::earliest;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::mem;
use std::ops::Range;

/// How many levels are looked at together.
const MOST_LOOKED_AT: usize = 16;
/// The most scheduled items that come into memory early.
const MOST_EARLY: usize = 1_000;

/// The cold part of a queue: in each level the rows from a number on, and some earlier ones.
#[derive(Clone, Default)]
pub(crate) struct Index {
    /// Whether the numbers of items have [levels](level). If not, all are in level 0.
    pub(super) has_levels: bool,
    /// The levels with rows that are to be read, or were read since the cold part began.
    levels: BTreeMap<Level, Rows>,
    /// Those with rows that are to be read.
    unread: BTreeSet<Level>,
    /// With levels by key: those of them that may have no items in memory, the first of which is looked at next.
    absent: VecDeque<Level>,
    /// From this one on the next of them is read, if memory needs more items.
    turn: Level,
    /// In the other levels the rows from this number on were not read.
    begun: u64,
    /// Rows that are not read: those of commits and of removals that have not ended, by their first numbers.
    skipped: BTreeMap<u64, u64>,
    /// The unique keys of rows that may not be in the tables yet: their numbers, by the hashes of the keys.
    pub(super) keys: HashMap<u128, u64>,
    /// Rows that are not read, since their items are in memory.
    marked: BTreeSet<u64>,
    /// The first row, whatever its level is, that may not be in the tables yet, though its commit has ended: it may be in the log only.
    pub(super) unwritten: Option<u64>,
    /// How many transactions with pushes of the cold part have not ended.
    pub(super) open: usize,
    /// The rows that are to be read.
    pub(super) digest: Digest,
    /// What the rows are that are [kept](crate::log::Disk::keep), unless others would be read anew.
    pub(super) reading: Option<Reading>,
    /// Which of them are read by their times. By priority those of level 0 are.
    pub(super) scheduled: Scheduled,
    /// The digest of the scheduled items when there was no room to read them early.
    pub(super) not_early: Digest,
    /// Why no more can be read.
    pub(super) failed: Option<StoreError>,
}

/// Those of a level.
#[derive(Clone, Default)]
pub(super) struct Rows {
    /// The rows from here on were not read.
    pub(super) next: u64,
    /// The row that may have it.
    pub(super) row: u64,
    /// Earlier ones, whose commits ended when those after them had been read.
    late: VecDeque<Range<u64>>,
    /// Whether the last row was read.
    is_at_end: bool,
    /// Whether the last page had scheduled items.
    was_scheduled: bool,
    /// Whether it is to be looked at whether the level has items in memory.
    is_absent: bool,
}

/// Of a level of which a page was read, the rows that follow, as they were then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) level: Level,
    /// Others may have come since, from this number on.
    pub(super) end: u64,
}

impl Rows {
    fn from(next: u64) -> Self {
        Self {
            next,
            row: earliest(next),
            ..Self::default()
        }
    }
}

impl Index {
    /// That of a queue that is opened: all rows of these levels, or of a queue without levels, except those of items that are in
    /// memory. The next item will have the number `begun`.
    pub(crate) fn open(
        digest: Digest,
        marked: BTreeSet<u64>,
        levels: Option<&[Level]>,
        scheduled: Scheduled,
        begun: u64,
    ) -> Self {
        let rows = |&level| (level, Rows::from(level::with_serial(level, 0)));
        let has_levels = levels.is_some();
        let levels = levels.unwrap_or(&[0]);
        let mut index = Self {
            has_levels,
            levels: levels.iter().map(rows).collect(),
            unread: levels.iter().copied().collect(),
            begun,
            marked,
            digest,
            scheduled,
            ..Self::default()
        };
        for level in levels {
            index.look_for(*level);
        }
        index
    }

    /// How many items are on the disk only. Of a damaged store it is what should be there.
    pub(crate) fn count(&self) -> usize {
        // More may have been read than there should be.
        let count = self.digest.count.cast_signed().max(0);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// A cold part begins: no item in memory has this number or a later one.
    pub(super) fn begin(&mut self, next: u64) {
        self.begun = next;
        self.levels.clear();
        self.unread.clear();
        self.absent.clear();
        self.reading = None;
        self.marked.clear();
        self.scheduled = Scheduled::begin(next);
    }

    /// How many of the items on the disk only are not due, or not read since then.
    pub(crate) fn count_scheduled(&self) -> usize {
        usize::try_from(self.scheduled.digest.count).unwrap_or(usize::MAX)
    }

    /// Whether an item is read by its time.
    fn is_scheduled(&self, id: u64) -> bool {
        self.has_levels && level::of(id) == 0
    }

    fn level_of(&self, id: u64) -> Level {
        if self.has_levels {
            level::of(id)
        } else {
            0
        }
    }

    /// The number of a level that differs from others by `serial`.
    pub(super) fn in_level(&self, level: Level, serial: u64) -> u64 {
        if self.has_levels {
            level::with_serial(level, serial)
        } else {
            serial
        }
    }

    /// The rows of a transaction are not there after all.
    pub(super) fn forget(&mut self, runs: &[Run]) {
        self.unskip(runs);
        self.open -= 1;
    }

    /// The rows of a commit are there, with these due times.
    pub(super) fn conclude(&mut self, runs: &[Run], due: &[DueRow]) {
        self.forget(runs);
        self.note_unwritten(runs);
        for run in runs {
            run.keys().for_each(|key| self.digest.add(key.digest()));
            if self.is_scheduled(run.first) {
                continue;
            }
            let level = self.level_of(run.first);
            let rows = self.unread_rows(level);
            rows.is_at_end = false;
            let late = run.first..run.end().min(rows.next);
            if !late.is_empty() {
                rows.late.push_back(late);
            }
        }
        for row in due {
            if !self.scheduled.add(*row) {
                let id = row.item.id;
                self.unread_rows(row.level).late.push_back(id..id + 1);
            }
        }
    }

    /// Those of a level, which has rows to be read.
    fn unread_rows(&mut self, level: Level) -> &mut Rows {
        let begun = self.in_level(level, self.begun);
        if self.unread.insert(level) {
            self.levels.entry(level).or_insert_with(|| Rows {
                is_at_end: true,
                ..Rows::from(begun)
            });
            self.look_for(level);
        }
        self.rows_of(level)
    }

    /// What is due by now is to be read.
    pub(super) fn ripen(&mut self, now: u64) {
        for level in self.scheduled.ripen(now) {
            self.unread_rows(level);
        }
    }

    /// Whether the next page of a level has scheduled items: pages of these and of others take turns. Those without a time, which are the
    /// first ones, come before all others.
    pub(super) fn takes_scheduled(&mut self, level: Level) -> bool {
        let (is_due, (due, _)) = (self.scheduled.is_due(level), self.scheduled.start(level));
        let rows = self.rows_of(level);
        rows.was_scheduled = is_due && (rows.is_at_end || !rows.was_scheduled || due == 0);
        rows.was_scheduled
    }

    /// The next item of a row of a due time is read; returns whether it is on the disk only, if it is there.
    pub(super) fn pass_scheduled(&mut self, item: DueRow, row: DueRow) -> bool {
        let id = item.item.id;
        let is_there = self.has_next(id, Some(item));
        self.marked.remove(&id);
        self.scheduled.pass(item, row);
        is_there
    }

    /// Whether an item of such a row may be on the disk only, and was not read.
    pub(super) fn may_have(&self, row: DueRow) -> bool {
        row.ids().any(|id| self.has_next(id, Some(row.of_one(id))))
    }

    /// What is due in a level was read; the next one is due at this time.
    pub(super) fn end_scheduled(&mut self, level: Level, first: Option<u64>) {
        self.scheduled.end(level, first);
        self.note_read(level);
    }

    /// The end of the rows that are kept, if they are of this level.
    pub(super) fn take_reading(&mut self, level: Level) -> Option<u64> {
        let reading = self.reading.take()?;
        (reading.level == level).then_some(reading.end)
    }

    /// The log has changes of these rows.
    pub(super) fn note_unwritten(&mut self, runs: &[Run]) {
        let reading = self.reading.take();
        self.reading = reading.filter(|reading| {
            let is_of = |run: &Run| self.level_of(run.first) == reading.level;
            !runs.iter().any(|run| run.first < reading.end && is_of(run))
        });
        let has_levels = self.has_levels;
        let serial = |id| if has_levels { level::serial(id) } else { id };
        let firsts = runs.iter().map(|run| serial(run.first));
        self.unwritten = firsts.chain(self.unwritten).min();
    }

    /// The first level with rows that are to be read.
    pub(super) fn unread(&self) -> Option<Level> {
        self.unread.first().copied()
    }

    /// How many levels have rows that are to be read.
    pub(super) fn count_unread(&self) -> usize {
        self.unread.len()
    }

    /// The level that is read next; those by key take turns.
    pub(super) fn take_turn(&mut self, by_key: bool) -> Option<Level> {
        let next = self.unread.range(self.turn..).next().copied();
        let level = next.or_else(|| self.unread());
        self.turn = level
            .filter(|_| by_key)
            .map_or(0, |level| level.saturating_add(1));
        level
    }

    /// Has it looked at whether a level has items in memory.
    pub(super) fn look_for(&mut self, level: Level) {
        if !mem::replace(&mut self.rows_of(level).is_absent, true) {
            self.absent.push_back(level);
        }
    }

    /// Takes some of the levels that are to be looked at.
    pub(super) fn take_absent(&mut self) -> Vec<Level> {
        let most = self.absent.len().min(MOST_LOOKED_AT);
        let absent: Vec<_> = self.absent.drain(..most).collect();
        for level in &absent {
            self.rows_of(*level).is_absent = false;
        }
        absent
    }

    /// Whether a level has rows that are to be read.
    pub(super) fn is_unread(&self, level: Level) -> bool {
        self.unread.contains(&level)
    }

    /// The rows of a level were read up to the end, except late ones.
    pub(super) fn end_level(&mut self, level: Level) {
        self.rows_of(level).is_at_end = true;
        self.note_read(level);
    }

    /// Some rows of a level were read.
    fn note_read(&mut self, level: Level) {
        let rows = self.levels.get(&level);
        let is_read = rows.is_none_or(|rows| rows.is_at_end && rows.late.is_empty());
        if is_read && !self.scheduled.is_due(level) {
            self.unread.remove(&level);
        }
    }

    /// Whether all rows were read, and no transaction may add one.
    pub(super) fn is_over(&self) -> bool {
        self.unread().is_none() && self.open == 0 && self.digest == Digest::default()
    }

    /// Whether there is nothing to read now, and commits or time may add something.
    pub(super) fn waits(&self) -> bool {
        let is_scheduled = self.digest != Digest::default() && self.unread().is_none();
        let is_read = self.digest == self.scheduled.digest && self.scheduled.due().next().is_none();
        is_read && (self.open > 0 || is_scheduled)
    }

    /// While it [waits](Self::waits): whether scheduled items that are not due are all that is not in memory, and few. Then they come
    /// there too, so that the cold part ends.
    pub(super) fn reads_early(&self) -> bool {
        let is_new = self.scheduled.digest != self.not_early;
        self.open == 0 && is_new && self.count_scheduled() <= MOST_EARLY
    }

    /// The rows that are not read, though all should be that are not scheduled; or also these, if none has a time.
    pub(super) fn left(&self) -> Digest {
        let Scheduled { digest, .. } = &self.scheduled;
        let mut left = self.digest;
        if self.scheduled.next().is_some() {
            left.count = left.count.wrapping_sub(digest.count);
            left.sum = left.sum.wrapping_sub(digest.sum);
        }
        left
    }

    pub(super) fn rows_of(&mut self, level: Level) -> &mut Rows {
        self.levels.entry(level).or_default()
    }

    /// The next row of a level is read, and has this item; returns whether that is on the disk only. The marks of the items before it
    /// are those of removed ones.
    pub(super) fn pass(&mut self, level: Level, id: u64, row: u64) -> bool {
        let is_there = self.has_next(id, None);
        let passed = self.marked.range(self.in_level(level, 0)..=id);
        for id in passed.copied().collect::<Vec<_>>() {
            self.marked.remove(&id);
        }
        let rows = self.rows_of(level);
        (rows.next, rows.row) = (rows.next.max(id + 1), row);
        is_there
    }

    /// The end of the rows of a level that are in the tables.
    pub(super) fn end_of(&self, level: Level) -> u64 {
        match self.unwritten {
            Some(serial) => self.in_level(level, serial),
            None => u64::MAX,
        }
    }

    /// Whether the tables may not have what the log has of a row.
    pub(super) fn is_unwritten(&self, id: u64) -> bool {
        id >= self.end_of(self.level_of(id))
    }

    /// The last number that a row of a level may have.
    pub(super) fn last_of(&self, level: Level) -> u64 {
        if self.has_levels {
            level::last(level)
        } else {
            u64::MAX
        }
    }

    /// The next late row of a level.
    pub(super) fn next_late(&mut self, level: Level) -> Option<u64> {
        let late = &mut self.levels.get_mut(&level)?.late;
        let next = late.front_mut()?.next();
        if late.front().is_some_and(Range::is_empty) {
            late.pop_front();
            self.note_read(level);
        }
        next
    }

    /// All late rows.
    pub(super) fn late(&self) -> impl Iterator<Item = u64> + '_ {
        let levels = self.levels.values();
        levels.flat_map(|rows| rows.late.iter().cloned().flatten())
    }

    /// Where a visit of all rows but the late ones begins, or of those of a level: the item, and the row that may have it.
    pub(super) fn start(&self, level: Option<Level>) -> (u64, u64) {
        let first = match level {
            Some(0) | None if self.scheduled.digest.count > 0 => return (0, 0),
            Some(level) => self.levels.get(&level),
            None => self.levels.values().next(),
        };
        first.map_or((u64::MAX, u64::MAX), |rows| (rows.next, rows.row))
    }

    fn is_skipped(&self, id: u64) -> bool {
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

    /// The items of these rows are in memory. In a level of which nothing is to be read the next row is one after them.
    pub(super) fn mark(&mut self, runs: &[Run]) {
        for run in runs {
            let level = self.level_of(run.first);
            let ahead = run.keys().map(|key| key.id).filter(|id| self.is_ahead(*id));
            let ahead: Vec<_> = ahead.collect();
            let is_level = self.has_levels && !self.is_scheduled(run.first);
            if is_level && !ahead.is_empty() && !self.is_unread(level) {
                let begun = self.in_level(level, self.begun);
                let rows = self
                    .levels
                    .entry(level)
                    .or_insert_with(|| Rows::from(begun));
                (rows.next, rows.row) = (run.end(), earliest(run.end()));
            } else {
                self.marked.extend(ahead);
            }
        }
    }

    /// Whether a row is yet to be read, or skipped, by its number.
    fn is_ahead(&self, id: u64) -> bool {
        if self.is_scheduled(id) {
            return self.scheduled.is_ahead(id);
        }
        let level = self.level_of(id);
        let next = self.levels.get(&level).map(|rows| rows.next);
        id >= next.unwrap_or_else(|| self.in_level(level, self.begun))
    }

    /// Whether the row is that of an item that is on the disk only, and not a late one. A scheduled item has a row of its due time.
    pub(super) fn has_next(&self, id: u64, due: Option<DueRow>) -> bool {
        let is_ahead = match due {
            Some(due) => self.scheduled.has(due),
            None => !self.is_scheduled(id) && self.is_ahead(id),
        };
        is_ahead && !self.marked.contains(&id) && !self.is_skipped(id)
    }

    /// Whether the row is that of an item that is on the disk only.
    pub(super) fn has(&self, id: u64, due: Option<DueRow>) -> bool {
        let level = due.map_or_else(|| self.level_of(id), |due| due.level);
        let rows = || self.levels.get(&level);
        let is_late = || rows().is_some_and(|rows| rows.late.iter().any(|it| it.contains(&id)));
        self.has_next(id, due) || is_late() && !self.is_skipped(id)
    }

    /// Gives up these items on the disk, in the order of their numbers, with the rows of their due times. They are to be removed, and
    /// skipped until that [is over](Self::unskip).
    pub(super) fn give_up(&mut self, queue: u32, gone: &[(u64, Option<DueRow>)]) -> Vec<Run> {
        for (id, due) in gone {
            let key = Key { queue, id: *id };
            self.digest.remove(key.digest());
            if let Some(due) = due.filter(|due| self.has_next(*id, Some(*due))) {
                self.scheduled.remove(due);
            }
        }
        let is_gone = |id: &u64| gone.binary_search_by_key(id, |(id, _)| *id).is_ok();
        for rows in self.levels.values_mut() {
            let late = rows.late.iter().cloned().flatten();
            rows.late = late
                .filter(|id| !is_gone(id))
                .map(|id| id..id + 1)
                .collect();
        }
        for level in self.unread.clone() {
            self.note_read(level);
        }
        let mut runs = Vec::new();
        Run::add_each(&mut runs, queue, gone.iter().map(|(id, _)| *id));
        self.skip(&runs);
        runs
    }
}
