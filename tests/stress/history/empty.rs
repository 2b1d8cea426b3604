//! `Empty` is wrong if an item was ready from before the call until after it.

use super::lives::{Life, Ready};
use super::{Event, Span, Violation};
use std::collections::BTreeMap;

/// The intervals and calls of one queue.
#[derive(Default)]
struct Queue<'h> {
    calls: Vec<Span>,
    readies: Vec<&'h Ready>,
}

pub(super) fn check(
    events: &[Event],
    lives: &[Life],
    readies: &[Ready],
    found: &mut Vec<Violation>,
) {
    let mut queues: BTreeMap<u32, Queue> = BTreeMap::new();
    for event in events {
        if let Event::Empty { queue, span } = event {
            queues.entry(*queue).or_default().calls.push(*span);
        }
    }
    for ready in readies {
        let queue = lives[ready.life].queue;
        queues.entry(queue).or_default().readies.push(ready);
    }
    for queue in queues.into_values() {
        found.extend(queue.false_empties(lives));
    }
}

impl Queue<'_> {
    /// Iterates over the calls in the order of their begins; among all items ready by then, the one that stays
    /// longest proves the violation, if there is one.
    fn false_empties(mut self, lives: &[Life]) -> Vec<Violation> {
        self.calls.sort_by_key(|call| call.from);
        self.readies.sort_by_key(|ready| ready.sure);
        let mut readies = self.readies.into_iter().peekable();
        let mut longest: Option<&Ready> = None;
        let mut found = Vec::new();
        for call in self.calls {
            while let Some(ready) = readies.next_if(|ready| ready.sure < call.from) {
                if longest.map_or(true, |longest| longest.until() < ready.until()) {
                    longest = Some(ready);
                }
            }
            if let Some(ready) = longest.filter(|ready| ready.until() > call.to) {
                let item = lives[ready.life].item;
                found.push(Violation::FalseEmpty { item, call });
            }
        }
        found
    }
}
