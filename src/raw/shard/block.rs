//! Blocks: memory for the held items of a transaction, and after an abort for its runs.
//!
//! A block belongs to one handle while it is filled, in *stretches* of consecutive items from one
//! shard. A run is the chain of one shard's stretches. An abort gives up the block and links its runs,
//! without allocation, copies or work per item. When all its runs are unlinked the block is reused by the
//! handle that took the last item if no other thread can reach it, and retired otherwise.

use crate::raw::memory::reclaim::Pin;
use crate::raw::memory::row::Row;
use crate::raw::shard::run::{Block, Filled, HeldSlot, Home, Run};
use crate::sync::{weak, AtomicUsize, Ordering};
use std::cell::Cell;
use std::ptr::NonNull;

/// The number of runs of a transaction's first block.
pub(in crate::raw) const RUNS: usize = 4;
/// The maximum number of runs in a block; a transaction over more shards uses more blocks.
pub(in crate::raw) const MOST_RUNS: usize = 64;

/// Above the number of linked runs.
const SHARED: usize = 2 * MOST_RUNS;

impl Block {
    /// Allocates a block with room for `len` items and `runs` runs.
    pub(in crate::raw) fn allocate<T>(len: usize, runs: usize) -> Filled<T> {
        let header = Self {
            used: Cell::new(0),
            linked: AtomicUsize::new(0),
        };
        Row::new(header, len, HeldSlot::vacant, runs, Run::vacant)
    }

    /// The number of runs for which the block has room.
    ///
    /// # Safety
    ///
    /// The block is alive.
    #[inline]
    pub(in crate::raw) unsafe fn run_count<T>(block: Filled<T>) -> usize {
        // SAFETY: by contract.
        unsafe { Row::extras(block) }.len()
    }

    /// The runs that are assigned to a home.
    ///
    /// # Safety
    ///
    /// The block is not freed while `'b` lasts.
    #[inline]
    unsafe fn used<'b, T>(block: Filled<T>) -> &'b [Run<T>] {
        // SAFETY: by contract.
        unsafe { &Row::extras(block)[..Row::header(block).used.get()] }
    }

    /// Counts one more delivery of the first `count` items.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller, and these slots are filled.
    #[inline]
    pub(in crate::raw) unsafe fn count_delivery<T>(block: Filled<T>, count: usize) {
        for index in 0..count {
            // SAFETY: by contract.
            unsafe {
                let slot: &HeldSlot<T> = Row::get(block, index);
                slot.set_delivery(slot.delivery().again());
            }
        }
    }

    /// Returns the index of the run for items from `home`, and assigns one if there is none yet. Returns `None` if
    /// no run is left to assign. If the block is `vacant`, earlier assignments are void.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller.
    pub(in crate::raw) unsafe fn run_for<T>(
        block: Filled<T>,
        home: Home,
        vacant: bool,
    ) -> Option<u32> {
        // SAFETY: by contract.
        let (used, runs) = unsafe { (&Row::header(block).used, Row::extras(block)) };
        if vacant {
            used.set(0);
        }
        let mut known = runs[..used.get()].iter();
        let known = known.position(|run| run.home.get() == home);
        let index = known.unwrap_or(used.get());
        runs.get(index)?.home.set(home);
        used.set(used.get().max(index + 1));
        u32::try_from(index).ok()
    }

    /// Appends the items in `start..end`, if any, to `run`.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller; the slots are filled, and lie behind those of all runs.
    pub(in crate::raw) unsafe fn add_stretch<T>(block: Filled<T>, run: u32, start: u32, end: u32) {
        if start < end {
            // SAFETY: by contract.
            unsafe { Row::extras(block)[run as usize].extend(block, start, end) };
        }
    }

    /// Clears all runs.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller.
    pub(in crate::raw) unsafe fn clear_stretches<T>(block: Filled<T>) {
        // SAFETY: by contract.
        unsafe { Self::used(block) }.iter().for_each(Run::clear);
    }

    /// Removes gaps, the slots whose items were removed, from all runs.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller.
    pub(in crate::raw) unsafe fn skip_gaps<T>(block: Filled<T>) {
        // SAFETY: by contract.
        let runs = unsafe { Self::used(block) }.iter();
        for run in runs.filter(|run| run.cursor().left() > 0) {
            run.skip_gaps();
        }
    }

