//! An intake: drains the shards for an order that sorts the items and chooses the next one.
//!
//! Returned items are taken separately from pushed ones, since they come first.

use super::consumer::ShardCursor;
use super::cursor::Take;
use super::entry::{DeliveryMeta, Entry};
use super::front::Front;
use super::shards::Shards;
use super::sink::Sink;
use crossbeam_utils::Backoff;
use std::sync::Arc;

/// Drains the shards of a queue, and keeps them alive.
pub(crate) struct Intake<T> {
    /// The shards that were in use at the last check, with their numbers, in order.
    visited: Vec<(usize, ShardCursor<T>)>,
    /// The version of the set of shards in use at that time.
    version: u64,
    shards: Arc<Shards<T>>,
}

// SAFETY: as for `Endpoint`: the shards contain items of type T.
unsafe impl<T: Send> Send for Intake<T> {}

/// Passes each item to a function.
struct ForEach<F>(F);

impl<T> Intake<T> {
    pub(crate) fn new(shards: Arc<Shards<T>>) -> Self {
        Self {
            visited: Vec::new(),
            version: 0,
            shards,
        }
    }

    /// Whether there are returned items.
    #[inline]
    pub(crate) fn has_returned(&self) -> bool {
        !self.shards.injector().front().is_clear()
    }

    /// Takes all returned items: the latest transaction first, the items of each in order.
    pub(crate) fn take_returned(&mut self, into: &mut Vec<Entry<T>>) {
        let front = self.shards.injector().front();
        while !front.is_clear() && front.take(into, usize::MAX) > 0 {}
    }

    /// Passes the pushed items that are visible now to `accept`.
    #[inline]
    pub(crate) fn take_arrived(&mut self, mut accept: impl FnMut(Entry<T>)) {
        if self.visited.is_empty() || self.version != self.shards.version() {
            self.find_shards();
        }
        let Self {
            visited, shards, ..
        } = self;
        for (_, shard) in visited {
            let backlog = shard.backlog(shards);
            if backlog > 0 {
                drain(shard, shards, backlog, &mut accept);
            }
        }
    }

    /// Visits the shards in use, and leaves the others.
    #[cold]
    fn find_shards(&mut self) {
        let Self {
            visited, shards, ..
        } = self;
        // First, so that the next call finds concurrent changes.
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

    /// Leaves all shards, so that their memory can be reclaimed.
    pub(crate) fn leave(&mut self) {
        self.visited
            .drain(..)
            .for_each(|(_, mut shard)| shard.leave());
    }
}

/// Takes up to `most` items from the head of a shard.
fn drain<T>(
    shard: &mut ShardCursor<T>,
    shards: &Shards<T>,
    most: u64,
    accept: &mut impl FnMut(Entry<T>),
) {
    let mut sink = ForEach(accept);
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
