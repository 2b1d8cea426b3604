//! Where the items of a queue are taken from.

use super::{Registry, Shown, Visit};
use crate::raw::{Entry, Stored};

/// Where the items of a queue are taken from: its shards, as the defaults say, or what [`SORTS`](Source::SORTS)
/// what comes out of them.
pub(crate) trait Source<T, M>: Send + Sync {
    /// Whether items are taken from here, and not from the shards.
    const SORTS: bool;
    type Registry: Registry<T, M>;

    /// What is known of items wherever they are.
    fn registry(&self) -> &Self::Registry;

    /// An item is gone for good that was taken: how many others are ready by that.
    fn leave(&self, _meta: M) -> usize {
        0
    }

    /// Takes the next item.
    fn take(&self) -> Next<Entry<Stored<T, M>>> {
        Next::Nothing
    }

    /// As [`Source::take`], of an item that is gone for good by that: how many others are ready then.
    fn pop(&self) -> (Next<Entry<Stored<T, M>>>, usize) {
        (Next::Nothing, 0)
    }

    /// Takes in what the shards have: true, if something of that may be due already.
    fn take_in(&self) -> bool {
        false
    }

    /// Ready items, and those that are not ready yet, of what was taken in.
    fn counts(&self) -> (usize, usize) {
        (0, 0)
    }

    /// The least time that is known of the ready items that were taken in, about. Looks at all of them, but
    /// keeps nobody waiting for long.
    fn oldest(&self) -> Option<u64> {
        None
    }

    /// As [`Sequence::begin_visit`](super::Sequence::begin_visit).
    fn begin_visit(&self) -> Visit {
        Visit::default()
    }

    /// As [`Sequence::show`](super::Sequence::show).
    fn show(&self, _visit: &mut Visit, _into: &mut Vec<Shown<T, M>>) -> bool {
        false
    }

    /// As [`Sequence::put_back`](super::Sequence::put_back), of all that were shown together.
    fn put_back(&self, _visit: &mut Visit, _shown: &mut Vec<Shown<T, M>>) {}

    /// As [`Sequence::end_visit`](super::Sequence::end_visit).
    fn end_visit(&self) {}

    /// Whether nothing is ready, strictly. Asked only of a source that sorts.
    fn is_empty(&self) -> bool {
        true
    }

    /// Whether no item was taken in and is not given out yet, ready or not, at this instant.
    fn has_none(&self) -> bool {
        true
    }

    /// Takes in what the shards have, makes ready what is due at `now`, and says how many items are ready by
    /// that.
    fn arrange(&self, _now: u64) -> usize {
        0
    }

    /// As [`Source::arrange`]; then plans what is due next.
    fn advance(&self, _now: u64) -> usize {
        0
    }
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
    pub(super) fn map<J>(self, f: impl FnOnce(I) -> J) -> Next<J> {
        match self {
            Self::Item(item) => Next::Item(f(item)),
            Self::Due => Next::Due,
            Self::Nothing => Next::Nothing,
        }
    }
}

/// The shards themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsorted;

impl<T> Source<T, ()> for Unsorted {
    const SORTS: bool = false;
    type Registry = Self;

    fn registry(&self) -> &Self {
        self
    }
}

impl<T> Registry<T, ()> for Unsorted {
    #[inline]
    fn register(&self, _: &T) -> Option<()> {
        Some(())
    }
}
