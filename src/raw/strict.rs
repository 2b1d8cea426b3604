//! The strict Empty: an answer that was true at one instant of the call.
//!
//! Each lane has a mark, the sum of two counts that only grow: positions claimed at its head, and
//! last items of returned runs about to be claimed. The caller reads each mark and looks for an item
//! after it (first pass), then looks at every lane again (second pass): no item visible, no run with items, and *then* the mark
//! unchanged. Why every lane was empty at the instant between the passes:
//!
//! - an item at the head then was either claimed since, which moves the head, or is visible now;
//! - a returned item then is either in a run with items now, or that run was used up since. Whoever
//!   claimed its last item looked at the run, stepped `emptied`, and claimed, in this order. A step
//!   after the first pass has changed the mark. A step before it means that the run was linked
//!   before it too and not yet used up, so the first pass, which looks at the runs after it has
//!   read the mark, has found an item there.
//!
//! A lane that joins in between starts at mark 0 and counts like any other. All marks only grow, so
//! their sum is unchanged only if each is.

use super::front::Front;
use super::lanes::Lanes;

impl<T> Lanes<T> {
    fn front(&self, lane: usize) -> &Front<T> {
        match lane.checked_sub(1) {
            None => self.common().front(),
            Some(number) => self.shards().get(number).front(),
        }
    }

    /// The mark of a lane.
    pub(super) fn mark(&self, lane: usize) -> u64 {
        let front = self.front(lane);
        let emptied = front.emptied();
        front.head().position().wrapping_add(emptied)
    }

    /// The second pass: the sum of the marks if no item is visible anywhere.
    pub(super) fn mark_if_empty(&self) -> Option<u64> {
        (0..self.count()).try_fold(0u64, |sum, lane| {
            let mark = self.lane_mark_if_empty(lane)?;
            Some(sum.wrapping_add(mark))
        })
    }

    fn lane_mark_if_empty(&self, lane: usize) -> Option<u64> {
        let position = match lane.checked_sub(1) {
            None => self.common().position_if_empty(),
            Some(number) => self.shards().get(number).position_if_empty(),
        }?;
        let front = self.front(lane);
        let exhausted = front.is_exhausted();
        exhausted.then(|| position.wrapping_add(front.emptied()))
    }

    /// Whether the queue is strictly empty.
    pub(crate) fn is_empty(&self) -> bool {
        loop {
            let marks = (0..self.count())
                .map(|lane| self.mark(lane))
                .fold(0, u64::wrapping_add);
            let looked = self.mark_if_empty();
            match looked.and_then(|_| self.mark_if_empty()) {
                None => return false,
                Some(now) if now == marks => return true,
                Some(_) => {}
            }
        }
    }
}
