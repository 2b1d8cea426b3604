//! The hold: the items that a transaction has taken, at addresses that do not move.

pub(in crate::raw) mod adopt;
pub(in crate::raw) mod item_ref;
pub(in crate::raw) mod position;
pub(in crate::raw) mod removal;

use crate::raw::memory::entry::DeliveryMeta;
use crate::raw::memory::row::Row;
use crate::raw::shard::block::{MOST_RUNS, RUNS};
use crate::raw::shard::front::Front;
use crate::raw::shard::run::{Block, Filled, HeldSlot, Home, Run};
use crate::raw::shard::sink::Sink;
use crate::sync::SMALL;
use std::mem::{self, size_of};
use std::ptr;

/// Bytes of items in the first block.
const FIRST_BYTES: usize = 2048;
/// Bytes of items in the largest block that is kept for the next transaction.
const KEPT_BYTES: usize = 8 * 1024;
/// Bytes of items in the largest block.
pub(in crate::raw) const MOST_BYTES: usize = 64 * 1024;
/// Blocks for which a hold keeps room in its list.
const KEPT_PARTS: usize = 16;
/// Items in the first block, if they are small.
const FIRST_ITEMS: usize = if SMALL { 2 } else { 32 };

/// The held items of one handle, in the order in which they were taken.
pub(in crate::raw) struct Hold<T> {
    parts: Vec<HoldBlock<T>>,
    /// A vacant block for the next transaction, in which there is room when another one is [adopted](Front::take_whole).
    spare: Option<HoldBlock<T>>,
    /// The first slot of the last block, the first vacant one, and the end of the block.
    first: *const HeldSlot<T>,
    next: *const HeldSlot<T>,
    end: *const HeldSlot<T>,
    /// The items of the last block from `start` on came from `home`, and belong to `run`.
    home: Home,
    run: u32,
    start: u32,
    /// Held items that were not taken out.
    len: usize,
    /// Whether the slots in use are not just those of one stretch of one block.
    scattered: bool,
    /// Slots whose item was removed: see `removal.rs`.
    gaps: usize,
    /// The block in which an item was found by its address last.
    found: usize,
    /// While items are taken out: the slot of the oldest one, and the number of items left in its block.
    oldest: *const HeldSlot<T>,
    oldest_left: usize,
    /// 0 in an open transaction; after the commit one more than the number of blocks whose items are, or were, taken out.
    phase: usize,
}

/// A block and the number of items put into it, which is kept up to date for all blocks except the last. It is
/// 0 if room was made for items that another consumer then took.
pub(in crate::raw) struct HoldBlock<T> {
    block: Filled<T>,
    capacity: usize,
    filled: usize,
}

impl<T> HoldBlock<T> {
    /// # Safety
    ///
    /// The block is alive.
    #[inline]
    pub(in crate::raw) unsafe fn new(block: Filled<T>) -> Self {
        Self {
            block,
            // SAFETY: by contract.
            capacity: unsafe { Row::len(block) },
            filled: 0,
        }
    }

    /// Whether a hold keeps the block when it is vacant: it is not too large, and was made for a transaction.
    #[inline]
    pub(in crate::raw) fn is_kept(&self) -> bool {
        // SAFETY: the block is alive.
        let runs = unsafe { Block::run_count(self.block) };
        self.capacity <= fitting::<T>(KEPT_BYTES) && runs >= RUNS
    }
}

/// The number of items that fit into `bytes`, at least one.
pub(in crate::raw) fn fitting<T>(bytes: usize) -> usize {
    (bytes / size_of::<HeldSlot<T>>()).max(1)
}

