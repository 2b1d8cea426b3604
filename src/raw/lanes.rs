//! All lanes of one queue: the common shard is lane 0, the leased shards follow.

use super::common::Common;
use super::consumer::Consumer;
use super::desk::{Desk, Tally};
use super::drops::drop_all;
use super::guests::Guests;
use super::hold::Hold;
use super::reclaim;
use super::roster::Roster;
use super::shard::Shard;
use super::sink::Sink;
use super::tag::{Entry, Label};
use crate::sync::AtomicU64;
use crossbeam_utils::CachePadded;

/// Everything that the handles of a queue share.
pub(crate) struct Lanes<T> {
    common: Common<T>,
    shards: Roster<Shard<T>>,
    desks: Roster<CachePadded<Desk>>,
    guests: Guests<T>,
    /// The logical clock that stamps segments when they are opened.
    stamps: CachePadded<AtomicU64>,
    /// Whether items keep their labels.
    labelled: bool,
}

impl<T> Lanes<T> {
    pub(crate) fn new(labelled: bool) -> Self {
        Self {
            common: Common::new(labelled),
            shards: Roster::new(),
            desks: Roster::new(),
            guests: Guests::new(),
            stamps: CachePadded::new(AtomicU64::new(0)),
            labelled,
        }
    }

    /// Pushes without a handle, unless `admit` refuses once the push has begun.
    pub(crate) fn push(&self, item: T, label: Label, admit: impl Fn() -> bool) -> Result<(), T> {
        self.common.push(item, label, &self.stamps, admit)
    }

    /// Pops without a handle, and commits at once; with `from_head` first what was put back without one.
    pub(crate) fn pop(&self, from_head: bool) -> Option<T> {
        self.guests.pop(self, from_head)
    }

    pub(super) fn common(&self) -> &Common<T> {
        &self.common
    }

    pub(super) fn shards(&self) -> &Roster<Shard<T>> {
        &self.shards
    }

    pub(super) fn desks(&self) -> &Roster<CachePadded<Desk>> {
        &self.desks
    }

    pub(super) fn stamps(&self) -> &AtomicU64 {
        &self.stamps
    }

    pub(super) fn labelled(&self) -> bool {
        self.labelled
    }

    /// How many lanes there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.shards.len() + 1
    }

    /// The age of a lane's head; `None` if nothing is visible there.
    pub(super) fn age(&self, lane: usize) -> Option<u64> {
        match lane.checked_sub(1) {
            None => self.common.age(),
            Some(number) => self.shards.get(number).age(),
        }
    }

    /// Frees what empty shards hold that nobody leases.
    pub(crate) fn vacate_all(&self) {
        (0..self.shards.len()).for_each(|number| self.vacate(number));
    }

    /// Frees what an empty shard holds if nobody leases it.
    pub(super) fn vacate(&self, number: usize) {
        let shard = self.shards.get(number);
        if shard.is_vacant() || !self.shards.lease_if_free(number) {
            return;
        }
        // SAFETY: leased just now, and given back at once.
        unsafe {
            let mut producer = shard.unpark();
            producer.vacate(shard);
            shard.park(producer);
        }
        self.shards.release(number);
    }

    /// Ready items, exact at rest.
    pub(crate) fn ready(&self) -> u64 {
        (0..self.count()).map(|lane| self.ready_in(lane)).sum()
    }

    /// Ready items of one lane, exact at rest.
    pub(super) fn ready_in(&self, lane: usize) -> u64 {
        self.in_line(lane) + self.front(lane).ready() as u64
    }

    /// Items of one lane that were never returned, exact at rest.
    fn in_line(&self, lane: usize) -> u64 {
        match lane.checked_sub(1) {
            None => self.common.backlog(),
            Some(number) => self.shards.get(number).backlog(),
        }
    }

    /// Puts items at the head of the queue, in their order, and says how many they were.
    pub(crate) fn put_at_head(&self, entries: impl IntoIterator<Item = Entry<T>>) -> usize {
        let mut hold = Hold::new();
        for Entry { item, tag } in entries {
            hold.reserve(1, self.common.front());
            // SAFETY: room was made for it.
            unsafe { hold.accept(item, tag) };
        }
        let count = hold.len();
        if count > 0 {
            self.common.mark_used();
            hold.give_back();
        }
        count
    }

    /// The numbers of the desks whose transactions hold something, and how many items.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let held = self.desks.iter().map(|desk| desk.held()).enumerate();
        held.filter(|&(_, held)| held > 0)
    }

    /// Counts items that were taken away from a transaction of this desk, and are elsewhere by now.
    pub(crate) fn count_expired(&self, desk: usize, items: usize) {
        self.desks.get(desk).count_expired(items);
    }

    /// The least time of the items at the heads and of the returned ones, exact at rest; `None` if
    /// none is ready, or none has a time.
    ///
    /// So it is the time of the oldest ready item, if those of each lane were pushed in the order of
    /// their times.
    pub(crate) fn oldest(&self) -> Option<u64> {
        if !self.labelled {
            return None;
        }
        let shards = self.shards.iter().filter_map(Shard::oldest);
        shards.chain(self.common.oldest()).min()
    }

    /// Items ever pushed, exact at rest.
    pub(crate) fn pushed(&self) -> u64 {
        self.common.pushed() + self.shards.iter().map(Shard::pushed).sum::<u64>()
    }

    /// Counts items that were popped without a handle.
    pub(crate) fn count_popped(&self, items: usize) {
        self.guests.count_popped(items);
    }

    /// What the handles count.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.desks.iter().for_each(|desk| desk.add_to(&mut tally));
        self.guests.add_to(&mut tally);
        tally
    }
}

impl<T> Drop for Lanes<T> {
    /// Drops the items; the fields then free their memory.
    fn drop(&mut self) {
        self.guests.leave();
        let mut consumer = Consumer::new(0);
        drop_all(|| consumer.take_one(self));
        consumer.leave();
        reclaim::collect();
    }
}
