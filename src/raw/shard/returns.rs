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
//! run is not used up before [`emptied`](super::Front::emptied) was incremented, so a strict Empty that has missed one finds another version.
//! Nothing is published by the end of the bookmark but that it is used up, as any run below it is by then.
//!
//! Runs of transactions are linked above the bookmark, or were below it before: they come before or after all of these.

use crate::raw::memory::Pin;
use crate::raw::shard::run::Run;
use crate::sync::{planted, Mutex};
use std::collections::BTreeMap;
use std::ptr::NonNull;

/// Where an item comes back to among others. A returned delivery keeps it; that of an item that a transaction has returned is just
/// before all that have not been taken from the head yet. Never 0.
pub(in crate::raw) type Rank = u64;

/// The returned deliveries of one shard.
pub(in crate::raw) struct Returns<T> {
    /// The bookmark above their runs.
    pub(super) bookmark: Option<NonNull<Run<T>>>,
    /// Their runs, by rank, for equal ranks in the order of the returns.
    pub(super) runs: BTreeMap<(Rank, u64), NonNull<Run<T>>>,
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
    pub(super) fn add(&mut self, run: NonNull<Run<T>>, rank: Rank) -> Option<NonNull<Run<T>>> {
        let key = (rank, self.returned);
        self.returned += 1;
        let before = self.runs.range(..key).next_back().map(|(_, run)| *run);
        self.runs.insert(key, run);
        before.filter(|_| !planted!("returns.puts-first"))
    }

    /// Unlinks the first runs that are used up, and retires them. The caller is a visitor.
    pub(super) fn drop_used_up(&mut self, pin: &Pin) {
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
            // SAFETY: unlinked just now.
            unsafe { Run::retire(run.block(), pin) };
        }
    }
}
