//! An intake: empties the lanes for an order that sorts, which then says what comes next.
//!
//! Items that were given back are taken apart from those that were pushed, since they come first.

use super::consumer::Lane;
use super::cursor::Take;
use super::front::Front;
use super::lanes::Lanes;
use super::sink::Sink;
use super::tag::{Entry, Tag};
use crossbeam_utils::Backoff;
use std::sync::Arc;

/// Takes all there is, and keeps its queue's lanes alive.
pub(crate) struct Intake<T> {
    /// Those in use at the last look, with their numbers, in order.
    visited: Vec<(usize, Lane<T>)>,
    /// The version of what was in use then.
    version: u64,
    lanes: Arc<Lanes<T>>,
}

// SAFETY: as for `Seat`: lanes are visited, by which items of type T come.
unsafe impl<T: Send> Send for Intake<T> {}

/// Hands each item on.
struct Handed<F>(F);

impl<T> Intake<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
        Self {
            visited: Vec::new(),
            version: 0,
            lanes,
        }
    }

    /// Whether something was given back.
    #[inline]
    pub(crate) fn has_returned(&self) -> bool {
        !self.lanes.common().front().is_clear()
    }

    /// Takes what was given back: the latest transaction first, the items of each in their order.
    pub(crate) fn take_returned(&mut self, into: &mut Vec<Entry<T>>) {
        let front = self.lanes.common().front();
        while !front.is_clear() && front.take(into, usize::MAX) > 0 {}
    }

    /// Hands on what was pushed and is visible now.
    #[inline]
    pub(crate) fn take_arrived(&mut self, mut hand_on: impl FnMut(Entry<T>)) {
        if self.visited.is_empty() || self.version != self.lanes.version() {
            self.look_for_lanes();
        }
        let Self { visited, lanes, .. } = self;
        for (_, lane) in visited {
            let backlog = lane.backlog(lanes);
            if backlog > 0 {
                take_in(lane, lanes, backlog, &mut hand_on);
            }
        }
    }

    /// Visits the lanes in use, and leaves the others.
    #[cold]
    fn look_for_lanes(&mut self) {
        let Self { visited, lanes, .. } = self;
        // First, so that what changes meanwhile is found the next time.
        self.version = lanes.version();
        let mut known = std::mem::take(visited).into_iter().peekable();
        for number in lanes.in_use() {
            while let Some((_, mut gone)) = known.next_if(|known| known.0 < number) {
                gone.leave();
            }
            let lane = known.next_if(|known| known.0 == number);
            visited.push(lane.unwrap_or_else(|| (number, Lane::at(lanes, number))));
        }
        known.for_each(|(_, mut gone)| gone.leave());
    }

    /// Leaves all lanes, so that their memory can go back.
    pub(crate) fn leave(&mut self) {
        self.visited
            .drain(..)
            .for_each(|(_, mut lane)| lane.leave());
    }
}

/// Takes up to `most` items from the head of a lane.
fn take_in<T>(lane: &mut Lane<T>, lanes: &Lanes<T>, most: u64, hand_on: &mut impl FnMut(Entry<T>)) {
    let mut sink = Handed(hand_on);
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    let backoff = Backoff::new();
    while left > 0 {
        match lane.take_pushed(lanes, &mut sink, left) {
            Take::Got(count) => left -= count,
            Take::Spent => lane.enter(lanes),
            Take::Lost => backoff.spin(),
            Take::Empty | Take::Returned => break,
        }
    }
}

impl<T> Drop for Intake<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T, F: FnMut(Entry<T>)> Sink<T> for Handed<F> {
    #[inline]
    fn reserve(&mut self, wanted: usize, _home: &Front<T>) -> usize {
        wanted
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, tag: Tag) {
        (self.0)(Entry { item, tag });
    }
}
