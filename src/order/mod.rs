//! Disciplines: which ready item is next.
//!
//! A queue without one takes items straight from its lanes. With one, whoever pops moves what the lanes
//! have into an *order*, a sequential structure under a lock, and takes the next item out of that. All
//! else is as in any queue: pushes go to the lanes, commits make them visible there, transactions hold
//! what they took, and an abort gives it back to the lanes, whence it comes back to the order first.
//!
//! A new discipline is an [`Order`], and a [`Roll`] if it has to know more of an item than the item's
//! label says.

#[cfg(all(test, not(shuttle)))]
pub(crate) mod lifo;
#[cfg(all(loom, test))]
mod models;
mod rack;
mod sorted;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

pub(crate) use sorted::Sorted;

use crate::raw::Entry;
use crate::time::NEVER;
use std::any::Any;

/// The order of a plain [`Queue`](crate::Queue): who came first leaves first, as well as can be told
/// without slowing anybody down.
///
/// The least that a [`Handle`](crate::Handle) and a [`Transaction`](crate::Transaction) can do; those of
/// queues with other orders may do more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

/// A structure that says which item is next. One thread at a time uses it, under a lock, so it runs no
/// user code.
pub(crate) trait Order<T>: Send {
    /// Takes in an item that was pushed.
    fn arrive(&mut self, entry: Entry<T>);

    /// As [`Order::arrive`], shortly before [`Order::advance`], which may see to where its turn is.
    fn arrive_timed(&mut self, entry: Entry<T>) {
        self.arrive(entry);
    }

    /// Takes back an item that was given out: it goes before all others of its kind.
    ///
    /// Of items that come back together the last one comes first, so that afterwards they stand in the
    /// order in which they were given out.
    fn come_back(&mut self, entry: Entry<T>);

    /// Gives out the next item: `for_good`, if it will neither come back nor be told of by [`Order::leave`].
    fn next(&mut self, for_good: bool) -> Option<Given<T>>;

    /// Whether [`Order::leave`] is to be called.
    fn minds_leaving(&self) -> bool {
        false
    }

    /// Takes note that an item is gone for good that was given out, and says how many others are ready by
    /// that.
    fn leave(&mut self, _order: u64) -> usize {
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
    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T>>) -> bool;

    /// Puts an item back that was shown by a visit, to where it was. Of those that were shown together the last
    /// one comes first.
    fn put_back(&mut self, visit: &mut Visit, shown: Shown<T>);

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
pub(crate) struct Shown<T> {
    pub(crate) entry: Entry<T>,
    pub(crate) number: u32,
    pub(crate) position: i64,
    pub(crate) name: u64,
}

/// An item that an order gives out.
#[derive(Debug)]
pub(crate) struct Given<T> {
    pub(crate) entry: Entry<T>,
    /// How many items with its word, given out for good, the roll is to be told of now.
    pub(crate) gone: u32,
}

/// What a discipline knows of items wherever they are, from before they are pushed until they are gone for
/// good. Many threads use it at once.
pub(crate) trait Roll<T>: Any + Send + Sync {
    /// The word by which the discipline will know an item; `None`, if there is no room for one like it.
    ///
    /// May run user code.
    fn enrol(&self, item: &T) -> Option<u64>;

    /// As [`Roll::enrol`], of an item that was known by `order` once.
    fn enrol_again(&self, item: &T, _order: u64) -> Option<u64> {
        self.enrol(item)
    }

    /// Whether there may be no room for an item while the queue has room.
    fn is_limited(&self) -> bool {
        false
    }

    /// Whether there is room for these items. May run user code.
    fn fit(&self, _items: &[T]) -> Fit {
        Fit::Now
    }

    /// Whether items are somewhere that become ready by themselves, so that the order depends on the time.
    fn is_scheduled(&self) -> bool {
        false
    }

    /// Takes note that so many items with this word are gone for good, or were never pushed. May run
    /// destructors of user code, whose panics are caught.
    fn leave(&self, _order: u64, _count: u32) {}
}

/// A discipline, as its queue sees it.
pub(crate) trait Discipline<T>: Send + Sync {
    /// As [`Roll::enrol`].
    fn enrol(&self, item: &T) -> Option<u64>;

    /// As [`Roll::enrol_again`].
    fn enrol_again(&self, item: &T, order: u64) -> Option<u64>;

    /// As [`Roll::is_limited`].
    fn is_limited(&self) -> bool;

    /// As [`Roll::fit`].
    fn fit(&self, items: &[T]) -> Fit;

    /// An item is gone for good that was taken: how many others are ready by that.
    fn leave(&self, order: u64) -> usize;

    /// An item is gone for good, or was not pushed after all, that was never given out.
    fn strike(&self, order: u64);

    /// The [`Roll`], for those who know which it is.
    fn roll(&self) -> &dyn Any;

    /// Takes the next item.
    fn take(&self) -> Next<Entry<T>>;

    /// As [`Discipline::take`], of an item that is gone for good by that: how many others are ready then.
    fn pop(&self) -> (Next<Entry<T>>, usize);

    /// Takes in what the lanes have: true, if something of that may be due already.
    fn take_in(&self) -> bool;

    /// Ready items, and those that are not ready yet, of what was taken in.
    fn counts(&self) -> (usize, usize);

    /// The least time that is known of the ready items that were taken in, about. Looks at all of them, but
    /// keeps nobody waiting for long.
    fn oldest(&self) -> Option<u64>;

    /// As [`Order::begin_visit`].
    fn begin_visit(&self) -> Visit;

    /// As [`Order::show`].
    fn show(&self, visit: &mut Visit, into: &mut Vec<Shown<T>>) -> bool;

    /// As [`Order::put_back`], of all that were shown together.
    fn put_back(&self, visit: &mut Visit, shown: &mut Vec<Shown<T>>);

    /// As [`Order::end_visit`].
    fn end_visit(&self);

    /// Whether nothing is ready, strictly.
    fn is_empty(&self) -> bool;

    /// Whether no item is in the order at this instant, ready or not.
    fn has_none(&self) -> bool;

    /// As [`Roll::is_scheduled`].
    fn is_scheduled(&self) -> bool;

    /// Takes in what the lanes have, makes ready what is due at `now`, and says how many items are ready by
    /// that.
    fn arrange(&self, now: u64) -> usize;

    /// As [`Discipline::arrange`]; then plans what is due next.
    fn advance(&self, now: u64) -> usize;
}

/// Whether a roll has room for some items, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fit {
    Now,
    /// When others are gone.
    Later,
    Never,
}

/// What a look for the next item gave.
#[derive(Debug)]
pub(crate) enum Next<I> {
    Item(I),
    /// Something came in that may be due already: look at the clock, and try again.
    Due,
    /// Nothing was ready, at one instant.
    Nothing,
}

impl<I> Next<I> {
    fn map<J>(self, f: impl FnOnce(I) -> J) -> Next<J> {
        match self {
            Self::Item(item) => Next::Item(f(item)),
            Self::Due => Next::Due,
            Self::Nothing => Next::Nothing,
        }
    }
}