impl<T> Hold<T> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            parts: Vec::new(),
            spare: None,
            first: ptr::null(),
            next: ptr::null(),
            end: ptr::null(),
            home: ptr::null(),
            run: 0,
            start: 0,
            len: 0,
            scattered: false,
            gaps: 0,
            found: 0,
            oldest: ptr::null(),
            oldest_left: 0,
            phase: 0,
        }
    }

    /// A hold for `len` items of one shard, which it gives back at once: it has no more room than these need, if they fit
    /// into a block. With one run it is freed with the last of them, instead of being kept or adopted.
    pub(in crate::raw) fn for_one_run(len: usize) -> Self {
        let mut hold = Self::new();
        let capacity = len.min(fitting::<T>(MOST_BYTES));
        // SAFETY: allocated just now.
        hold.fill_next(unsafe { HoldBlock::new(Block::allocate(capacity, 1)) });
        hold
    }

    #[inline]
    pub(in crate::raw) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is room for one item from `home`.
    #[inline(always)] // the pop of a transaction
    pub(in crate::raw) fn has_room(&self, home: Home) -> bool {
        self.next != self.end && self.home == home
    }

    /// Whether the items are committed, and still have to be taken out.
    pub(in crate::raw) fn is_committed(&self) -> bool {
        self.phase > 0
    }

    /// The front from which the last accepted item came.
    pub(in crate::raw) fn home(&self) -> Home {
        self.home
    }

    /// The slot of the last accepted item.
    #[inline]
    pub(in crate::raw) fn newest(&self) -> &HeldSlot<T> {
        debug_assert!(self.len > 0);
        // SAFETY: the slot before the first vacant one is filled: an item was just accepted.
        unsafe { &*self.next.sub(1) }
    }

    /// Makes the remaining items ready to be taken out.
    #[inline]
    pub(in crate::raw) fn commit(&mut self) {
        self.phase = 1;
        if self.scattered {
            self.close_gaps();
        }
    }

    #[cold]
    fn close_gaps(&mut self) {
        if mem::take(&mut self.gaps) == 0 {
            return;
        }
        for part in 0..self.parts.len() {
            let filled = self.filled(part);
            // SAFETY: the hold owns the block, and has filled its first `filled` slots.
            let gaps = unsafe { Self::close_gaps_of(self.parts[part].block, filled) };
            self.parts[part].filled = filled - gaps;
        }
        if let Some(last) = self.parts.last() {
            // SAFETY: within the block, which the hold owns.
            self.next = unsafe { self.first.add(last.filled) };
        }
    }

    /// The number of items put into a block.
    fn filled(&self, part: usize) -> usize {
        match self.parts.get(part) {
            Some(_) if part + 1 == self.parts.len() => self.index() as usize,
            Some(part) => part.filled,
            None => 0,
        }
    }

    /// The index of the first vacant slot of the last block.
    #[allow(clippy::cast_possible_truncation)] // blocks are far smaller than u32
    fn index(&self) -> u32 {
        ((self.next as usize - self.first as usize) / size_of::<HeldSlot<T>>()) as u32
    }

    /// Moves the oldest item out, after the commit.
    #[inline]
    pub(in crate::raw) fn take_out(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        while self.oldest_left == 0 {
            self.advance_block();
        }
        // SAFETY: the slot was filled, and is taken once: `oldest` advances, within the block.
        let item = unsafe {
            let item = (*self.oldest).take();
            self.oldest = self.oldest.add(1);
            item
        };
        self.oldest_left -= 1;
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(item)
    }

    /// Continues with the items of the next block.
    fn advance_block(&mut self) {
        let part = self.phase - 1;
        self.oldest_left = self.filled(part);
        // SAFETY: the hold owns the block.
        self.oldest = unsafe { Row::element(self.parts[part].block, 0) };
        self.phase += 1;
    }

    /// Makes the hold ready for the next transaction. Remaining items are not dropped.
    #[inline]
    pub(in crate::raw) fn clear(&mut self) {
        if self.scattered {
            self.gather();
        }
        self.len = 0;
        self.next = self.first;
        self.phase = 0;
        self.oldest_left = 0;
    }

    /// Keeps one block for the next transaction, without runs.
    #[cold]
    fn gather(&mut self) {
        self.scattered = false;
        self.start = 0;
        if let Some(last) = self.parts.last() {
            // SAFETY: the hold owns the block.
            unsafe { Block::clear_stretches(last.block) };
        }
        if self.parts.len() > 1 {
            self.shrink();
        }
    }

    /// Frees all blocks except the last, and that one too if it is too large.
    fn shrink(&mut self) {
        let kept = self.parts.pop();
        self.free();
        match kept {
            Some(part) if part.is_kept() => self.fill_next(part),
            // SAFETY: the hold owns its blocks, and no item is left in them.
            Some(part) => unsafe { Block::free(part.block) },
            None => {}
        }
    }

    /// Frees all blocks.
    fn free(&mut self) {
        self.forget_blocks();
        for part in &self.parts {
            // SAFETY: the hold owns its blocks, and no item is left in them.
            unsafe { Block::free(part.block) };
        }
        self.clear_parts();
    }

    /// Empties the list of blocks, and frees its memory if it was long.
    fn clear_parts(&mut self) {
        self.parts.clear();
        if self.parts.capacity() > KEPT_PARTS {
            self.parts = Vec::new();
        }
    }

    /// Returns all items to the shards they came from, in order, as one run per shard and block.
    #[inline(always)] // the abort
    pub(in crate::raw) fn give_back(&mut self) {
        match self.parts.last() {
            Some(last) if !self.scattered && self.len > 0 => {
                // SAFETY: the hold owns the block, whose items are those of this run.
                let run = unsafe { Block::complete_run(last.block, self.run, self.len) };
                let home = self.home;
                self.parts.clear();
                self.forget_blocks();
                self.len = 0;
                // SAFETY: the block is complete, and the hold no longer uses it. A home is part of a shard, which the
                // handle keeps alive.
                unsafe { Front::at(home).link(run, run) };
            }
            _ => self.give_back_scattered(),
        }
    }

    /// As [`Hold::give_back`], for items in more than one stretch, or none at all.
    #[cold]
    fn give_back_scattered(&mut self) {
        self.end_stretch();
        if self.gaps > 0 {
            self.skip_gaps();
        }
        let mut homes: *mut Run<T> = ptr::null_mut();
        for part in &self.parts {
            // SAFETY: the hold owns its blocks; no item of an open transaction was taken out.
            match unsafe { Block::complete(part.block, homes) } {
                Some(more) => homes = more,
                // SAFETY: the block has no items.
                None => unsafe { Block::free(part.block) },
            }
        }
        self.clear_parts();
        self.forget_blocks();
        self.len = 0;
        // SAFETY: the blocks are complete, and the hold no longer uses them.
        unsafe { Front::link_all(homes) };
    }

    /// Removes the gaps from the runs.
    #[cold]
    fn skip_gaps(&mut self) {
        self.gaps = 0;
        for part in &self.parts {
            // SAFETY: the hold owns its blocks.
            unsafe { Block::skip_gaps(part.block) };
        }
    }

    /// Makes the next item search for its run.
    fn forget_blocks(&mut self) {
        self.home = ptr::null();
        self.first = ptr::null();
        self.next = ptr::null();
        self.end = ptr::null();
        self.start = 0;
        self.scattered = false;
    }

    /// Adds the last stretch to its run.
    fn end_stretch(&mut self) {
        let index = self.index();
        if let Some(last) = self.parts.last() {
            // SAFETY: the hold owns the block, and has filled it up to `index`.
            unsafe { Block::add_stretch(last.block, self.run, self.start, index) };
        }
        self.start = index;
        self.scattered |= index > 0;
    }

    /// Finds a run for items from `home` in the last block, or in a new one.
    #[cold]
    fn make_room(&mut self, home: Home) {
        self.end_stretch();
        let last = self.parts.last().filter(|_| self.next != self.end);
        // SAFETY: the hold owns its blocks.
        let run =
            last.and_then(|last| unsafe { Block::run_for(last.block, home, self.start == 0) });
        self.run = run.unwrap_or_else(|| self.add_block(home));
        self.home = home;
    }

    /// Adds a block, and returns the run of `home` in it.
    fn add_block(&mut self, home: Home) -> u32 {
        let index = self.index();
        if let Some(last) = self.parts.last_mut() {
            last.filled = index as usize;
            self.scattered = true;
        }
        let spare = if self.parts.is_empty() {
            self.spare.take()
        } else {
            None
        };
        let part = spare.unwrap_or_else(|| self.allocate());
        let block = part.block;
        self.fill_next(part);
        // SAFETY: the hold owns the new block.
        unsafe { Block::run_for(block, home, true) }.unwrap_or(0)
    }

    fn allocate(&self) -> HoldBlock<T> {
        let (capacity, runs) = self.next_size();
        // SAFETY: allocated just now.
        unsafe { HoldBlock::new(Block::allocate(capacity, runs)) }
    }

    /// Adds a vacant block.
    #[inline]
    fn fill_next(&mut self, part: HoldBlock<T>) {
        // SAFETY: the hold owns the block, and `capacity` is the number of its slots.
        unsafe {
            self.first = Row::element(part.block, 0);
            self.end = self.first.add(part.capacity);
        }
        self.next = self.first;
        self.start = 0;
        self.parts.push(part);
    }

    /// The room of the spare block if no other one is in use, and 0 otherwise.
    #[inline]
    pub(in crate::raw) fn vacant_room(&self) -> usize {
        let spare = self.spare.as_ref().filter(|_| self.parts.is_empty());
        spare.map_or(0, |spare| spare.capacity)
    }

    /// Adds the first block, in which `count` items from `home` are, in its first run.
    #[inline]
    pub(in crate::raw) fn add_filled(&mut self, part: HoldBlock<T>, count: usize, home: Home) {
        debug_assert!(self.parts.is_empty() && count <= part.capacity);
        self.fill_next(part);
        // SAFETY: within the block.
        self.next = unsafe { self.first.add(count) };
        self.home = home;
        self.run = 0;
        self.len = count;
    }

    /// The capacity of the next block in items and runs: twice the items of the last block, and twice its runs
    /// if it had too few, within bounds.
    fn next_size(&self) -> (usize, usize) {
        let Some(last) = self.parts.last() else {
            return (fitting::<T>(FIRST_BYTES).min(FIRST_ITEMS), RUNS);
        };
        // SAFETY: the hold owns the block.
        let runs = unsafe { Block::run_count(last.block) };
        let index = self.index() as usize;
        let runs = if index < last.capacity {
            (2 * runs).min(MOST_RUNS)
        } else {
            runs
        };
        ((2 * index).min(fitting::<T>(MOST_BYTES)), runs)
    }
}

