//! Which items with due times are on the disk only. They are read when they are due, in the order of these times, by the
//! [rows](DueRow) of them.

use crate::format::level::Level;
use crate::format::{Digest, DueRow};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// How many items are brought into memory before those among them that are gone are looked for.
const MOST_BROUGHT: usize = if cfg!(test) { 2 } else { 1_024 };

/// The scheduled items of a queue by priority: in each level, which is that of the priority, the rows from one on, by the times.
#[derive(Clone, Default)]
pub(in crate::queue) struct Scheduled {
    levels: BTreeMap<Level, Times>,
    /// When something is due in which levels, if nothing that was not read is due there.
    firsts: BTreeSet<(u64, Level)>,
    /// The levels with rows that may be due.
    due: BTreeSet<Level>,
    /// Items with smaller numbers are in memory, or gone, except these: their pushes began before the cold part.
    begun: u64,
    before: BTreeSet<u64>,
    /// Others that are in memory, or gone: those that came there before their times.
    pub(super) brought: BTreeSet<u64>,
    /// How many were there when those that are gone were removed.
    kept: usize,
    /// Those that were not read.
    pub(super) digest: Digest,
    /// Rows that are due from this time on may not be in the tables yet, though their commits have ended.
    pub(super) unwritten: Option<u64>,
}

/// Those of a level.
#[derive(Clone, Default)]
struct Times {
    /// The items from this place on were not read.
    next: (u64, u64),
    /// The row that may have the next one.
    row: u64,
    /// None of these is due before this time. `None`: there is none, or it is due.
    first: Option<u64>,
}

impl Scheduled {
    /// Those of a queue that is opened: all items that have such rows, of which these are the first ones of their levels.
    pub(super) fn open(digest: Digest, firsts: &[DueRow]) -> Self {
        let mut scheduled = Self {
            digest,
            ..Self::default()
        };
        for row in firsts {
            scheduled.set_first(row.level, Some(row.due));
        }
        scheduled
    }

    /// The next row of a level has this time.
    fn set_first(&mut self, level: Level, first: Option<u64>) {
        let times = self.levels.entry(level).or_default();
        if let Some(before) = mem::replace(&mut times.first, first) {
            self.firsts.remove(&(before, level));
        }
        self.firsts.extend(first.map(|first| (first, level)));
    }

    /// The items with smaller numbers are in memory, and no others are there.
    pub(super) fn begin(begun: u64) -> Self {
        Self {
            begun,
            ..Self::default()
        }
    }

    /// Whether an item is on the disk only, if it is not skipped.
    pub(super) fn has(&self, row: DueRow) -> bool {
        row.place() >= self.next_of(row.level) && self.is_ahead(row.item.id)
    }

    /// Whether the item may be on the disk only, by its number.
    pub(super) fn is_ahead(&self, id: u64) -> bool {
        if id < self.begun {
            self.before.contains(&id)
        } else {
            !self.brought.contains(&id)
        }
    }

    /// Adds an item of a commit; returns `false` if its row would not be read any more.
    pub(super) fn add(&mut self, row: DueRow) -> bool {
        if row.place() < self.next_of(row.level) {
            return false;
        }
        if row.item.id < self.begun {
            self.before.insert(row.item.id);
        }
        self.unwritten = self.unwritten.into_iter().chain([row.due]).min();
        self.digest.add(row.item.digest());
        let first = self.levels.get(&row.level).and_then(|times| times.first);
        if !self.due.contains(&row.level) && first.is_none_or(|first| row.due < first) {
            self.set_first(row.level, Some(row.due));
        }
        true
    }

    /// An item is removed, or is in memory.
    pub(super) fn remove(&mut self, row: DueRow) {
        self.before.remove(&row.item.id);
        self.digest.remove(row.item.digest());
    }

    /// An item is in memory, whatever its time is. Some may be gone since, if there are many.
    pub(super) fn bring(&mut self, id: u64) {
        self.brought.insert(id);
    }

    /// If many were brought into memory, forgets those that are gone, when the log is settled: readers do not find them, nor rows of their
    /// times.
    pub(super) fn forget_gone<E>(
        &mut self,
        is_there: impl Fn(u64) -> Result<bool, E>,
        settle: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.brought.len() >= 2 * self.kept + MOST_BROUGHT {
            let mut gone = Vec::new();
            for id in &self.brought {
                gone.extend((!is_there(*id)?).then_some(*id));
            }
            settle()?;
            self.brought.retain(|id| gone.binary_search(id).is_err());
            self.kept = self.brought.len();
        }
        Ok(())
    }

    /// The time of the next item, if nothing that is not read is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.firsts.first().map(|(first, _)| *first)
    }

    /// The levels in which something is due by now, and was not before.
    pub(super) fn ripen(&mut self, now: u64) -> Vec<Level> {
        let mut ripe = Vec::new();
        while let Some((_, level)) = self.firsts.first().filter(|(first, _)| *first <= now) {
            let level = *level;
            self.set_first(level, None);
            self.due.insert(level);
            ripe.push(level);
        }
        ripe
    }

    /// Whether something may be due in this level.
    pub(super) fn is_due(&self, level: Level) -> bool {
        self.due.contains(&level)
    }

    /// The levels in which something may be due.
    pub(super) fn due(&self) -> impl Iterator<Item = Level> + '_ {
        self.due.iter().copied()
    }

    /// Where the next item of a level is.
    fn next_of(&self, level: Level) -> (u64, u64) {
        let times = self.levels.get(&level);
        times.map(|times| times.next).unwrap_or_default()
    }

    /// Where the row is that may have it.
    pub(super) fn start(&self, level: Level) -> (u64, u64) {
        let times = self.levels.get(&level);
        times.map_or((0, 0), |times| (times.next.0, times.row))
    }

    /// The next item of its level is read, which this row has.
    pub(super) fn pass(&mut self, item: DueRow, row: DueRow) {
        self.brought.remove(&item.item.id);
        let times = self.levels.entry(item.level).or_default();
        times.next = times.next.max((item.due, item.item.id + 1));
        times.row = row.item.id;
    }

    /// The levels that have, or had, any.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        self.levels.keys().copied()
    }

    /// What is due in a level was read; the next row has this time.
    pub(super) fn end(&mut self, level: Level, first: Option<u64>) {
        self.set_first(level, first);
        self.due.remove(&level);
    }
}
