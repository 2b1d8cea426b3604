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
//! Whether more can come to a closed queue is asked between the passes. At that instant nothing was
//! ready. An item that a transaction held then was claimed before: not after the first look at its
//! lane, or the mark would have changed; so the desk said so when it was asked, or the transaction had
//! ended by then, and what it gave back was claimed after the look or is visible now. What it put
//! elsewhere was there when that was asked: nothing left it meanwhile, since it would be ready.
//!
//! A push that comes late, and finds the queue closed, takes its item back if it is at the head, and otherwise
//! goes on, since the item before it is still to be popped. It passes a full barrier between its publication
//! and its look at the head; the caller passes one between the passes. So if the first pass sees that the item
//! before was claimed, by whatever thread, and the push did not, then the second pass sees what the push
//! has published.
//!
//! A queue whose order sorts asks in between whether that has none. Items come there only from the lanes,
//! by claims; whoever claims them has the lock of the structure until they are in it. So if the marks are
//! unchanged, none came since the first pass but such that were there when the lock was had, and what was
//! seen empty was still so at the second pass.
//!
//! The passes go over the lanes in use, and neither before the first pass nor after the second is the version
//! of what is in use another: so both have seen the same lanes. All marks only grow, so their sum is unchanged
//! only if each is. A lane that is not in use is empty: it was found so by somebody who leased it, before it
//! was retired, and nothing comes there before it is in use again. Whoever finds it retired sees what all who
//! took something there had seen.

use super::front::Front;
use super::lanes::Lanes;
use crate::sync::{barrier, step};

impl<T> Lanes<T> {
    #[inline]
    pub(super) fn front(&self, lane: usize) -> &Front<T> {
        match lane.checked_sub(1) {
            None => self.common().front(),
            Some(number) => self.shards().get(number).front(),
        }
    }

    /// The mark of a lane.
    #[inline]
    pub(super) fn mark(&self, lane: usize) -> u64 {
        let front = self.front(lane);
        let emptied = front.emptied();
        front.head().position().wrapping_add(emptied)
    }

    /// The second pass: the marks if no item is visible anywhere.
    pub(super) fn marks_if_empty(&self) -> Option<Marks> {
        let sum = self.lane_mark_if_empty(0)?;
        if self.end() == 1 {
            return Some(Marks { lanes: 0, sum });
        }
        self.further_marks_if_empty(sum)
    }

    /// Adds the marks of the shards to that of the common one.
    fn further_marks_if_empty(&self, mut sum: u64) -> Option<Marks> {
        for lane in self.shards_from(0) {
            sum = sum.wrapping_add(self.lane_mark_if_empty(lane)?);
        }
        let lanes = self.version();
        Some(Marks { lanes, sum })
    }

    /// No marks yet, to begin a first pass.
    pub(super) fn no_marks(&self) -> Marks {
        Marks {
            lanes: self.version(),
            sum: 0,
        }
    }

    fn lane_mark_if_empty(&self, lane: usize) -> Option<u64> {
        let (front, position) = match lane.checked_sub(1) {
            None => (self.common().front(), self.common().position_if_empty()?),
            Some(number) => {
                let shard = self.shards().get(number);
                (shard.front(), shard.position_if_empty()?)
            }
        };
        let exhausted = front.is_exhausted();
        exhausted.then(|| position.wrapping_add(front.emptied()))
    }

    /// Whether no item is visible in a lane.
    pub(super) fn looks_empty(&self, lane: usize) -> bool {
        self.lane_mark_if_empty(lane).is_some()
    }

    fn marks(&self) -> Marks {
        let mut marks = self.no_marks();
        self.in_use().for_each(|lane| marks.add(self.mark(lane)));
        marks
    }

    /// Whether the queue is strictly empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.remainder(|| true) != Remainder::Ready
    }

    /// What is left in a queue that takes no more pushes.
    ///
    /// The caller has passed a heavy barrier since pushes are refused. `none_in_order`: whether an order
    /// has none; asked first, since items leave it for transactions, and come there only from the lanes.
    /// `none_elsewhere`: whether no item is neither ready nor held; asked after the desks, since items go
    /// there from them.
    pub(crate) fn left_when_closed(
        &self,
        mut none_in_order: impl FnMut() -> bool,
        none_elsewhere: impl Fn() -> bool,
    ) -> Remainder {
        self.remainder(|| {
            // ORDERING: SeqCst, between the two looks; pairs with `shard.retract`.
            barrier::full("strict.between");
            step!("strict.voids-nothing", self.common().void_reserved());
            none_in_order() && !self.desks().in_use().any(|desk| desk.is_open()) && none_elsewhere()
        })
    }

    /// Looks twice for an item, and asks in between whether none can come.
    pub(crate) fn remainder(&self, mut none_can_come: impl FnMut() -> bool) -> Remainder {
        loop {
            let marks = self.marks();
            if self.marks_if_empty().is_none() {
                return Remainder::Ready;
            }
            if !none_can_come() {
                return Remainder::Open;
            }
            match self.marks_if_empty() {
                None => return Remainder::Ready,
                Some(now) if now == marks => return Remainder::Nothing,
                Some(_) => {}
            }
        }
    }
}

/// The marks of all lanes in use, as one pass has seen them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks {
    /// The version of what is in use.
    lanes: u64,
    sum: u64,
}

impl Marks {
    /// Adds the mark of a lane.
    pub(super) fn add(&mut self, mark: u64) {
        self.sum = self.sum.wrapping_add(mark);
    }
}

/// What is left in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remainder {
    /// An item is ready.
    Ready,
    /// A transaction holds or has staged something.
    Open,
    /// Nothing, at one instant.
    Nothing,
}
