//! The pushes of an endpoint.

use super::{AcquiredShard, Endpoint};
use crate::raw::memory::{drop_all, DeliveryMeta, Entry, Notes, Slot};
use crate::raw::registry::acquire;
use crate::raw::shard::Producer;
use crate::sync::step;
use std::ptr::NonNull;
use std::slice;

impl<T> Endpoint<T> {
    /// Pushes one item without a transaction. If it returns true, the shard is detached, and the item is ready only when
    /// the shard is [shown](Endpoint::show): this call contains no call, so the push saves no registers.
    #[inline]
    #[must_use]
    pub(crate) fn push_hidden(&mut self, item: T) -> bool {
        self.make_room_for_one();
        // SAFETY: a producer that is not full has a shard.
        let shard = unsafe { self.shard().unwrap_unchecked() };
        self.producer.push(shard, item);
        shard.hides()
    }

    /// Attaches the shard if it is detached.
    pub(crate) fn show(&self) {
        if let Some(shard) = self.shard() {
            shard.show();
        }
    }

    /// Records the time of the item that is staged or pushed next.
    pub(crate) fn note_time(&mut self, since: u64) {
        self.make_room_for_one();
        self.producer.note(DeliveryMeta::after(0, since));
    }

    /// Takes back the item of the last [`Endpoint::push_hidden`], if it is not yet dequeued and no item is ready before it.
    pub(crate) fn retract(&mut self) -> Option<T> {
        let shard = self.shard()?;
        self.producer.retract(shard)
    }

    /// Announces that the transaction stages items, and returns true if this is the first announcement. To stage a
    /// single item, [make room](Endpoint::make_room_for_one) first: then nothing fails
    /// after the announcement, except that the queue is found closed.
    #[inline]
    pub(crate) fn begin_staging(&mut self) -> bool {
        let first = self.staged() == 0;
        if first {
            step!("endpoint.stages-unsaid", self.counters().begin_staging());
        }
        first
    }

    /// Stages an item.
    #[inline]
    pub(crate) fn stage(&mut self, item: T) {
        self.make_room_for_one();
        self.producer.stage(item);
    }

    /// Makes room for at least one item to be staged.
    pub(crate) fn stager(&mut self) -> Stager<'_, T> {
        self.make_room_for_one();
        let slots = self.producer.vacant();
        Stager {
            producer: &mut self.producer,
            room: slots.len(),
            slots,
        }
    }

    /// Removes the last staged item, unless no more than `kept` are staged.
    pub(crate) fn unstage(&mut self, kept: usize) -> Option<Entry<T>> {
        if self.staged() <= kept {
            return None;
        }
        self.producer.unstage()
    }

    /// Drops the staged items but the first ones, which are so many.
    #[inline]
    pub(crate) fn drop_staged(&mut self, kept: usize) {
        if self.staged() > kept {
            drop_all(|| self.unstage(kept));
        }
    }

    /// Makes room for the item that is staged or pushed next.
    #[inline]
    pub(crate) fn make_room_for_one(&mut self) {
        if self.producer.is_full() {
            self.make_room();
        }
    }

    /// Acquires a shard, opens a segment, or both.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.acquired.is_none() {
            let (number, acquired) = acquire(&self.shards.records);
            // SAFETY: acquired just now.
            self.producer = unsafe { acquired.check_out() };
            let shard = NonNull::from(acquired);
            self.acquired = Some(AcquiredShard { shard, number });
        }
        let shards = &self.shards;
        if let Some(shard) = self.shard().filter(|_| self.producer.is_full()) {
            let notes = Notes::timed(shards.timed);
            self.producer.open(shard, &shards.stamps, notes);
        }
    }
}

/// Stages items into the room left in the segment. They are counted as staged when it is dropped.
pub(crate) struct Stager<'s, T> {
    producer: &'s mut Producer<T>,
    /// The number of slots that were vacant, and those that still are.
    room: usize,
    slots: slice::Iter<'s, Slot<T>>,
}

impl<T> Stager<'_, T> {
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.slots.len() > 0
    }

    /// Stages an item.
    ///
    /// # Panics
    ///
    /// If there is no room for it.
    #[inline]
    pub(crate) fn stage(&mut self, item: T) {
        let slot = self.slots.next().expect("there is room");
        // SAFETY: vacant, and the producer's alone: behind the tail, in an unfinished segment.
        unsafe { slot.fill(item) };
    }
}

impl<T> Drop for Stager<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slots that are not left were filled one by one.
        unsafe { self.producer.count_staged(self.room - self.slots.len()) };
    }
}
