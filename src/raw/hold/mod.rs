//! The hold: the items that a transaction has taken, at addresses that do not move.

pub(in crate::raw) mod adopt;
pub(in crate::raw) mod item_ref;
mod metadata;
pub(in crate::raw) mod position;
pub(in crate::raw) mod removal;

pub(in crate::raw) use item_ref::ItemRef;
pub(in crate::raw) use position::HeldPosition;

use crate::raw::memory::{DeliveryMeta, Row};
use crate::raw::shard::{Block, Front, HeldSlot, Home, Run, Sink};
use crate::sync::SMALL;
use std::mem::{self, size_of};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Bytes of items in the first block.
const FIRST_BYTES: usize = 2048;
/// Bytes of items in the largest block that is kept for the next transaction, and in all spare ones.
const KEPT_BYTES: usize = 8 * 1024;
/// Bytes of items in the largest block.
pub(in crate::raw) const MOST_BYTES: usize = 64 * 1024;
/// The most spare blocks, and blocks for which a hold keeps room in its list.
const KEPT_PARTS: usize = 16;
/// Items in the first block, if they are small.
const FIRST_ITEMS: usize = if SMALL { 2 } else { 32 };

/// The held items of one handle, in the order in which they were taken.
///
/// Each stretch of items from the same shard has a block of its own, or several if it is long.
pub(in crate::raw) struct Hold<T> {
    /// The blocks in use. The run of each is filled, but that of the last one. One is vacant if room was made for items that
    /// another consumer then took, the last one also if nothing is held.
    parts: Vec<Block<T>>,
    /// Vacant blocks, the largest one on top: there is room when another block is [adopted](Front::take_whole).
    spares: Vec<Block<T>>,
    /// The first slot of the last block, the first vacant one, and the end of the block.
    first: *const HeldSlot<T>,
    next: *const HeldSlot<T>,
    end: *const HeldSlot<T>,
    /// Where the items of the last block came from.
    home: Home,
    /// Held items that were not taken out.
    len: usize,
    metadata: Metadata,
    /// The block in which an item was found by its address last.
    found: usize,
    /// After the commit, the slots of the block from which items are taken out, from the oldest one on.
    oldest: Range<*const HeldSlot<T>>,
    /// 0 in an open transaction; after the commit one more than the number of blocks whose items are, or were, taken out.
    phase: usize,
}

/// What the slots of a hold say about the deliveries of their items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Metadata {
    /// All that is known.
    Written,
    /// Perhaps nothing, but that of the last item: all are delivered for the first time, and their times are not known.
    Unwritten,
    /// All that is known, and which items were removed: see `removal.rs`.
    WithGaps,
}

/// The number of items that fit into `bytes`, at least one.
pub(in crate::raw) fn fitting<T>(bytes: usize) -> usize {
    (bytes / size_of::<HeldSlot<T>>()).max(1)
}

/// Whether a hold keeps a vacant block of this number of slots for the next transaction.
#[inline]
pub(in crate::raw) fn is_kept<T>(len: usize) -> bool {
    len <= fitting::<T>(KEPT_BYTES)
}