    /// Makes the block ready to be given up, with its first `count` items in this run, and returns the run.
    ///
    /// # Safety
    ///
    /// The block is alive and belongs to the caller; it is filled up to there, and no run has items yet.
    #[inline]
    pub(in crate::raw) unsafe fn complete_run<T>(
        block: Filled<T>,
        run: u32,
        count: usize,
    ) -> NonNull<Run<T>> {
        // SAFETY: by contract.
        let (header, runs) = unsafe { (Row::header(block), Row::extras(block)) };
        let run = &runs[run as usize];
        run.fill(block, count);
        // ORDERING: Relaxed; the link publishes it.
        header.linked.store(1, Ordering::Relaxed);
        NonNull::from(run)
    }

    /// Allocates a block for up to `len` items from `home` with a run that is a [`bookmark`](crate::raw::handle::bookmark).
    pub(in crate::raw) fn allocate_bookmark<T>(
        len: usize,
        home: Home,
    ) -> (Filled<T>, NonNull<Run<T>>) {
        let block = Self::allocate(len, 1);
        // SAFETY: allocated just now.
        let (header, runs) = unsafe { (Row::header(block), Row::extras(block)) };
        let run = &runs[0];
        run.home.set(home);
        header.used.set(1);
        run.begin_bookmark(block);
        // ORDERING: Relaxed; the link or the insertion publishes it.
        header.linked.store(1, Ordering::Relaxed);
        (block, NonNull::from(run))
    }

    /// Makes the block ready to be given up, and adds its runs with items to a list built by [`Run::group`].
    /// Returns `None` if there are no such runs.
    ///
    /// # Safety
    ///
    /// The block and those of the list are alive and belong to the caller.
    pub(in crate::raw) unsafe fn complete<T>(
        block: Filled<T>,
        homes: *mut Run<T>,
    ) -> Option<*mut Run<T>> {
        // SAFETY: by contract.
        let (header, used) = unsafe { (Row::header(block), Self::used(block)) };
        let filled = used.iter().filter(|run| run.cursor().left() > 0);
        let (homes, linked) = filled.fold((homes, 0), |(homes, linked), run| {
            (run.group(homes), linked + 1)
        });
        // ORDERING: Relaxed; the links publish it.
        header.linked.store(linked, Ordering::Relaxed);
        (linked > 0).then_some(homes)
    }

    /// Counts one run as unlinked. After the last one the block is the caller's if all its runs were left by visitors
    /// that were alone, and retired otherwise.
    ///
    /// # Safety
    ///
    /// The caller has unlinked the run in the visit that has ended so.
    pub(in crate::raw) unsafe fn release<T>(
        block: Filled<T>,
        alone: bool,
        pin: &Pin,
    ) -> Option<Filled<T>> {
        if !alone {
            // SAFETY: by contract.
            unsafe { Self::release_shared(block, pin) };
            return None;
        }
        // SAFETY: a block with a linked run is alive.
        let linked = unsafe { &Row::header(block).linked };
        // ORDERING: AcqRel, and Acquire; pairs with itself: other visitors, alone with their runs, use these no more.
        // The load saves the last decrement.
        let acquire = weak!("block.is-last", Acquire);
        let release = weak!("block.release", AcqRel);
        let left = match linked.load(acquire) {
            1 => 1,
            _ => linked.fetch_sub(1, release),
        };
        if left % SHARED == 1 && left > SHARED {
            // SAFETY: by contract, and this was the last run.
            unsafe { Self::retire(block, pin) };
        }
        (left == 1).then_some(block)
    }

    /// As [`Block::release`], for a run that other visitors may use.
    ///
    /// # Safety
    ///
    /// The caller has unlinked the run, while pinned.
    pub(in crate::raw) unsafe fn release_shared<T>(block: Filled<T>, pin: &Pin) {
        // SAFETY: a block with a linked run is alive.
        let linked = unsafe { &Row::header(block).linked };
        // ORDERING: Relaxed; other threads' accesses end with their pins, which retirement waits for.
        let left = linked.fetch_add(SHARED - 1, Ordering::Relaxed);
        if left % SHARED == 1 {
            // SAFETY: by contract, and this was the last run.
            unsafe { Self::retire(block, pin) };
        }
    }

    /// Frees the block once all pins end.
    ///
    /// # Safety
    ///
    /// All its runs are unlinked, and the caller is pinned.
    unsafe fn retire<T>(block: Filled<T>, pin: &Pin) {
        // SAFETY: its runs are no longer reachable, and threads that still move items out are
        // pinned. No items are left, so freeing runs no user code.
        unsafe { pin.retire(Row::bytes(block), move || Self::free(block)) };
    }

    /// Frees the block immediately.
    ///
    /// # Safety
    ///
    /// The block is no longer in use, and no item is left in it.
    pub(in crate::raw) unsafe fn free<T>(block: Filled<T>) {
        // SAFETY: by contract.
        unsafe { Row::free(block) };
    }
}
