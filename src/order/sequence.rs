//! The structure of an order: which item is next.

use crate::raw::{Entry, Stored};
use crate::time::NEVER;

/// A structure that says which item is next. One thread at a time uses it, under a lock, so it runs no
/// user code.
pub(crate) trait Sequence<T, M> {
    /// Takes in an item that was pushed.
    fn arrive(&mut self, entry: Entry<Stored<T, M>>);

    /// As [`Sequence::arrive`], shortly before [`Sequence::advance`], which may see to where its turn is.
    fn arrive_timed(&mut self, entry: Entry<Stored<T, M>>) {
        self.arrive(entry);
    }

    /// Takes back an item that was given out: it goes before all others of its kind.
    ///
    /// Of items that come back together the last one comes first, so that afterwards they stand in the
    /// order in which they were given out.
    fn come_back(&mut self, entry: Entry<Stored<T, M>>);

    /// Gives out the next item: `for_good`, if it will neither come back nor be told of by [`Sequence::leave`].
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, M>>;

    /// Whether [`Sequence::leave`] is to be called.
    fn minds_leaving(&self) -> bool {
        false
    }

    /// Takes note that an item is gone for good that was given out, and says how many others are ready by
    /// that.
    fn leave(&mut self, _meta: M) -> usize {
        0
    }

    /// Makes ready what is due at `now`, and says how many items that are.
    fn advance(&mut self, _now: u64) -> usize {
        0
    }

    /// When the next item is due of those that wait for their time.
    fn next_due(&self) -> u64 {
        NEVER
    }

    /// Items that can be given out now.
    fn ready(&self) -> usize;

    /// Items that cannot be given out yet.
    fn waiting(&self) -> usize {
        0
    }

    /// Begins a visit to all ready items.
    fn begin_visit(&mut self) -> Visit;

    /// Goes on with a visit: takes some items out to be shown, and says whether there may be more. They are as
    /// if they were held until they are put back.
    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, M>>) -> bool;

    /// Puts an item back that was shown by a visit, to where it was. Of those that were shown together the last
    /// one comes first.
    fn put_back(&mut self, visit: &mut Visit, shown: Shown<T, M>);

    /// Items that are shown.
    fn shown(&self) -> usize;

    /// Goes on with a visit without taking anything out: lowers `least` to the least time that is known of some
    /// items, and says whether there may be more.
    fn look_at_times(&self, visit: &mut Visit, least: &mut Option<u64>) -> bool;

    /// Ends a visit.
    fn end_visit(&mut self) {}
}

/// How many items are shown together.
pub(crate) const PART: usize = 32;
/// How many places are looked at together.
pub(crate) const GLANCE: usize = 1024;

/// How far a visit to all ready items has come: at which number, up to which one, and at which position there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visit {
    pub(crate) number: u32,
    pub(crate) numbers: u32,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// An item that is shown, and where it was.
#[derive(Debug)]
pub(crate) struct Shown<T, M> {
    pub(crate) entry: Entry<Stored<T, M>>,
    pub(crate) number: u32,
    pub(crate) position: i64,
    pub(crate) name: u64,
}

/// An item that a sequence gives out.
#[derive(Debug)]
pub(crate) struct Dequeued<T, M> {
    pub(crate) entry: Entry<Stored<T, M>>,
    /// How many items like it, given out for good, the registry is to be told of now.
    pub(crate) gone: u32,
}
