//! The items of a queue with an exactly known order.

use super::disciplines::{Fairness, Urgency};
use super::item::Mark;
use super::priorities::Priorities;
use super::rounds::Rounds;
use super::settings::Ticks;
use super::stock::Card;
use std::collections::BTreeMap;
use std::mem;

/// Sorted items, and those not taken in yet.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// Returned items that were not taken in: one run for each transaction.
    returned: Vec<Vec<Card>>,
    /// Pushed items that were not taken in, by shard number.
    pushed: BTreeMap<usize, Vec<Card>>,
    pub(super) rack: Rack,
}

#[derive(Debug)]
pub(super) enum Rack {
    Fair(Rounds),
    Priority(Priorities),
}

impl Sorted {
    pub(super) fn fair(rules: Fairness) -> Self {
        Self::of(Rack::Fair(Rounds::new(rules)))
    }

    pub(super) fn by_priority(rules: Urgency, timed: bool) -> Self {
        Self::of(Rack::Priority(Priorities::new(rules, timed)))
    }

    fn of(rack: Rack) -> Self {
        Self {
            returned: Vec::new(),
            pushed: BTreeMap::new(),
            rack,
        }
    }

    fn len(&self) -> usize {
        match &self.rack {
            Rack::Fair(rounds) => rounds.len(),
            Rack::Priority(priorities) => priorities.len(),
        }
    }

    pub(super) fn ready(&self) -> usize {
        self.ready_items().len()
    }

    /// Items that are not ready, or not taken in.
    pub(super) fn waiting(&self) -> usize {
        let returned: usize = self.returned.iter().map(Vec::len).sum();
        let pushed: usize = self.pushed.values().map(Vec::len).sum();
        returned + pushed + self.len() - self.ready()
    }

    pub(super) fn ready_items(&self) -> Vec<Mark> {
        match &self.rack {
            Rack::Fair(rounds) => rounds.ready(),
            Rack::Priority(priorities) => priorities.ready(),
        }
    }

    pub(super) fn push(&mut self, card: Card, shard: usize) {
        self.pushed.entry(shard).or_default().push(card);
    }

    pub(super) fn give_back(&mut self, run: Vec<Card>) {
        self.returned.push(run);
    }

    /// Returned items come first, the last run before all others; then pushed items.
    pub(super) fn take_in(&mut self, now: Ticks) {
        for run in mem::take(&mut self.returned) {
            for card in run.into_iter().rev() {
                match &mut self.rack {
                    Rack::Fair(rounds) => rounds.come_back(card),
                    Rack::Priority(priorities) => priorities.come_back(card),
                }
            }
        }
        for card in mem::take(&mut self.pushed).into_values().flatten() {
            match &mut self.rack {
                Rack::Fair(rounds) => rounds.arrive(card),
                Rack::Priority(priorities) => priorities.arrive(card),
            }
        }
        if let Rack::Priority(priorities) = &mut self.rack {
            priorities.advance(now);
        }
    }

    pub(super) fn take(&mut self, mark: Mark) {
        match &mut self.rack {
            Rack::Fair(rounds) => assert_eq!(rounds.next(), Some(mark), "the next item"),
            Rack::Priority(priorities) => priorities.take(mark),
        }
    }

    pub(super) fn leave(&mut self, mark: Mark) {
        if let Rack::Fair(rounds) = &mut self.rack {
            rounds.leave(mark);
        }
    }

    pub(super) fn next_due(&self) -> Option<Ticks> {
        match &self.rack {
            Rack::Fair(_) => None,
            Rack::Priority(priorities) => priorities.next_due(),
        }
    }
}
