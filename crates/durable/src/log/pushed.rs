//! What a group does with the items that it pushes: one that it removes too is not written.

use crate::batch::Run;
use std::collections::HashMap;

/// The items that a group pushes.
pub(super) struct Pushed {
    /// The fates of items by number, from this one on: their numbers are nearly consecutive.
    base: u64,
    fates: Vec<Fate>,
    /// Those that were numbered long before.
    older: HashMap<u64, Fate>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The group does not push it.
    Absent,
    Pushed,
    /// The group pushes and removes it.
    Cancelled,
}

impl Pushed {
    pub(super) fn of(runs: &[Run], count: usize) -> Self {
        let end = runs.iter().map(|run| run.end()).max().unwrap_or(0);
        let first = runs.iter().map(|run| run.first).min().unwrap_or(0);
        let base = first.max(end.saturating_sub(8 * count as u64 + 1024));
        let mut fates = Self {
            base,
            fates: vec![Fate::Absent; usize::try_from(end - base).unwrap_or(0)],
            older: HashMap::new(),
        };
        for run in runs {
            match fates.of_run(*run) {
                Some(fates) => fates.fill(Fate::Pushed),
                None => run.keys().for_each(|key| fates.set(key.id, Fate::Pushed)),
            }
        }
        fates
    }

    /// The fates of a run, if all of them are known by number.
    fn of_run(&mut self, run: Run) -> Option<&mut [Fate]> {
        let first = self.index(run.first)?;
        self.fates.get_mut(first..first.checked_add(run.len())?)
    }

    /// Removes the items of a run, if the group pushes all of them.
    pub(super) fn cancel(&mut self, run: Run) -> bool {
        let fates = self.of_run(run);
        let fates = fates.filter(|fates| fates.iter().all(|fate| *fate == Fate::Pushed));
        fates.map(|fates| fates.fill(Fate::Cancelled)).is_some()
    }

    /// Whether all items of a run are removed.
    pub(super) fn is_cancelled(&mut self, run: Run) -> bool {
        let fates = self.of_run(run);
        fates.is_some_and(|fates| fates.iter().all(|fate| *fate == Fate::Cancelled))
    }

    fn index(&self, id: u64) -> Option<usize> {
        id.checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok())
    }

    pub(super) fn get(&self, id: u64) -> Fate {
        let fate = match self.index(id) {
            Some(index) => self.fates.get(index),
            None => self.older.get(&id),
        };
        fate.copied().unwrap_or(Fate::Absent)
    }

    pub(super) fn set(&mut self, id: u64, fate: Fate) {
        match self.index(id).and_then(|index| self.fates.get_mut(index)) {
            Some(known) => *known = fate,
            None => drop(self.older.insert(id, fate)),
        }
    }
}
