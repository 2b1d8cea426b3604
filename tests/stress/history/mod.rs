//! Histories of calls, and their violations.
//!
//! A history is a set of events with the logical time before and after each call. Each call took effect at some
//! instant between its two times. The following violations are certain, whatever these instants are:
//!
//! - every committed item is taken by exactly one committed pop, the final drain included ([`lives`]);
//! - no item is overtaken by a later one of its stream ([`order`]);
//! - no `Empty` while an item was ready during the whole call, where an item counts as ready as soon as an item of
//!   the same commit was popped, from any queue ([`empty`]).

mod empty;
mod lives;
mod order;
#[cfg(test)]
mod planted;
pub(crate) mod rank;

pub(crate) use lives::Life;

/// The logical times before and after a call. No two calls share a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// How a hold ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The pop was committed.
    Taken,
    /// The pop was aborted, during this call.
    Returned(Span),
}

/// An event of a thread at a queue.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A commit made these items visible, pushed in this order by one handle, or by one thread without a handle: the stream. The parts of a commit over
    /// several queues have the same span.
    Push {
        queue: u32,
        stream: u64,
        span: Span,
        items: Vec<usize>,
    },
    /// One call claimed these items, in this order.
    Hold {
        queue: u32,
        claim: Span,
        items: Vec<usize>,
        end: End,
    },
    /// A call returned `Empty`.
    Empty { queue: u32, span: Span },
}

/// Results that are impossible for a correct queue. Items are given by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Violation {
    /// Popped, and not committed to this queue before.
    Phantom { item: usize },
    /// Popped while another pop held it, or after it was taken.
    Duplicate { item: usize },
    /// Committed, and neither taken nor found by the final drain.
    Lost { item: usize },
    /// Ready during the whole time when a later one of its stream was claimed.
    Overtaken { item: usize, by: usize },
    /// Ready during the whole call that returned `Empty`.
    FalseEmpty { item: usize, call: Span },
}

impl Violation {
    fn items(self) -> [usize; 2] {
        match self {
            Self::Overtaken { item, by } => [item, by],
            Self::Phantom { item }
            | Self::Duplicate { item }
            | Self::Lost { item }
            | Self::FalseEmpty { item, .. } => [item, item],
        }
    }
}

/// All violations of a history that ends with a drain of every queue.
pub(crate) fn violations(events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    let lives = lives::trace(events, &mut found);
    let readies = lives::readies(&lives);
    order::check(&lives, &readies, &mut found);
    empty::check(events, &lives, &readies, &mut found);
    found
}

/// The lives of the items of a history that has no violations.
pub(crate) fn sound_lives(events: &[Event]) -> Vec<Life> {
    let found = violations(events);
    let mut lives = lives::trace(events, &mut Vec::new());
    if let Some(first) = found.first() {
        lives.retain(|life| first.items().contains(&life.item));
        panic!("{} violations, first {first:?} of {lives:#?}", found.len());
    }
    lives
}
