//! The ready items of a plain queue, in the order in which they may be dequeued.

use super::item::{Mark, Source};
use std::collections::{BTreeMap, VecDeque};

/// The ready items of all sources.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Where items are put at the head.
    injector: Source,
    lines: BTreeMap<Source, Line>,
}

impl Lines {
    pub(super) fn new(injector: Source) -> Self {
        let strict = Line {
            strict: true,
            ..Line::default()
        };
        Self {
            injector,
            lines: BTreeMap::from([(injector, strict)]),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.values().map(Line::len).sum()
    }

    pub(super) fn line(&mut self, source: Source) -> &mut Line {
        self.lines.entry(source).or_default()
    }

    /// The items one of which must be the oldest.
    pub(super) fn heads(&self) -> Vec<Mark> {
        let lines = self.lines.values();
        lines
            .flat_map(|line| line.returned().chain(line.fresh.front()))
            .copied()
            .collect()
    }

    /// Takes an item of its source, and returns the one that follows it. `checks_returned`: no item overtakes those put at
    /// the head.
    pub(super) fn take(
        &mut self,
        mark: Mark,
        source: Source,
        checks_returned: bool,
    ) -> Option<Mark> {
        let head = self.line(self.injector);
        let at_head = head.returned().any(|&other| other == mark);
        assert!(
            !checks_returned || at_head || head.runs.is_empty(),
            "{mark:?} overtakes what was put at the head: {:?}",
            head.runs
        );
        self.line(source).take(mark)
    }
}

/// The ready items of one source.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) fresh: VecDeque<Mark>,
    /// One run for each aborted transaction, in the order in which it took the items, and one for each release of due
    /// items, in the order of their due times.
    pub(super) runs: Vec<Vec<Mark>>,
    /// Whether the order of a run is the only valid one, and the order of the pushes is not.
    pub(super) strict: bool,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.returned().count()
    }

    /// The items of all runs.
    pub(super) fn returned(&self) -> impl Iterator<Item = &Mark> {
        self.runs.iter().flatten()
    }

    pub(super) fn add_run(&mut self, run: Vec<Mark>) {
        if !run.is_empty() {
            self.runs.push(run);
        }
    }

    /// Takes an item that may be the next, and returns the one that follows it in its run.
    pub(super) fn take(&mut self, mark: Mark) -> Option<Mark> {
        let Some(run) = self.runs.iter_mut().find(|run| run.contains(&mark)) else {
            assert!(self.runs.is_empty(), "{mark:?} overtakes {:?}", self.runs);
            let oldest = self.fresh.pop_front();
            assert_eq!(
                oldest,
                Some(mark),
                "not the oldest ready item of its source"
            );
            return None;
        };
        let place = run.iter().position(|&other| other == mark).unwrap();
        // A transaction may have taken items of two aborted runs against the order of their pushes: then either order
        // is valid.
        let overtaken = run[..place]
            .iter()
            .find(|&&other| self.strict || other < mark);
        assert_eq!(overtaken, None, "{mark:?} comes back before it");
        run.remove(place);
        let follower = run.get(place).copied();
        self.runs.retain(|run| !run.is_empty());
        follower
    }

    /// Puts a peeked item back, before the item that followed it if that is still the next.
    pub(super) fn put_back(&mut self, mark: Mark, follower: Option<Mark>) {
        let next = |run: &&mut Vec<Mark>| run.first().copied() == follower;
        match self.runs.iter_mut().find(next) {
            Some(run) => run.insert(0, mark),
            None => self.runs.push(vec![mark]),
        }
    }
}