impl<T> Hold<T> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            parts: Vec::new(),
            spares: Vec::new(),
            first: ptr::null(),
            next: ptr::null(),
            end: ptr::null(),
            home: ptr::null(),
            len: 0,
            metadata: Metadata::Written,
            found: 0,
            oldest: ptr::null()..ptr::null(),
            phase: 0,
        }
    }

    /// A hold for `len` items of one shard, which it gives back at once: it has no more room than these need, if they fit
    /// into a block.
    pub(in crate::raw) fn for_one_run(len: usize) -> Self {
        let mut hold = Self::new();
        hold.fill_next(Run::allocate(len.min(fitting::<T>(MOST_BYTES))));
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

    /// The slot of the last accepted item, whose delivery metadata is written.
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
    }

    /// The number of items put into a block.
    fn filled(&self, part: usize) -> usize {
        match self.parts.get(part) {
            Some(_) if part + 1 == self.parts.len() => self.index(),
            // SAFETY: the hold owns its blocks.
            Some(block) => unsafe { Run::of(*block) }.cursor().left(),
            None => 0,
        }
    }

    /// The index of the first vacant slot of the last block.
    fn index(&self) -> usize {
        (self.next as usize - self.first as usize) / size_of::<HeldSlot<T>>()
    }

    /// Moves the oldest item out, after the commit.
    #[inline]
    pub(in crate::raw) fn take_out(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let item = loop {
            while self.oldest.is_empty() {
                self.begin_block();
            }
            let slot = self.oldest.start;
            // SAFETY: the slot was filled, and is within its block. Its item is taken once: the range advances.
            unsafe {
                self.oldest.start = slot.add(1);
                if !self.delivery(&*slot).is_gone() {
                    break (*slot).take();
                }
            }
        };
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(item)
    }

    /// Continues with the items of the next block.
    fn begin_block(&mut self) {
        let part = self.phase - 1;
        // SAFETY: the hold owns the block, and has filled so many of its slots.
        unsafe {
            let first = Row::element(self.parts[part], 0).cast_const();
            self.oldest = first..first.add(self.filled(part));
        }
        self.phase += 1;
    }

    /// Makes the hold ready for the next transaction. Remaining items are not dropped.
    #[inline]
    pub(in crate::raw) fn clear(&mut self) {
        if self.parts.len() > 1 {
            self.give_up_parts();
        }
        self.len = 0;
        self.next = self.first;
        self.metadata = Metadata::Written;
        self.oldest = ptr::null()..ptr::null();
        self.phase = 0;
    }

    /// Keeps the blocks as spare ones. The last ones are the largest.
    #[cold]
    fn give_up_parts(&mut self) {
        let mut parts = mem::take(&mut self.parts);
        parts.drain(..).rev().for_each(|block| self.keep(block));
        self.forget_parts(parts);
    }

    /// Keeps a vacant block, or frees it. An abort may do it: nothing is allocated.
    fn keep(&mut self, block: Block<T>) {
        // SAFETY: the hold owns its blocks.
        let len = |block: &Block<T>| unsafe { Row::len(*block) };
        let kept: usize = self.spares.iter().map(len).sum();
        let has_room = self.spares.len() < self.spares.capacity().min(KEPT_PARTS);
        if has_room && is_kept::<T>(kept + len(&block)) {
            let larger = |spare: &Block<T>| len(spare) <= len(&block);
            let at = self.spares.partition_point(larger);
            self.spares.insert(at, block);
        } else {
            // SAFETY: as above; no item is left in it.
            unsafe { Row::free(block) };
        }
    }

    /// Forgets the blocks. Their list is kept, unless it was long.
    fn forget_parts(&mut self, mut list: Vec<Block<T>>) {
        list.clear();
        if list.capacity() <= KEPT_PARTS {
            self.parts = list;
        }
        self.forget_block();
    }

    /// Makes the next item search for room.
    fn forget_block(&mut self) {
        self.home = ptr::null();
        self.first = ptr::null();
        self.next = ptr::null();
        self.end = ptr::null();
    }

    /// Returns all items to the shards they came from, in order.
    #[inline(always)] // the abort
    pub(in crate::raw) fn give_back(&mut self) {
        match self.parts[..] {
            [block] if self.metadata == Metadata::Written && self.len > 0 => {
                // SAFETY: the hold owns the block.
                let run = unsafe { Run::of(block) };
                let home = self.home;
                run.fill(home, self.len);
                self.parts.clear();
                self.forget_block();
                self.len = 0;
                let run = NonNull::from(run);
                // SAFETY: the run is complete, and the hold no longer uses its block. A home is part of a shard, which the
                // handle keeps alive.
                unsafe { Front::at(home).link(run, run) };
            }
            _ => self.give_back_parts(),
        }
    }

    /// As [`Hold::give_back`], for items in more than one block, or with gaps or unwritten metadata, or none at all.
    #[cold]
    fn give_back_parts(&mut self) {
        self.end_stretch();
        self.write_deliveries();
        // SAFETY: the hold owns its blocks, until they are linked.
        let run = |block: &Block<T>| unsafe { Run::of(*block) };
        let mut parts = mem::take(&mut self.parts);
        parts.retain(|block| {
            if self.has_gaps() {
                let run = run(block);
                // SAFETY: its items, in a block of the hold.
                let left = unsafe { run.close_gaps(run.cursor().left()) };
                run.fill(run.home(), left);
            }
            let is_filled = run(block).cursor().left() > 0;
            if !is_filled {
                self.keep(*block);
            }
            is_filled
        });
        while let Some(first) = parts.first().map(run) {
            // One chain for each home, so that nobody takes items from the middle.
            let (home, mut last) = (first.home(), first);
            parts.retain(|block| {
                let is_here = run(block).home() == home;
                if is_here {
                    last.set_next(NonNull::from(run(block)).as_ptr());
                    last = run(block);
                }
                !is_here
            });
            // SAFETY: as in `give_back`; the last run's successor is replaced.
            unsafe { Front::at(home).link(NonNull::from(first), NonNull::from(last)) };
        }
        self.forget_parts(parts);
        self.len = 0;
        self.metadata = Metadata::Written;
    }

    /// Fills the run of the last block.
    fn end_stretch(&mut self) {
        if let Some(last) = self.parts.last() {
            // SAFETY: the hold owns the block.
            unsafe { Run::of(*last) }.fill(self.home, self.index());
        }
    }

    /// Makes room for items from `home`, in the last block if it is vacant.
    #[cold]
    fn make_room(&mut self, wanted: usize, home: Home) {
        if self.parts.is_empty() || self.next != self.first {
            self.add_block(wanted);
        }
        self.home = home;
    }

    /// Adds a block: a spare one, or a larger one if the last stretch goes on. A new one has room for the `wanted` items.
    fn add_block(&mut self, wanted: usize) {
        self.end_stretch();
        let goes_on = self.next == self.end && !self.parts.is_empty();
        let spare = if goes_on { None } else { self.spares.pop() };
        let block = spare.unwrap_or_else(|| {
            let least = match self.index() {
                0 => fitting::<T>(FIRST_BYTES).min(FIRST_ITEMS),
                index => 2 * index,
            };
            // Rounded: the parts of a batch, which the end of a segment divides, fit together into a block that was made for one.
            let len = least.max(wanted.next_power_of_two());
            Run::allocate(len.min(fitting::<T>(MOST_BYTES)))
        });
        self.fill_next(block);
        if self.parts.len() > 1 {
            self.make_room_for_spares();
        }
    }

    /// Makes room in the list of spare blocks.
    fn make_room_for_spares(&mut self) {
        if self.spares.capacity() == 0 {
            self.spares.reserve_exact(KEPT_PARTS);
        }
    }

    /// Adds a vacant block.
    #[inline]
    fn fill_next(&mut self, block: Block<T>) {
        // SAFETY: the hold owns the block.
        unsafe {
            self.first = Row::element(block, 0);
            self.end = self.first.add(Row::len(block));
        }
        self.next = self.first;
        self.parts.push(block);
    }

    /// The room of the largest spare block if no other one is in use, and 0 otherwise.
    #[inline]
    pub(in crate::raw) fn vacant_room(&self) -> usize {
        let spare = self.spares.last().filter(|_| self.parts.is_empty());
        // SAFETY: the hold owns its blocks.
        spare.map_or(0, |spare| unsafe { Row::len(*spare) })
    }

    /// Adds the first block, in which `count` items from `home` are.
    #[inline]
    pub(in crate::raw) fn add_filled(&mut self, block: Block<T>, count: usize, home: Home) {
        debug_assert!(self.parts.is_empty());
        self.fill_next(block);
        // SAFETY: within the block.
        self.next = unsafe { self.first.add(count) };
        self.home = home;
        self.len = count;
    }
}

