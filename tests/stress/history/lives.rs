//! The life of each item: its push, its holds, and the intervals during which it was ready.

use super::{End, Event, Span, Violation};
use std::collections::HashMap;

/// An item from its commit on.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) item: usize,
    pub(crate) queue: u32,
    pub(crate) stream: u64,
    pub(crate) push: Span,
    /// Its index among the items of its push.
    place: usize,
    /// In the order in which they happened.
    pub(crate) holds: Vec<Hold>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) claim: Span,
    /// Its index among the items of the call.
    pub(super) place: usize,
    pub(crate) end: End,
}

impl Life {
    /// Whether this item must be popped before the other one of its stream, if none is aborted.
    pub(super) fn precedes(&self, other: &Life) -> bool {
        if self.push == other.push {
            self.place < other.place
        } else {
            self.push.to < other.push.from
        }
    }

    /// Items are returned before others end their claim: so the ends of the claims of one item give the order of its
    /// holds.
    fn check(&mut self, found: &mut Vec<Violation>) {
        let item = self.item;
        self.holds.sort_by_key(|hold| hold.claim.to);
        if self
            .holds
            .first()
            .is_some_and(|h| h.claim.to < self.push.from)
        {
            found.push(Violation::Phantom { item });
        }
        let shared = |pair: &[Hold]| match pair[0].end {
            End::Taken => true,
            End::Returned(span) => pair[1].claim.to < span.from,
        };
        if self.holds.windows(2).any(shared) {
            found.push(Violation::Duplicate { item });
        }
        if self.holds.last().map(|hold| hold.end) != Some(End::Taken) {
            found.push(Violation::Lost { item });
        }
    }
}

/// An interval during which an item was ready: between a push or an abort and the next claim.
pub(super) struct Ready {
    /// Index of the life.
    pub(super) life: usize,
    /// The call that made it ready.
    pub(super) since: Span,
    /// From this time on it was certainly ready.
    pub(super) sure: u64,
    /// The previous hold, if its abort made the item ready.
    pub(super) returned_from: Option<Hold>,
    pub(super) next: Option<Hold>,
}

impl Ready {
    pub(super) fn fresh(&self) -> bool {
        self.returned_from.is_none()
    }

    /// Up to this time it was certainly ready.
    pub(super) fn until(&self) -> u64 {
        self.next.map_or(u64::MAX, |hold| hold.claim.from)
    }
}

/// The lives of all pushed items, sorted by number, with their holds checked.
pub(super) fn trace(events: &[Event], found: &mut Vec<Violation>) -> Vec<Life> {
    let mut lives = born(events);
    for event in events {
        if let Event::Hold {
            queue,
            claim,
            items,
            end,
        } = event
        {
            for (place, &item) in items.iter().enumerate() {
                let life = lives.binary_search_by_key(&item, |life| life.item);
                match life.map(|index| &mut lives[index]) {
                    Ok(life) if life.queue == *queue => life.holds.push(Hold {
                        claim: *claim,
                        place,
                        end: *end,
                    }),
                    _ => found.push(Violation::Phantom { item }),
                }
            }
        }
    }
    for life in &mut lives {
        life.check(found);
    }
    lives
}

fn born(events: &[Event]) -> Vec<Life> {
    let mut lives = Vec::new();
    for event in events {
        if let Event::Push {
            queue,
            stream,
            span,
            items,
        } = event
        {
            lives.extend(items.iter().enumerate().map(|(place, &item)| Life {
                item,
                queue: *queue,
                stream: *stream,
                push: *span,
                place,
                holds: Vec::new(),
            }));
        }
    }
    lives.sort_by_key(|life| life.item);
    lives
}

/// All intervals during which items were ready. A commit is visible at once: when one of its items has been claimed,
/// all have become ready.
pub(super) fn readies(lives: &[Life]) -> Vec<Ready> {
    let mut visible = HashMap::new();
    for life in lives {
        let claimed = life.holds.first().map_or(u64::MAX, |hold| hold.claim.to);
        let sure = visible.entry(life.push.from).or_insert(life.push.to);
        *sure = claimed.min(*sure);
    }
    let mut readies = Vec::new();
    for (index, life) in lives.iter().enumerate() {
        readies.push(Ready {
            life: index,
            since: life.push,
            sure: visible[&life.push.from],
            returned_from: None,
            next: life.holds.first().copied(),
        });
        for (number, hold) in life.holds.iter().enumerate() {
            if let End::Returned(span) = hold.end {
                readies.push(Ready {
                    life: index,
                    since: span,
                    sure: span.to,
                    returned_from: Some(*hold),
                    next: life.holds.get(number + 1).copied(),
                });
            }
        }
    }
    readies
}
