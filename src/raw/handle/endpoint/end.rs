//! The end of a transaction: commit, abort, and what follows a commit.

use super::Endpoint;
use crate::raw::handle::items::Unborrowed;
use crate::raw::hold::HeldPosition;
use crate::raw::memory::{drop_all, DeliveryMeta, Entry};
use crate::raw::shard::{JointRecord, Producer, Shard, Tail, Tails};
use crate::sync::defer_with;
use std::mem;
use std::ptr::NonNull;

impl<T> Endpoint<T> {
    /// Commits: publishes the staged items and makes the held ones ready to be taken out. Returns the
    /// numbers of staged and of held items.
    #[inline]
    pub(crate) fn commit(&mut self, _: &Unborrowed<'_>) -> (usize, usize) {
        (self.commit_staged(), self.commit_held())
    }

    /// Publishes the staged items, and returns their number.
    #[inline]
    pub(crate) fn commit_staged(&mut self) -> usize {
        let staged = self.staged();
        if staged > 0 {
            // SAFETY: items are staged in a shard.
            let shard = unsafe { self.shard().unwrap_unchecked() };
            self.producer.publish(shard);
            shard.show();
            self.counters().end_staging();
        }
        staged
    }

    /// Makes the held items ready to be taken out, and returns their number.
    #[inline]
    fn commit_held(&mut self) -> usize {
        let held = self.held();
        if held > 0 {
            self.hold.commit();
            self.counters().count_committed(held);
        }
        held
    }

    /// Moves the next committed item out.
    #[inline]
    pub(crate) fn take_out(&mut self, _: &Unborrowed<'_>) -> Option<T> {
        self.hold.take_out()
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self, unborrowed: &Unborrowed<'_>) {
        if mem::needs_drop::<T>() {
            drop_all(|| self.take_out(unborrowed));
        } else {
            self.hold.clear();
        }
    }

    /// Gives back the held items, and returns their number.
    #[inline(always)] // the abort
    pub(crate) fn give_back(&mut self, _: &Unborrowed<'_>) -> usize {
        let held = self.held();
        if held > 0 {
            self.hold.give_back();
            self.consumer.aborted(&self.shards);
            self.counters().count_aborted(held);
        }
        held
    }

    /// Returns the held item at `position` and its delivery metadata, and advances `position`.
    pub(crate) fn next_held<'s>(
        &'s self,
        position: &mut HeldPosition,
        _: &'s Unborrowed<'_>,
    ) -> Option<(&'s T, DeliveryMeta)> {
        let held = self.hold.next_at(position)?;
        // SAFETY: the item is held, and nothing else uses it.
        Some(unsafe { (&*held.item(), self.hold.delivery(held)) })
    }

    /// Removes the item that [`Endpoint::next_held`] returned last from the transaction. The caller must count it
    /// later, by [`Counters::count_aborted`](crate::raw::registry::Counters::count_aborted).
    ///
    /// # Panics
    ///
    /// If there is no item before `position`.
    pub(crate) fn remove_before(&mut self, position: HeldPosition, _: &Unborrowed<'_>) -> Entry<T> {
        // SAFETY: no held item is borrowed.
        unsafe { self.hold.remove_before(position) }
    }

    /// Releases the shard and the counters. Nothing is staged or held.
    fn release(&mut self) {
        self.consumer.leave();
        let shards = &self.shards;
        if let Some(acquired) = self.acquired.take() {
            let producer = mem::replace(&mut self.producer, Producer::new());
            shards.give_up(acquired.number, producer);
        }
        // Items that expired in its transaction may not be counted yet.
        let counters = &shards.handles;
        if !counters.stays(self.handle_number) && !self.counters().is_open() {
            counters.retire(self.handle_number);
        }
        counters.release(self.handle_number);
    }
}

/// The steps of a commit over several queues: see [`Party`](crate::raw::Party).
impl<T> Endpoint<T> {
    /// The shard, if it takes part in a joint commit.
    fn staging_shard<'a>(&self) -> Option<&'a Shard<T>> {
        self.shard().filter(|_| self.staged() > 0)
    }

    pub(crate) fn collect(&self, tails: &mut Tails) {
        if let Some(shard) = self.staging_shard() {
            tails.push(Tail {
                shard: NonNull::from(shard).as_ptr().cast_const().cast(),
                tail: self.producer.next(),
            });
        }
    }

    pub(crate) fn announce(&self, record: JointRecord) {
        if let Some(shard) = self.staging_shard() {
            shard.announce(record.0);
        }
    }

    pub(crate) fn conclude(&mut self) {
        if let Some(shard) = self.staging_shard() {
            self.producer.publish(shard);
            shard.conclude();
            self.counters().end_staging();
        }
    }

    pub(crate) fn commit_concluded(&mut self, _: &Unborrowed<'_>) {
        self.commit_held();
    }
}

impl<T> Drop for Endpoint<T> {
    fn drop(&mut self) {
        // Also if the destructor of an item panics.
        let mut endpoint = defer_with(self, |endpoint| endpoint.release());
        let unborrowed = Unborrowed::new();
        if endpoint.is_taken() {
            endpoint.drop_taken(&unborrowed);
        }
        endpoint.give_back(&unborrowed);
        endpoint.counters().abort_staging();
        endpoint.drop_staged(0);
    }
}
