//! The available items of one queue, in the order in which they may be dequeued.

use super::disciplines::Key;
use super::item::{Mark, Source};
use super::line::Lines;
use super::settings::{Rule, Settings, Ticks};
use super::sorted::Sorted;

/// The facts that determine the order of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    pub(crate) mark: Mark,
    pub(crate) key: Key,
    pub(crate) priority: u16,
    pub(crate) due: Option<Ticks>,
    /// The time of the first push.
    pub(crate) since: Ticks,
}

/// The items of a plain queue, whose order is only partly known, or those of another queue.
#[derive(Debug)]
pub(crate) enum Stock {
    Lines(Lines),
    Sorted(Sorted),
}

impl Stock {
    pub(super) fn new(settings: &Settings, injector: Source) -> Self {
        match settings.rule {
            Rule::Arrival => Self::Lines(Lines::new(injector)),
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

    /// Items that are not ready.
    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Lines(_) => 0,
            Self::Sorted(sorted) => sorted.waiting(),
        }
    }

    /// Ready items, including the oldest one.
    pub(super) fn heads(&self) -> Vec<Mark> {
        match self {
            Self::Lines(lines) => lines.heads(),
            Self::Sorted(sorted) => sorted.ready_items(),
        }
    }

    /// An item is pushed to the shard with this number.
    pub(super) fn push(&mut self, card: Card, shard: Source, number: usize) {
        match self {
            Self::Lines(lines) => lines.line(shard).fresh.push_back(card.mark),
            Self::Sorted(sorted) => sorted.push(card, number),
        }
    }

    /// Like [`Lines::take`].
    pub(super) fn take(
        &mut self,
        mark: Mark,
        shard: Source,
        checks_returned: bool,
    ) -> Option<Mark> {
        match self {
            Self::Lines(lines) => lines.take(mark, shard, checks_returned),
            Self::Sorted(sorted) => {
                sorted.take(mark);
                None
            }
        }
    }

    /// Where returned items of this shard go.
    pub(super) fn home(&self, shard: Source) -> Source {
        match self {
            Self::Lines(_) => shard,
            Self::Sorted(_) => Source::default(),
        }
    }

    /// A transaction returns items, in this order.
    pub(super) fn give_back(&mut self, home: Source, run: Vec<Card>) {
        match self {
            Self::Lines(lines) => {
                let run = run.iter().map(|card| card.mark).collect();
                lines.line(home).add_run(run);
            }
            Self::Sorted(sorted) => sorted.give_back(run),
        }
    }

    /// A peeked item is put back, before the item that followed it.
    pub(super) fn put_back(&mut self, card: Card, shard: Source, follower: Option<Mark>) {
        match self {
            Self::Lines(lines) => lines.line(shard).put_back(card.mark, follower),
            Self::Sorted(sorted) => sorted.give_back(vec![card]),
        }
    }

    /// A taken item is gone for good.
    pub(super) fn leave(&mut self, mark: Mark) {
        if let Self::Sorted(sorted) = self {
            sorted.leave(mark);
        }
    }

    /// A consumer takes in the pushed items: each is in its place, and ready if it is due.
    pub(super) fn take_in(&mut self, now: Ticks) {
        if let Self::Sorted(sorted) = self {
            sorted.take_in(now);
        }
    }

    /// The time at which the next item becomes ready by itself.
    pub(super) fn next_due(&self) -> Option<Ticks> {
        match self {
            Self::Lines(_) => None,
            Self::Sorted(sorted) => sorted.next_due(),
        }
    }
}
