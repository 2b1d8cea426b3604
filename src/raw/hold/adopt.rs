//! Adopting: an empty hold takes over the block of a run that it takes as a whole, with the items in it.
//!
//! The commonest run is that of a transaction which held one item and aborted. Such a run is *whole* if none of its items is
//! claimed yet: otherwise there are vacant slots before them. They are claimed like any others. A visitor that
//! unlinks the run and ends its visit alone has the block for itself: it could reuse it, and so it may use the
//! items where they are. If it was not alone, others may still read the run and the delivery metadata, and the items
//! are moved out. For that the hold keeps a spare block, so nothing has to be allocated after the claim. The block is then
//! retired when its run is unlinked, for which the pin is enough: a visitor that finds a run used up by somebody else never
//! reuses the block. The spare stays, so a handle keeps two blocks at most, and adopts none but those that it would keep.

use crate::raw::hold::{is_kept, Hold};
use crate::raw::memory::Row;
use crate::raw::shard::{Front, Home, Progress, Run, Sink};
use crate::sync::planted;

impl<T> Front<T> {
    /// Takes the items of the run on top, up to `most`, if it is whole and the hold can adopt its block. Returns their
    /// number; if it is 0, [`Front::take`] decides. The hold has [room](Hold::vacant_room) for `most` items.
    #[inline]
    pub(in crate::raw) fn take_whole(&self, hold: &mut Hold<T>, most: usize) -> usize {
        let visit = self.visit();
        // SAFETY: in a visit, whose pin ends last.
        let Some(run) = (unsafe { self.top() }) else {
            return 0;
        };
        let cursor = run.cursor();
        let count = cursor.left();
        // SAFETY: in a visit to the block's run.
        let is_kept = || is_kept::<T>(unsafe { Row::len(run.block()) });
        let wanted = 0 < count && count <= most && cursor.is_whole() && is_kept();
        if !wanted || !self.claim_run(run, cursor, Progress::used_up()) {
            return 0;
        }
        let unlinked = self.unlink(run);
        let end = visit.end();
        // SAFETY: claimed just now. A visitor that has unlinked the run, and was alone, has the block for itself.
        unsafe {
            let unlinked = unlinked || planted!("front.adopts-linked");
            if unlinked && (end.alone || planted!("front.adopts-shared")) {
                hold.adopt(run, count, self.home());
            } else {
                hold.move_in(run, cursor, self.home());
                if unlinked {
                    Run::retire(run.block(), &end.pin);
                }
            }
        }
        count
    }
}

impl<T> Hold<T> {
    /// Adopts the block of a run, and counts the delivery of its items.
    ///
    /// # Safety
    ///
    /// The run was whole and had `count` items, which the caller has claimed; nobody else uses the block. The hold
    /// has no block in use.
    #[inline(always)] // the pop of an aborted item
    unsafe fn adopt(&mut self, run: &Run<T>, count: usize, home: Home) {
        // SAFETY: by contract.
        unsafe { run.count_delivery(count) };
        self.add_filled(run.block(), count, home);
    }

    /// Moves the items of a run, from this cursor on, into the room that the hold has kept for them.
    ///
    /// # Safety
    ///
    /// The caller has claimed them, and is pinned since it visited the run. If it does not visit the run any more: it has
    /// unlinked the run, or nothing is left in it, so whoever unlinks it does not reuse the block.
    #[cold]
    unsafe fn move_in(&mut self, run: &Run<T>, cursor: Progress, home: Home) {
        let count = cursor.left();
        self.reserve(count, home);
        // SAFETY: by contract.
        unsafe { run.move_out(cursor, count, self) };
    }
}