impl<T> Sink<T> for Hold<T> {
    #[inline]
    fn reserve(&mut self, wanted: usize, home: Home) -> usize {
        if !self.has_room(home) {
            self.make_room(wanted, home);
        }
        wanted.min((self.end as usize - self.next as usize) / size_of::<HeldSlot<T>>())
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        debug_assert!(self.next != self.end, "no room for the item");
        if delivery != DeliveryMeta::first(0) {
            self.write_deliveries();
        }
        // SAFETY: room was granted, so the slot is vacant and in the block, which the hold owns.
        unsafe {
            (*self.next).fill(item, delivery);
            self.next = self.next.add(1);
        }
        self.len += 1;
    }

    #[inline]
    unsafe fn accept_all(&mut self, items: impl Iterator<Item = T>) {
        if !self.leaves_unwritten() {
            for item in items {
                // SAFETY: by contract.
                unsafe { self.accept(item, DeliveryMeta::first(0)) };
            }
            return;
        }
        let (first, mut count) = (self.next, 0);
        for item in items {
            // SAFETY: as in `accept`.
            unsafe { (*first.add(count)).put(item) };
            count += 1;
        }
        self.len += count;
        // SAFETY: within the block, or its end.
        self.next = unsafe { first.add(count) };
        debug_assert!(self.next <= self.end, "no room for the items");
        if count > 0 {
            // SAFETY: filled just now.
            unsafe { self.newest().set_delivery(DeliveryMeta::first(0)) };
        }
    }

    unsafe fn recycle(&mut self, block: Block<T>) {
        self.make_room_for_spares();
        self.keep(block);
    }
}

impl<T> Drop for Hold<T> {
    /// Frees the memory. The handle has already settled the items.
    fn drop(&mut self) {
        for block in self.parts.drain(..).chain(self.spares.drain(..)) {
            // SAFETY: the hold owns its blocks, and no item is left in them.
            unsafe { Row::free(block) };
        }
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