impl<T> Sink<T> for Hold<T> {
    #[inline]
    fn reserve(&mut self, wanted: usize, home: Home) -> usize {
        if !self.has_room(home) {
            self.make_room(home);
        }
        wanted.min((self.end as usize - self.next as usize) / size_of::<HeldSlot<T>>())
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        debug_assert!(self.next != self.end, "no room for the item");
        // SAFETY: room was granted, so the slot is vacant and in the block, which the hold owns.
        unsafe {
            (*self.next).fill(item, delivery);
            self.next = self.next.add(1);
        }
        self.len += 1;
    }

    unsafe fn recycle(&mut self, block: Filled<T>) {
        // SAFETY: the hold owns the block now, and it is vacant.
        let part = unsafe {
            Block::clear_stretches(block);
            HoldBlock::new(block)
        };
        if self.spare.is_none() && part.is_kept() {
            self.spare = Some(part);
        } else {
            // SAFETY: as above.
            unsafe { Block::free(block) };
        }
    }
}

impl<T> Drop for Hold<T> {
    /// Frees the memory. The handle has already settled the items.
    fn drop(&mut self) {
        self.parts.extend(self.spare.take());
        self.free();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_large_transaction_is_not_kept() {
        let front = Front::<[u8; 1000]>::new();
        let mut hold = Hold::new();
        let blocks = |hold: &mut Hold<_>| {
            while hold.parts.len() <= KEPT_PARTS {
                hold.reserve(1, front.home());
                // SAFETY: there is room.
                unsafe { hold.accept([0; 1000], DeliveryMeta::first(0)) };
            }
        };
        blocks(&mut hold);
        hold.commit();
        hold.clear();
        assert!(hold.parts.capacity() <= KEPT_PARTS);
        blocks(&mut hold);
        hold.give_back();
        assert!(hold.parts.capacity() <= KEPT_PARTS);
        while front.take(&mut None::<[u8; 1000]>, 1) > 0 {}
    }
}
