//! The front's part in returned deliveries: see `returns.rs`.

use crate::raw::memory::Entry;
use crate::raw::shard::front::{Front, Head, RunVisit};
use crate::raw::shard::returns::{Rank, Returns};
use crate::raw::shard::run::{Progress, Run};
use crate::sync::{lock, step, try_lock};

impl<T> Front<T> {
    /// Puts an item back before the head, in the order of the ranks of such items.
    pub(in crate::raw) fn put_back(&self, entry: Entry<T>, rank: Rank) {
        let run = Run::of_one(self.home(), entry, rank);
        let visit = self.visit();
        let mut returns = lock(self.returns.get_or_add(Returns::new));
        returns.drop_used_up(&visit.pin);
        let before = returns.add(run, rank);
        let Some(bookmark) = returns.bookmark else {
            let bookmark = Run::bookmark_above(self.home(), run);
            returns.bookmark = Some(bookmark);
            // SAFETY: both are complete, and belong to the front from here on.
            return unsafe { self.link(bookmark, run) };
        };
        // SAFETY: linked, and unlinked by nobody without the lock.
        unsafe { before.unwrap_or(bookmark).as_ref() }.insert_below(run);
        step!("returns.counts-no-abort", self.count_abort());
    }

    /// Unlinks returned deliveries that are used up, unless another thread is about it. Returns true if none is left, and the
    /// bookmark is as good as used up too.
    #[cold]
    pub(in crate::raw) fn tidy(&self, visit: &RunVisit<'_>) -> bool {
        let Some(mut returns) = self.returns.get().and_then(try_lock) else {
            return false;
        };
        returns.drop_used_up(&visit.pin);
        if !returns.runs.is_empty() {
            return false;
        }
        let bookmark = returns.bookmark.take();
        if let Some(bookmark) = bookmark {
            // SAFETY: nothing is below it, and it is used no more.
            unsafe { Run::end_bookmark(bookmark, 0) };
        }
        bookmark.is_some()
    }

    /// The rank of an item of a run: that of the returned delivery. One that a transaction has returned comes before all
    /// that have not been taken from the head yet, in the order of the run.
    pub(super) fn rank_in(&self, run: &Run<T>, cursor: Progress) -> Rank {
        match run.rank() {
            0 => Head::rank_before(self.head().position(), cursor.indices(0).start),
            rank => rank,
        }
    }
}

impl Head {
    /// The number of ranks at one position, the last of which is that of its item.
    const RANKS: u64 = 1 << Self::BITS;

    /// The rank of the item at a position of the head.
    #[inline]
    pub(in crate::raw) fn rank(position: u64) -> Rank {
        position * Self::RANKS + (Self::RANKS - 1)
    }

    /// The rank of the nth item that was returned when the head was at a position; not 0.
    fn rank_before(position: u64, nth: usize) -> Rank {
        position * Self::RANKS + (nth as u64 + 1).min(Self::RANKS - 2)
    }
}
