//! Returned deliveries: items that come back one by one, and are taken again in the order in which they were taken.
//!
//! Each returned delivery has a run of its own, with a *rank*: where the item was in its shard. The runs are linked by
//! ascending rank below a bookmark, which nobody unlinks. So a consumer finds the least rank first, by the loads with which it
//! finds any run, and takes no lock.
//!
//! | who | does | under the lock |
//! |---|---|---|
//! | the first return | links a bookmark on top, with its run below, by one CAS | yes |
//! | a further return | inserts its run behind the last one that is not of a greater rank, by one store; counts an abort | yes |
//! | a consumer | claims the first run with items below the bookmark, by its cursor | no |
//! | afterwards | unlinks the runs that are used up; after the last one, ends the bookmark | if the lock is free |
//!
//! While the bookmark is linked no other thread changes the links below it as far as the last run here: a run is unlinked by
//! others only on top of the front, and those that visit a shard change only what follows a bookmark of their own, which they
//! link on top. So the lock orders all changes, and what is in the table is alive. A thread that has come to an unlinked run goes
//! on by its link, as it is pinned; it may miss a run that is inserted meanwhile, as if it had come by before.
//!
//! An insertion is seen like a link on top: claims at the head that missed it fail, because an abort is counted after it; and a
//! run is not used up before [`Front::emptied`] was incremented, so a strict Empty that has missed one finds another version.
//! Nothing is published by the end of the bookmark but that it is used up, as any run below it is by then.
//!
//! Runs of transactions are linked above the bookmark, or were below it before: they come before or after all of these.

use crate::raw::memory::Entry;
use crate::raw::shard::front::{Front, Head, RunVisit};
use crate::raw::shard::run::{Progress, Run};
use crate::sync::{lock, planted, step, try_lock, Mutex};
use std::collections::BTreeMap;
use std::ptr::NonNull;

/// Where an item that was never returned, or by a transaction, comes back to.
pub(in crate::raw) type Rank = u64;

/// The returned deliveries of one shard.
pub(in crate::raw) struct Returns<T> {
    /// The bookmark above their runs.
    bookmark: Option<NonNull<Run<T>>>,
    /// Their runs, by rank, and for equal ranks in the order of the returns.
    runs: BTreeMap<(Rank, u64), NonNull<Run<T>>>,
    returned: u64,
}

// SAFETY: the runs that it points to contain items of type T, and are shared as the front shares them.
unsafe impl<T: Send> Send for Returns<T> {}

impl<T> Returns<T> {
    pub(super) fn new() -> Mutex<Self> {
        Mutex::new(Self {
            bookmark: None,
            runs: BTreeMap::new(),
            returned: 0,
        })
    }

    /// Adds a run, and returns the one behind which it belongs, if there is one.
    fn add(&mut self, run: NonNull<Run<T>>, rank: Rank) -> Option<NonNull<Run<T>>> {
        let key = (rank, self.returned);
        self.returned += 1;
        let before = self.runs.range(..key).next_back().map(|(_, run)| *run);
        self.runs.insert(key, run);
        before.filter(|_| !planted!("returns.puts-first"))
    }

    /// Unlinks the first runs that are used up, and retires them.
    fn drop_used_up(&mut self, visit: &RunVisit<'_>) {
        let Some(bookmark) = self.bookmark else {
            return;
        };
        while let Some(first) = self.runs.first_entry() {
            // SAFETY: both are linked, and are unlinked by nobody else.
            let (bookmark, run) = unsafe { (bookmark.as_ref(), first.get().as_ref()) };
            if !run.cursor().is_exhausted() {
                return;
            }
            first.remove();
            bookmark.change_next(run.next());
            // SAFETY: unlinked just now, in the visit.
            unsafe { visit.retire(run) };
        }
    }
}

impl<T> Front<T> {
    /// Puts an item back before the head, in the order of the ranks of such items.
    pub(in crate::raw) fn put_back(&self, entry: Entry<T>, rank: Rank) {
        let run = Run::of_one(self.home(), entry, rank);
        let visit = self.visit();
        let mut returns = lock(self.returns());
        returns.drop_used_up(&visit);
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
        let Some(mut returns) = self.any_returns().and_then(try_lock) else {
            return false;
        };
        returns.drop_used_up(visit);
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
