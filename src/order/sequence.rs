//! The data structure of an order, which determines the next item.

use crate::raw::{Entry, Stored};
use crate::time::NEVER;

/// A data structure that determines the next item. One thread at a time uses it, under a lock, so it must not run
/// user code.
pub(crate) trait Sequence<T, M> {
    /// Adds an item that was pushed.
    fn arrive(&mut self, entry: Entry<Stored<T, M>>);

    /// Same as [`Sequence::arrive`], but followed by [`Sequence::advance`], which may determine its position.
    fn arrive_timed(&mut self, entry: Entry<Stored<T, M>>) {
        self.arrive(entry);
    }

    /// Takes back a dequeued item, ahead of all others of its kind.
    ///
    /// Items that are returned together are passed last one first, so that they are again in the order in which
    /// they were dequeued.
    fn come_back(&mut self, entry: Entry<Stored<T, M>>);

    /// Dequeues the next item: `for_good` if it will not come back. A sequence that tracks removals learns the end of
    /// each item from [`Sequence::leave`].
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, M>>;

    /// Whether [`Sequence::leave`] must be called.
    fn tracks_removal(&self) -> bool {
        false
    }

    /// Called when a dequeued item was removed for good; returns how many other items became ready.
    fn leave(&mut self, _meta: M) -> usize {
        0
    }

    /// Makes the items ready that are due at `now`, and returns how many.
    fn advance(&mut self, _now: u64) -> usize {
        0
    }

    /// The due time of the first scheduled item; [`NEVER`] if there is none.
    fn next_due(&self) -> u64 {
        NEVER
    }

    /// The number of ready items.
    fn ready(&self) -> usize;

    /// The number of items that are not ready yet.
    fn waiting(&self) -> usize {
        0
    }

    /// Begins a visit to all ready items.
    fn begin_visit(&mut self) -> Visit;

    /// Continues a visit: takes out some items to be shown, and returns whether there may be more. Like held
    /// items they are not available until they are put back.
    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, M>>) -> bool;

    /// Puts back an item that was shown by a visit, at its former position. Items that were shown together are
    /// passed last one first.
    fn put_back(&mut self, visit: &mut Visit, shown: Shown<T, M>);

    /// The number of items that are being shown.
    fn shown(&self) -> usize;

    /// Continues a visit without taking anything out: lowers `least` to the least known timestamp of some
    /// items, and returns whether there may be more.
    fn scan_times(&self, visit: &mut Visit, least: &mut Option<u64>) -> bool;

    /// Ends a visit.
    fn end_visit(&mut self) {}
}

/// The most items shown at once.
pub(crate) const PART: usize = 32;
/// The most places scanned at once.
pub(crate) const SCAN_STEP: usize = 1024;

/// The progress of a visit: the current and the end number, the current and the end position there, and the place that
/// was visited last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visit {
    pub(crate) number: u32,
    pub(crate) numbers: u32,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) mark: Mark,
}

/// The place of a position, as long as that has this stamp.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) position: i64,
    pub(crate) place: u32,
    pub(crate) stamp: u64,
}

/// An item that is being shown, and its former position.
#[derive(Debug)]
pub(crate) struct Shown<T, M> {
    pub(crate) entry: Entry<Stored<T, M>>,
    pub(crate) number: u32,
    pub(crate) position: i64,
    pub(crate) place: u32,
    pub(crate) name: u64,
}

/// An item dequeued from a sequence.
#[derive(Debug)]
pub(crate) struct Dequeued<T, M> {
    pub(crate) entry: Entry<Stored<T, M>>,
    /// How many items with its metadata, dequeued for good, must be unregistered now.
    pub(crate) gone: u32,
}
