//! The data structure of an order, which determines the next item.

use crate::order::Ticket;
use crate::raw::{Choice, Entry, Stored};

/// A data structure that determines the next item. One thread at a time uses it, under a lock, so it must not run
/// user code.
pub(crate) trait Sequence<T, M> {
    /// Makes another one, which is empty, if the item that a handle has pushed last is the next one for it, unless others were
    /// [returned](Self::has_returned): then the shards may be divided among several.
    const ANOTHER: Option<fn() -> Self> = None;
    /// The progress of a visit.
    type Visit;
    /// The former position of an item that is being shown.
    type Position;

    /// Adds an item that was pushed.
    fn arrive(&mut self, entry: Entry<Stored<T, M>>);

    /// Takes back a dequeued item, ahead of all others of its kind.
    ///
    /// Items that are returned together are passed last one first, so that they are again in the order in which
    /// they were dequeued.
    fn come_back(&mut self, entry: Entry<Stored<T, M>>);

    /// Whether there may be items that came back.
    fn has_returned(&self) -> bool {
        false
    }

    /// Dequeues the next item: `for_good` if it will not come back. A sequence that tracks removals is told of the
    /// end of each item by [`Sequence::leave`].
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, M>>;

    /// Whether [`Sequence::leave`] must be called.
    fn tracks_removal(&self) -> bool {
        false
    }

    /// Called when a dequeued item was removed for good; returns how many other items became ready.
    fn leave(&mut self, _meta: M) -> usize {
        0
    }

    /// Adds items that were pushed, and others that have become due, in the order of their times.
    fn merge(&mut self, fresh: Vec<Entry<Stored<T, M>>>, due: Vec<Due<Entry<Stored<T, M>>>>) {
        let due = due.into_iter().map(|due| due.entry);
        fresh
            .into_iter()
            .chain(due)
            .for_each(|entry| self.arrive(entry));
    }

    /// Removes the item with a ticket, which is not held, if the sequence can find it.
    fn cancel(&mut self, _ticket: Ticket) -> Option<Entry<Stored<T, M>>> {
        None
    }

    /// Takes up to `most` items out for good that were pushed at `until` or before, ready or not, as far as each is the first
    /// one of its kind and is not shown: others are found when they come first. It is as if they had not been dequeued. Returns
    /// the least time of those that are the first ones then, or an earlier one.
    fn take_old(&mut self, until: u64, most: usize, into: &mut Vec<Dequeued<T, M>>) -> Option<u64>;

    /// The number of ready items.
    fn ready(&self) -> usize;

    /// The number of ready items of this priority or before it, up to `most` of them; all that are ready if they have no priorities.
    fn ready_until(&self, _priority: u16, _most: usize) -> usize {
        self.ready()
    }

    /// In a fair sequence: adds to these groups those whose last item has left since the last call, and removes those that have items, also
    /// such as are not ready, except those that are shown.
    fn retain_empty(&mut self, _group_of: fn(&T) -> u16, _groups: &mut Vec<u16>) {}

    /// The number of items that are not ready, since others of their key are held.
    fn waiting(&self) -> usize {
        0
    }

    /// Begins a visit to the ready items, or to `all`, also those that are [not ready](Sequence::waiting).
    fn begin_visit(&mut self, all: bool) -> Self::Visit;

    /// Continues a visit: takes out up to [`PART`] items to be shown, and returns whether there may be more. Like held
    /// items they are not available until they are put back.
    fn show(
        &mut self,
        visit: &mut Self::Visit,
        into: &mut Vec<Shown<T, M, Self::Position>>,
    ) -> bool;

    /// Puts back an item that was shown by a visit, at its former position. Items that were shown together are
    /// passed last one first.
    fn put_back(&mut self, visit: &mut Self::Visit, shown: Shown<T, M, Self::Position>);

    /// Forgets an item that was shown, instead of putting it back; those shown together that stay were put back before.
    /// Returns how many items with its metadata must be unregistered now.
    fn remove_shown(&mut self, _meta: M, _position: Self::Position) -> u32 {
        1
    }

    /// Continues a visit without showing anything: lowers `least` to the least known timestamp of some items, and
    /// returns whether there may be more.
    fn scan_times(&mut self, visit: &mut Self::Visit, least: &mut Option<u64>) -> bool {
        let mut shown = Vec::with_capacity(PART);
        let more = self.show(visit, &mut shown);
        while let Some(item) = shown.pop() {
            let since = Some(item.entry.delivery.since).filter(|since| *since != 0);
            *least = least.iter().copied().chain(since).min();
            self.put_back(visit, item);
        }
        more
    }

    /// Ends a visit.
    fn end_visit(&mut self) {}
}

/// The most items shown at once: pops wait meanwhile. A visit continues from what does not move between two parts, such as the
/// numbers of keys and the positions in their lists.
pub(crate) const PART: usize = Choice::MOST;
/// The most places scanned at once.
pub(crate) const SCAN_STEP: usize = 1024;

/// An item with a time.
#[derive(Debug)]
pub(crate) struct Due<I> {
    pub(crate) due: u64,
    pub(crate) entry: I,
}

impl<T> Due<Entry<T>> {
    /// As an item that is returned, whose deliveries so far are counted.
    pub(crate) fn not_delivered(mut self) -> Self {
        self.entry.delivery = self.entry.delivery.before();
        self
    }
}

/// An item that is being shown, and its former position.
#[derive(Debug)]
pub(crate) struct Shown<T, M, P> {
    pub(crate) entry: Entry<Stored<T, M>>,
    pub(crate) position: P,
}

/// An item dequeued from a sequence.
#[derive(Debug)]
pub(crate) struct Dequeued<T, M> {
    pub(crate) entry: Entry<Stored<T, M>>,
    /// How many items with its metadata, dequeued for good, must be unregistered now.
    pub(crate) gone: u32,
}
