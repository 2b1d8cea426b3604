//! Visits to the items of all keys, or of one.

use super::{KeyState, RingEnd, Rounds};
use crate::order::lists::Position;
use crate::order::SCAN_STEP;
use std::ops::{Range, RangeInclusive};

/// The progress of a visit: the numbers of the keys that are left, what was visited last of the first of them, and the numbers
/// of the items that were there when it began. It shows `all` of these, or only the ready ones.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(super) keys: Range<u32>,
    pub(super) at: Position,
    numbers: RangeInclusive<i64>,
    all: bool,
}

/// The key of an item that is being shown, and its position in the list of the key.
#[derive(Debug)]
pub(crate) struct KeyPosition {
    pub(super) key: u32,
    pub(super) at: Position,
}

impl<T> Rounds<T> {
    pub(super) fn visit(&mut self, keys: Range<u32>, all: bool) -> Visit {
        self.visits += 1;
        let numbers = self.first..=self.last;
        Visit {
            keys,
            at: Position::before(self.first),
            numbers,
            all,
        }
    }

    /// Begins a visit to the items of one key, ready or not.
    pub(crate) fn begin_visit_of(&mut self, number: u32) -> Visit {
        self.visit(number..number + 1, true)
    }

    /// Advances a visit to the next place, and returns its key. `None` if there is none, or none within [`SCAN_STEP`].
    pub(super) fn next_place(&self, visit: &mut Visit) -> Option<u32> {
        let before = Position::before(*visit.numbers.start());
        let first_only = self.is_serial() && !visit.all;
        for number in visit.keys.clone().take(SCAN_STEP) {
            let is_over = |key: &&KeyState| {
                let waits = !visit.all && key.held >= self.most_held;
                waits || first_only && (key.is_out() || visit.at != before)
            };
            let key = self.keys.get(number).filter(|key| !is_over(key));
            let next = key.and_then(|key| self.items.position_after(&key.items, visit.at));
            if let Some(next) = next.filter(|next| visit.numbers.contains(&next.number)) {
                visit.at = next;
                return Some(number);
            }
            (visit.keys.start, visit.at) = (number + 1, before);
        }
        None
    }

    /// Forgets an item that was shown, and returns how many items of its key must be unregistered now. The key may be without
    /// items then, or blocked by one that is being shown, or not any more.
    pub(super) fn forget_shown(&mut self, KeyPosition { key: number, at }: KeyPosition) -> u32 {
        let is_serial = self.is_serial();
        let key = &mut self.keys[number];
        let was_first = self.items.is_first(&key.items, at);
        self.items.forget(&mut key.items, at);
        key.len -= 1;
        let is_freed = is_serial && was_first && !self.items.begins_with_gap(&key.items);
        let (is_empty, is_out) = (key.items.is_empty(), key.is_out());
        let is_gone = key.len == 0 && key.held == 0;
        if !is_out {
            self.blocked -= usize::from(is_freed);
            if is_empty {
                self.leave_ring(number);
            }
        } else if is_freed && !is_empty && self.keys[number].held == 0 {
            self.join_ring(number, RingEnd::Front);
        }
        if is_gone {
            return 1 + self.forget(number);
        }
        self.note_age(number);
        1
    }
}
