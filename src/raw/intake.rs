//! An intake: empties the shards for an order that sorts, which then says what comes next.
//!
//! Items that were given back are taken apart from those that were pushed, since they come first.

use super::consumer::ShardCursor;
use super::cursor::Take;
use super::entry::{DeliveryMeta, Entry};
use super::front::Front;
use super::shards::Shards;
use super::sink::Sink;
use crossbeam_utils::Backoff;
use std::sync::Arc;

/// Takes all there is, and keeps its queue's shards alive.
pub(crate) struct Intake<T> {
    /// Those in use at the last look, with their numbers, in order.
    visited: Vec<(usize, ShardCursor<T>)>,
    /// The version of what was in use then.
    version: u64,
    shards: Arc<Shards<T>>,
}

// SAFETY: as for `Endpoint`: shards are visited, by which items of type T come.
unsafe impl<T: Send> Send for Intake<T> {}

/// Hands each item on.
struct ForEach<F>(F);

impl<T> Intake<T> {
    pub(crate) fn new(shards: Arc<Shards<T>>) -> Self {
        Self {
            visited: Vec::new(),
            version: 0,
            shards,
        }
    }

    /// Whether something was given back.
    #[inline]
    pub(crate) fn has_returned(&self) -> bool {
        !self.shards.injector().front().is_clear()
    }

    /// Takes what was given back: the latest transaction first, the items of each in their order.
    pub(crate) fn take_returned(&mut self, into: &mut Vec<Entry<T>>) {
        let front = self.shards.injector().front();
        while !front.is_clear() && front.take(into, usize::MAX) > 0 {}
    }

    /// Hands on what was pushed and is visible now.
    #[inline]
    pub(crate) fn take_arrived(&mut self, mut hand_on: impl FnMut(Entry<T>)) {
        if self.visited.is_empty() || self.version != self.shards.version() {
            self.find_shards();
        }
        let Self {
            visited, shards, ..
        } = self;
        for (_, shard) in visited {
            let backlog = shard.backlog(shards);
            if backlog > 0 {
                take_in(shard, shards, backlog, &mut hand_on);
            }
        }
    }

    /// Visits the shards in use, and leaves the others.
    #[cold]
    fn find_shards(&mut self) {
        let Self {
            visited, shards, ..
        } = self;
        // First, so that what changes meanwhile is found the next time.
        self.version = shards.version();
        let mut known = std::mem::take(visited).into_iter().peekable();
        for number in shards.in_use() {
            while let Some((_, mut gone)) = known.next_if(|known| known.0 < number) {
                gone.leave();
            }
            let shard = known.next_if(|known| known.0 == number);
            visited.push(shard.unwrap_or_else(|| (number, ShardCursor::at(shards, number))));
        }
        known.for_each(|(_, mut gone)| gone.leave());
    }

    /// Leaves all shards, so that their memory can go back.
    pub(crate) fn leave(&mut self) {
        self.visited
            .drain(..)
            .for_each(|(_, mut shard)| shard.leave());
    }
}

/// Takes up to `most` items from the head of a shard.
fn take_in<T>(
    shard: &mut ShardCursor<T>,
    shards: &Shards<T>,
    most: u64,
    hand_on: &mut impl FnMut(Entry<T>),
) {
    let mut sink = ForEach(hand_on);
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    let backoff = Backoff::new();
    while left > 0 {
        match shard.take_pushed(shards, &mut sink, left) {
            Take::Got(count) => left -= count,
            Take::Spent => shard.enter(shards),
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

impl<T, F: FnMut(Entry<T>)> Sink<T> for ForEach<F> {
    #[inline]
    fn reserve(&mut self, wanted: usize, _home: &Front<T>) -> usize {
        wanted
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        (self.0)(Entry { item, delivery });
    }
}
