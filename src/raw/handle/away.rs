//! Deliveries that own their item: what is known of each, and how they are counted.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::memory::{DeliveryMeta, Entry};
use crate::raw::registry::{Counters, Ending, Shards, COMMON};
use crate::raw::shard::{Home, Sink};
use std::ptr::NonNull;
use std::sync::Arc;

/// An item that was taken out of the queue for a delivery, and where it comes back to.
#[derive(Debug)]
pub(crate) struct Away<T> {
    pub(crate) item: T,
    since: u64,
    attempts: u32,
    /// The number of its shard, of which there are two billion at most.
    shard: u32,
    /// Its [rank](crate::raw::shard::returns) among the returned deliveries there.
    rank: u64,
}

impl<T> Away<T> {
    /// An item that was taken from elsewhere. It comes back to the common shard; those that were taken earlier have lower ranks.
    pub(crate) fn ranked(entry: Entry<T>, rank: u64) -> Self {
        Self::of(entry, COMMON, rank)
    }

    #[inline(always)] // the take
    #[allow(clippy::cast_possible_truncation)] // see the field
    fn of(Entry { item, delivery }: Entry<T>, shard: usize, rank: u64) -> Self {
        let DeliveryMeta { attempts, since } = delivery;
        let shard = shard as u32;
        Self {
            item,
            since,
            attempts,
            shard,
            rank,
        }
    }

    pub(crate) fn delivery(&self) -> DeliveryMeta {
        DeliveryMeta {
            attempts: self.attempts,
            since: self.since,
        }
    }

    /// Makes it as if this delivery had not begun.
    pub(crate) fn uncount(&mut self) {
        self.attempts = self.delivery().before().attempts;
    }

    pub(crate) fn into_entry(self) -> Entry<T> {
        Entry {
            delivery: self.delivery(),
            item: self.item,
        }
    }
}

/// Accepts one item with its rank.
struct Ranked<T> {
    entry: Option<Entry<T>>,
    rank: u64,
}

impl<T> Sink<T> for Ranked<T> {
    const RANKS: bool = true;

    fn note_rank(&mut self, rank: u64) {
        self.rank = rank;
    }

    #[inline]
    fn reserve(&mut self, _wanted: usize, _home: Home) -> usize {
        1
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        self.entry = Some(Entry { item, delivery });
    }
}

/// The deliveries that one handle has begun. They end anywhere, also after the handle.
///
/// They have counters of their own, since the handle's show the order in which its transactions end.
pub(crate) struct Outstanding<T> {
    number: usize,
    counters: NonNull<Counters>,
    shards: Arc<Shards<T>>,
}

// SAFETY: as for `Endpoint`. The counters are atomics.
unsafe impl<T: Send> Send for Outstanding<T> {}
// SAFETY: the shards are shared as they are by all handles, and items leave them by value.
unsafe impl<T: Send> Sync for Outstanding<T> {}

impl<T> Outstanding<T> {
    pub(crate) fn new(shards: &Arc<Shards<T>>) -> Self {
        let number = shards.handles.acquire_for_use();
        let counters: &Counters = shards.handles.get(number);
        Self {
            number,
            counters: NonNull::from(counters),
            shards: Arc::clone(shards),
        }
    }

    /// The number of the counters.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The counters; only the handle that begins the deliveries counts items as taken.
    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: counters are type-stable, and this keeps their queue alive.
        unsafe { self.counters.as_ref() }
    }

    /// Records that a delivery has ended, after its item was put somewhere else.
    #[inline]
    pub(crate) fn count_ended(&self, ending: Ending) {
        self.counters().count_elsewhere(ending, 1);
    }

    /// Puts an item back, in the order of the ranks, before what is at the head.
    pub(crate) fn put_back(&self, away: Away<T>) {
        let shard = match away.shard as usize {
            COMMON => self.shards.common(),
            number => self.shards.records.get(number),
        };
        let rank = away.rank;
        shard.front().put_back(away.into_entry(), rank);
    }
}

impl<T> Drop for Outstanding<T> {
    /// All deliveries have ended.
    fn drop(&mut self) {
        let handles = &self.shards.handles;
        if !handles.stays(self.number) {
            handles.retire(self.number);
        }
        handles.release(self.number);
    }
}

impl<T> Endpoint<T> {
    /// Takes an item out, and counts its delivery. `None` if the queue is empty, or, unless it `searches`, if something else has
    /// to be done than taking the next item.
    #[inline(always)] // the take
    pub(crate) fn take_away(
        &mut self,
        outstanding: &Outstanding<T>,
        searches: bool,
    ) -> Option<Away<T>> {
        let counters = outstanding.counters();
        counters.count_taken(1);
        let Some(item) = self.consumer.take_next() else {
            if searches {
                return self.search_away(counters);
            }
            counters.uncount_taken(1);
            return None;
        };
        let delivery = DeliveryMeta::first(0);
        let (shard, rank) = (self.consumer.shard_number(), self.consumer.last_rank());
        Some(Away::of(Entry { item, delivery }, shard, rank))
    }

    /// As [`Endpoint::take_away`], where the item is counted as taken by these counters, but not if there is none.
    #[inline(never)]
    pub(crate) fn search_away(&mut self, counters: &Counters) -> Option<Away<T>> {
        let (entry, rank) = (None, 0);
        let mut sink = Ranked { entry, rank };
        self.consumer.take_all(&self.shards, &mut sink, 1);
        let Some(entry) = sink.entry else {
            counters.uncount_taken(1);
            return None;
        };
        Some(Away::of(entry, self.consumer.shard_number(), sink.rank))
    }
}
