//! What a group does with the items that it pushes: one that it removes too is not written.

use crate::batch::Run;
use std::collections::HashMap;

/// The items that a group pushes.
pub(super) struct Pushed {
    /// The states of items by number, from this one on: their numbers are nearly consecutive.
    base: u64,
    states: Vec<PushState>,
    /// Those that were numbered long before.
    older: HashMap<u64, PushState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PushState {
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
        let mut states = Self {
            base,
            states: vec![PushState::Absent; usize::try_from(end - base).unwrap_or(0)],
            older: HashMap::new(),
        };
        for run in runs {
            match states.of_run(*run) {
                Some(states) => states.fill(PushState::Pushed),
                None => run
                    .keys()
                    .for_each(|key| states.set(key.id, PushState::Pushed)),
            }
        }
        states
    }

    /// The states of a run, if all of them are known by number.
    fn of_run(&mut self, run: Run) -> Option<&mut [PushState]> {
        let first = self.index(run.first)?;
        self.states.get_mut(first..first.checked_add(run.len())?)
    }

    /// Removes the items of a run, if the group pushes all of them.
    pub(super) fn cancel(&mut self, run: Run) -> bool {
        let states = self.of_run(run);
        let states = states.filter(|states| states.iter().all(|state| *state == PushState::Pushed));
        states
            .map(|states| states.fill(PushState::Cancelled))
            .is_some()
    }

    /// Whether all items of a run are removed.
    pub(super) fn is_cancelled(&mut self, run: Run) -> bool {
        let states = self.of_run(run);
        states.is_some_and(|states| states.iter().all(|state| *state == PushState::Cancelled))
    }

    fn index(&self, id: u64) -> Option<usize> {
        id.checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok())
    }

    pub(super) fn get(&self, id: u64) -> PushState {
        let state = match self.index(id) {
            Some(index) => self.states.get(index),
            None => self.older.get(&id),
        };
        state.copied().unwrap_or(PushState::Absent)
    }

    pub(super) fn set(&mut self, id: u64, state: PushState) {
        match self.index(id).and_then(|index| self.states.get_mut(index)) {
            Some(known) => *known = state,
            None => drop(self.older.insert(id, state)),
        }
    }
}
