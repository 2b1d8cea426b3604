//! The source from which the items of a queue are taken.

use super::{Dequeued, Due, Registry, Shown, Ticket};
use crate::raw::{Choice, Endpoint, Entry, Stored};

/// The source from which the items of a queue are taken: its shards, which is what the defaults implement, or a
/// structure that [sorts](Source::SORTS) their items.
pub(crate) trait Source<T, M> {
    /// Whether items are taken from this source instead of the shards.
    const SORTS: bool;
    type Registry: Registry<T, M>;
    /// The progress of a visit.
    type Visit;
    /// The former position of an item that is being shown.
    type Position;

    /// The registry of all items.
    fn registry(&self) -> &Self::Registry;

    /// Called when a dequeued item was removed `for_good`, or pushed again; returns how many other items became ready.
    fn leave(&self, _meta: M, _for_good: bool) -> usize {
        0
    }

    /// Takes the next item for the handle with this endpoint: `for_good` if it will not come back.
    /// Then, if the source [tracks removals](Source::tracks_removal), the caller also has to call [`Source::leave`]. Tells its
    /// number: that of an item that was taken before, and was pushed by the same handle, is less.
    fn take(
        &self,
        _by: &Endpoint<Stored<T, M>>,
        _for_good: bool,
        _number: &mut u64,
    ) -> Option<Entry<Stored<T, M>>> {
        None
    }

    /// Whether the end of an item can make others ready.
    fn tracks_removal(&self) -> bool {
        false
    }

    /// Whether a handle may take the item that it has pushed last out of its shard, past this source.
    #[inline]
    fn yields_to_owner(&self) -> bool {
        false
    }

    /// Takes in the items of the shards.
    fn take_in(&self) {}

    /// Takes in items that were in the queue in an earlier process, as if they were pushed; not called if it does not
    /// sort.
    fn restore(&self, _entries: Vec<Entry<Stored<T, M>>>) {}

    /// Takes in items that have become due, in the order of their times; not called if it does not sort.
    fn merge(&self, _due: Vec<Due<Entry<Stored<T, M>>>>) {}

    /// Removes the ready item with a ticket, if it can be found here.
    fn cancel(&self, _ticket: Ticket) -> Option<Entry<Stored<T, M>>> {
        None
    }

    /// The numbers of ready items and of those not ready yet, among those taken in.
    fn counts(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Same as [`Sequence::ready_until`](super::Sequence::ready_until); `None` if it does not sort.
    fn ready_until(&self, _priority: u16, _most: usize) -> Option<usize> {
        None
    }

    /// Same as [`Sequence::retain_empty`](super::Sequence::retain_empty), if it sorts.
    fn retain_empty(&self, _group_of: fn(&T) -> u16, _groups: &mut Vec<u16>) {}

    /// The approximate least known timestamp of the ready items that were taken in. Scans all of them, but in
    /// small parts, so that other threads do not wait for long.
    fn oldest(&self) -> Option<u64> {
        None
    }

    /// Takes up to `most` items out for good that were pushed at `until` or before, as far as they are the first ones of their
    /// kind. Returns the least time of those that are the first ones then. The caller unregisters them. Not called if it does
    /// not sort.
    fn take_old(&self, _until: u64, _most: usize, _into: &mut Vec<Dequeued<T, M>>) -> Option<u64> {
        None
    }

    /// Same as [`Sequence::begin_visit`](super::Sequence::begin_visit).
    fn begin_visit(&self, all: bool) -> Self::Visit;

    /// Same as [`Sequence::show`](super::Sequence::show), if `applies`, which is called under the lock.
    fn show(
        &self,
        _visit: &mut Self::Visit,
        _into: &mut Vec<Shown<T, M, Self::Position>>,
        _applies: impl FnOnce() -> bool,
    ) -> bool {
        false
    }

    /// Same as [`Sequence::put_back`](super::Sequence::put_back), for all items that were shown together, except for those
    /// that are `gone`: these are [removed](super::Sequence::remove_shown), unregistered and returned.
    fn put_back(
        &self,
        _: &mut Self::Visit,
        _shown: &mut Vec<Shown<T, M, Self::Position>>,
        _gone: Choice,
    ) -> Vec<Entry<Stored<T, M>>> {
        Vec::new()
    }

    /// Same as [`Sequence::end_visit`](super::Sequence::end_visit).
    fn end_visit(&self, _: &Self::Visit) {}

    /// Whether nothing is ready, linearizably. Called only if the source sorts.
    fn is_empty(&self) -> bool {
        true
    }

    /// Whether it contains no items, ready or not, at this instant; those in the shards do not count.
    fn has_none(&self) -> bool {
        true
    }
}

/// The shards themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsorted;

impl<T> Source<T, ()> for Unsorted {
    const SORTS: bool = false;
    type Registry = Self;
    type Visit = ();
    type Position = ();

    fn registry(&self) -> &Self {
        self
    }

    fn begin_visit(&self, _all: bool) {}
}

impl<T> Registry<T, ()> for Unsorted {
    const RECORDS: bool = false;
    type Place = ();

    #[inline]
    fn register(&self, _: &T, (): ()) -> Option<()> {
        Some(())
    }
}
