//! The ends of transactions.

use super::Endpoint;
use crate::raw::cell::Unborrowed;
use crate::raw::drops::drop_all;
use crate::raw::entry::{DeliveryMeta, Entry};
use crate::raw::hold::HeldPosition;
use crate::raw::joint::{JointRecord, Tail, Tails};
use crate::raw::producer::Producer;
use crate::raw::shard::Shard;
use crate::sync::defer_with;
use std::mem;
use std::ptr::{self, NonNull};

impl<T> Endpoint<T> {
    /// Commits: publishes what is staged, and leaves what is held to be taken out. Says how many
    /// items were staged, and how many held.
    #[inline]
    pub(crate) fn commit(&mut self, _: &Unborrowed<'_>) -> (usize, usize) {
        let staged = self.staged();
        if staged > 0 {
            self.publish();
            self.counters().end_staging();
        }
        (staged, self.commit_held())
    }

    #[inline]
    fn publish(&mut self) {
        if let Some(shard) = self.shard() {
            self.producer.publish(shard);
        }
    }

    /// Leaves what is held to be taken out, and says how many items that are.
    #[inline]
    fn commit_held(&mut self) -> usize {
        let held = self.held();
        if held > 0 {
            self.taken = true;
            self.hold.commit();
            self.counters().count_committed(held);
        }
        held
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self, _: &Unborrowed<'_>) -> Option<T> {
        let item = self.hold.take_out();
        self.taken = self.held() > 0;
        item
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self, unborrowed: &Unborrowed<'_>) {
        if mem::needs_drop::<T>() {
            drop_all(|| self.take_out(unborrowed));
        } else {
            self.taken = false;
            self.hold.clear();
        }
    }

    /// Gives back what is held, and says how many items that were.
    pub(crate) fn give_back(&mut self, _: &Unborrowed<'_>) -> usize {
        let held = self.held();
        if held > 0 {
            self.hold.give_back(self.shards.injector());
            self.consumer.aborted(&self.shards);
            self.counters().count_aborted(held);
        }
        held
    }

    /// Gives back what is held without a delivery counted, and says how many items that were.
    pub(crate) fn give_back_uncounted(&mut self, _: &Unborrowed<'_>) -> usize {
        let held = self.held();
        self.hold.uncount();
        self.hold.give_back(self.shards.injector());
        self.counters().uncount_taken(held);
        held
    }

    /// The held item at `spot`, which moves on to the next one, and its delivery.
    pub(crate) fn next_held<'s>(
        &'s self,
        spot: &mut HeldPosition,
        _: &'s Unborrowed<'_>,
    ) -> Option<(&'s T, DeliveryMeta)> {
        let held = self.hold.next_at(spot)?;
        // SAFETY: held, and nobody else uses it.
        Some(unsafe { (&*held.item(), held.delivery()) })
    }

    /// Takes the item that [`Endpoint::next_held`] has just given out of the transaction, which must say later how that
    /// ended, by [`Endpoint::count_aborted`].
    ///
    /// # Panics
    ///
    /// If there is none before the spot.
    pub(crate) fn remove_before(&mut self, spot: HeldPosition, _: &Unborrowed<'_>) -> Entry<T> {
        // SAFETY: no held item is borrowed.
        unsafe { self.hold.remove_before(spot) }
    }

    /// Ends the transaction: gives back what is held, then drops what is staged.
    pub(in crate::raw) fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        self.give_back(unborrowed);
        self.end_staging();
        self.drop_staged();
    }

    /// Gives everything leased back. Nothing is staged or held.
    fn leave(&mut self) {
        self.consumer.leave();
        let shards = &self.shards;
        if let Some(lease) = self.acquired.take() {
            let producer = mem::replace(&mut self.producer, Producer::new());
            shards.give_up(lease.number, producer);
        }
        // What was taken away from its transaction may not be counted yet.
        let counters = shards.handles();
        if !counters.stays(self.handle_number) && !self.counters().is_open() {
            counters.retire(self.handle_number);
        }
        counters.release(self.handle_number);
    }
}

/// The parts of a commit over several queues: see [`Party`](crate::raw::Party).
impl<T> Endpoint<T> {
    /// The shard that a joint has to know about.
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

    pub(crate) fn conclude(&mut self, _: &Unborrowed<'_>) {
        if let Some(shard) = self.staging_shard() {
            self.publish();
            shard.announce(ptr::null());
            self.counters().end_staging();
        }
        self.commit_held();
    }
}

impl<T> Drop for Endpoint<T> {
    fn drop(&mut self) {
        // Leaves also if a destructor of an item panics.
        let mut endpoint = defer_with(self, |endpoint| endpoint.leave());
        let unborrowed = Unborrowed::new();
        if endpoint.is_taken() {
            endpoint.drop_taken(&unborrowed);
        }
        endpoint.abort(&unborrowed);
    }
}
