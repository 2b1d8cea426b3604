//! Helpers for tests of endpoints without a cell, and of shards without an endpoint.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::handle::items::Unborrowed;
#[cfg(not(any(loom, shuttle)))]
use crate::raw::hold::position::HeldPosition;
use crate::raw::memory::entry::DeliveryMeta;
use crate::raw::registry::consumer::Consumer;
use crate::raw::registry::shards::Shards;
use crate::raw::shard::run::Home;
use crate::raw::shard::sink::Sink;

pub(super) const UNBORROWED: &Unborrowed<'_> = &Unborrowed::new();

impl<T> Endpoint<T> {
    pub(super) fn push(&mut self, item: T) {
        if self.push_hidden(item) {
            self.show();
        }
    }

    /// Aborts the transaction: gives back the held items, then drops the staged ones.
    pub(super) fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        self.give_back(unborrowed);
        self.counters().abort_staging();
        self.drop_staged(0);
    }

    pub(super) fn stage_one(&mut self, item: T) {
        self.begin_staging();
        self.stage(item);
    }
}

impl<T> Shards<T> {
    /// Pops an item by a consumer of its own.
    pub(super) fn pop_one(&self) -> Option<T> {
        let mut consumer = Consumer::new(self, 0);
        let item = consumer.take_one(self);
        consumer.leave();
        self.count_popped(usize::from(item.is_some()));
        item
    }
}

impl<T: Copy> Endpoint<T> {
    /// The items that a visit to the next shard from number `shard` on shows.
    pub(super) fn seen(&mut self, shard: usize) -> Vec<T> {
        let mut seen = Vec::new();
        let Some(mut visit) = self.visit_shard(&mut { shard }) else {
            return seen;
        };
        while visit.next_part().is_some() {
            seen.extend(visit.items().map(|(item, _)| item));
        }
        visit.end();
        seen
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Endpoint<T> {
    /// Pops up to `most` items, and returns their number.
    pub(super) fn pop_into(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        let count = self.consumer.take_all(&self.shards, items, most);
        self.counters().count_popped(count);
        count
    }

    pub(super) fn push_since(&mut self, item: T, since: u64) {
        self.note_time(since);
        self.push(item);
    }

    /// The held items with their delivery metadata.
    pub(super) fn held_items(&self) -> Vec<(T, DeliveryMeta)>
    where
        T: Clone,
    {
        let mut position = HeldPosition::default();
        let next = || self.next_held(&mut position, UNBORROWED);
        let held = std::iter::from_fn(next);
        held.map(|(item, delivery)| (item.clone(), delivery))
            .collect()
    }
}

impl<T> Sink<T> for Vec<T> {
    fn reserve(&mut self, wanted: usize, _home: Home) -> usize {
        wanted
    }

    unsafe fn accept(&mut self, item: T, _delivery: DeliveryMeta) {
        self.push(item);
    }
}
