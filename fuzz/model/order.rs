//! The plain model of one queue.

use super::item::{Mark, Source};
use super::waits::Waiters;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What is ready in a queue, in which order it may leave, and the counts.
#[derive(Debug, Default)]
pub(crate) struct Order {
    lines: BTreeMap<Source, Line>,
    aborts: HashMap<Mark, u32>,
    pub(crate) capacity: Option<usize>,
    pub(crate) closed: bool,
    /// The open transactions, by the source of their handle.
    pub(super) open: HashMap<Source, Work>,
    pub(crate) poppers: Waiters,
    pub(crate) pushers: Waiters,
    pub(crate) pushed: usize,
    pub(crate) held: usize,
    pub(crate) committed: usize,
    pub(crate) aborted: usize,
}

/// How much a transaction holds and has staged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) held: usize,
    pub(super) staged: usize,
}

/// The ready items of one source.
#[derive(Debug, Default)]
struct Line {
    fresh: VecDeque<Mark>,
    /// One run for each aborted transaction, in the order in which it took the items.
    runs: Vec<Vec<Mark>>,
}

impl Order {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.pushed - self.held - self.committed
    }

    /// Items become ready.
    pub(crate) fn push(&mut self, marks: &[Mark]) {
        self.pushed += marks.len();
        for &mark in marks {
            self.lines
                .entry(mark.source)
                .or_default()
                .fresh
                .push_back(mark);
        }
    }

    /// A transaction takes an item. Returns which attempt this is.
    pub(crate) fn hold(&mut self, mark: Mark) -> u32 {
        self.lines.entry(mark.source).or_default().take(mark);
        self.held += 1;
        self.aborts.get(&mark).map_or(1, |aborts| aborts + 1)
    }

    /// An item was held by the transaction of this source.
    pub(crate) fn hold_in(&mut self, source: Source) {
        self.open.entry(source).or_default().held += 1;
    }

    pub(crate) fn stage_in(&mut self, source: Source) {
        self.open.entry(source).or_default().staged += 1;
    }

    /// The transaction of this source has ended.
    pub(crate) fn end(&mut self, source: Source) {
        self.open.remove(&source);
    }

    /// What a transaction held is gone for good.
    pub(crate) fn commit(&mut self, held: &[Mark]) {
        self.held -= held.len();
        self.committed += held.len();
    }

    /// What a transaction held comes back.
    pub(crate) fn abort(&mut self, held: &[Mark]) {
        self.held -= held.len();
        self.aborted += held.len();
        let mut runs = BTreeMap::<Source, Vec<Mark>>::new();
        for &mark in held {
            *self.aborts.entry(mark).or_default() += 1;
            runs.entry(mark.source).or_default().push(mark);
        }
        for (source, run) in runs {
            self.lines.entry(source).or_default().runs.push(run);
        }
    }
}

impl Line {
    /// Takes an item that may be the next.
    fn take(&mut self, mark: Mark) {
        let Some(run) = self.runs.iter_mut().find(|run| run.contains(&mark)) else {
            assert!(self.runs.is_empty(), "{mark:?} overtakes {:?}", self.runs);
            let oldest = self.fresh.pop_front();
            assert_eq!(
                oldest,
                Some(mark),
                "not the oldest ready item of its source"
            );
            return;
        };
        let place = run.iter().position(|&other| other == mark).unwrap();
        // A transaction may have taken items of two aborted runs against the order of their
        // pushes: either order is the original one then.
        let overtaken = run[..place].iter().find(|&&other| other < mark);
        assert_eq!(overtaken, None, "{mark:?} comes back before it");
        run.remove(place);
        self.runs.retain(|run| !run.is_empty());
    }
}
