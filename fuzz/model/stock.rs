//! The items of one queue that nobody has, in the order in which they may leave.

use super::disciplines::Key;
use super::item::{Mark, Source};
use super::line::Lines;
use super::settings::{Rule, Settings, Ticks};
use super::sorted::Sorted;

/// What decides about the order of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    pub(crate) mark: Mark,
    pub(crate) key: Key,
    pub(crate) priority: u16,
    pub(crate) due: Option<Ticks>,
    /// When it was pushed first.
    pub(crate) since: Ticks,
}

/// The items of a plain queue, of which the order is not quite known, or those of another one.
#[derive(Debug)]
pub(crate) enum Stock {
    Lines(Lines),
    Sorted(Sorted),
}

impl Stock {
    pub(super) fn new(settings: &Settings, common: Source) -> Self {
        match settings.rule {
            Rule::Arrival => Self::Lines(Lines::new(common)),
            Rule::Fair(rules) => Self::Sorted(Sorted::fair(rules)),
            Rule::Priority(rules) => Self::Sorted(Sorted::by_priority(rules, settings.is_timed())),
        }
    }

    pub(super) fn ready(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len(),
            Self::Sorted(sorted) => sorted.ready(),
        }
    }

    /// Items that are not ready yet.
    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Lines(_) => 0,
            Self::Sorted(sorted) => sorted.waiting(),
        }
    }

    /// Ready items, the oldest among them.
    pub(super) fn heads(&self) -> Vec<Mark> {
        match self {
            Self::Lines(lines) => lines.heads(),
            Self::Sorted(sorted) => sorted.ready_items(),
        }
    }

    /// An item is pushed to a shard, which has this number.
    pub(super) fn push(&mut self, card: Card, shard: Source, number: usize) {
        match self {
            Self::Lines(lines) => lines.line(shard).fresh.push_back(card.mark),
            Self::Sorted(sorted) => sorted.push(card, number),
        }
    }

    /// As [`Lines::take`].
    pub(super) fn take(&mut self, mark: Mark, shard: Source, attended: bool) -> Option<Mark> {
        match self {
            Self::Lines(lines) => lines.take(mark, shard, attended),
            Self::Sorted(sorted) => {
                sorted.take(mark);
                None
            }
        }
    }

    /// Where items of this shard come back to.
    pub(super) fn home(&self, shard: Source) -> Source {
        match self {
            Self::Lines(_) => shard,
            Self::Sorted(_) => Source::default(),
        }
    }

    /// What a transaction took comes back, in this order.
    pub(super) fn give_back(&mut self, home: Source, run: Vec<Card>) {
        match self {
            Self::Lines(lines) => {
                let run = run.iter().map(|card| card.mark).collect();
                lines.line(home).add_run(run);
            }
            Self::Sorted(sorted) => sorted.give_back(run),
        }
    }

    /// An item comes back that was looked at, before the one that followed it.
    pub(super) fn put_back(&mut self, card: Card, shard: Source, follower: Option<Mark>) {
        match self {
            Self::Lines(lines) => lines.line(shard).put_back(card.mark, follower),
            Self::Sorted(sorted) => sorted.give_back(vec![card]),
        }
    }

    /// An item is gone for good that was taken.
    pub(super) fn leave(&mut self, mark: Mark) {
        if let Self::Sorted(sorted) = self {
            sorted.leave(mark);
        }
    }

    /// Somebody looks: what came in is at its place, and ready if it is due.
    pub(super) fn look(&mut self, now: Ticks) {
        if let Self::Sorted(sorted) = self {
            sorted.look(now);
        }
    }

    /// When something is ready by itself.
    pub(super) fn next_due(&self) -> Option<Ticks> {
        match self {
            Self::Lines(_) => None,
            Self::Sorted(sorted) => sorted.next_due(),
        }
    }
}
