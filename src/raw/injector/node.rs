//! Nodes: the cells of the injector.
//!
//! States of a cell: `VACANT` → `FULL` (its producer) or `VACANT` → `VOID` (a consumer,
//! or the producer itself when the queue is closed).

use crate::raw::memory::reclaim::Pin;
use crate::raw::memory::row::Row;
use crate::raw::memory::slot::Slot;
use crate::raw::memory::times::Times;
use crate::sync::{
    planted, spin_hint, step, weak, AtomicPtr, AtomicU64, AtomicU8, Ordering, SMALL,
};
use crossbeam_utils::CachePadded;
use std::iter;
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Not filled; reserved or not.
const VACANT: u8 = 0;
/// Filled: the item is in the queue.
const FULL: u8 = 1;
/// Given up: its producer uses another cell.
const VOID: u8 = 2;

/// How often a consumer checks a reserved cell before it voids it.
const PATIENCE: usize = if SMALL { 1 } else { 64 };

/// The allocation: a header and the cells.
pub(in crate::raw) type NodeSlots<T> = Row<Node<T>, NodeSlot<T>>;

/// The header of a node.
pub(in crate::raw) struct Node<T> {
    /// The position of its first cell.
    pub(in crate::raw) base: u64,
    /// The logical time when it was opened.
    pub(in crate::raw) stamp: u64,
    pub(in crate::raw) next: AtomicPtr<NodeSlots<T>>,
    times: Times,
    reserved: CachePadded<AtomicU64>,
}

/// A cell: the slot of one item, and its state.
pub(in crate::raw) struct NodeSlot<T> {
    state: AtomicU8,
    slot: Slot<T>,
}

/// A reference to a node that is pinned, or not shared.
pub(in crate::raw) struct At<'p, T> {
    pub(in crate::raw) row: NonNull<NodeSlots<T>>,
    pub(in crate::raw) node: &'p Node<T>,
}

impl<T> Node<T> {
    /// Cells in a node: about 2 KiB of them, at most 256.
    pub(in crate::raw) const LEN: u64 = if SMALL { 2 } else { Self::fitting(2048, 256) };

    const fn fitting(bytes: u64, most: u64) -> u64 {
        let fitting = bytes / size_of::<NodeSlot<T>>() as u64;
        if fitting == 0 {
            1
        } else if fitting > most {
            most
        } else {
            fitting
        }
    }

    #[allow(clippy::cast_possible_truncation)] // at most 256
    const fn len() -> usize {
        Self::LEN as usize
    }

    pub(in crate::raw) fn allocate(base: u64, stamp: u64, timed: bool) -> NonNull<NodeSlots<T>> {
        let header = Self {
            base,
            stamp,
            next: AtomicPtr::new(ptr::null_mut()),
            times: Times::new(timed, Self::len()),
            reserved: CachePadded::new(AtomicU64::new(0)),
        };
        Row::new(header, Self::len(), NodeSlot::vacant)
    }

    /// Whether its items have times.
    pub(in crate::raw) fn timed(&self) -> bool {
        self.times.are_kept()
    }
}

impl<T> Drop for Node<T> {
    fn drop(&mut self) {
        // SAFETY: its times are reached only by way of the node.
        unsafe { self.times.free() };
    }
}

impl<'p, T> At<'p, T> {
    pub(in crate::raw) fn pinned(node: *mut NodeSlots<T>, _pin: &'p Pin) -> Self {
        let row = NonNull::new(node).expect("the injector has a node");
        // SAFETY: loaded from the shard under the pin; nodes are retired, not freed at once.
        unsafe { Self::alive(row) }
    }

    /// A reference to a node that is not freed meanwhile.
    ///
    /// # Safety
    ///
    /// The node is not freed while `'p` lasts.
    pub(in crate::raw) unsafe fn alive(row: NonNull<NodeSlots<T>>) -> Self {
        // SAFETY: by contract.
        let node = unsafe { Row::header(row) };
        Self { row, node }
    }

    /// The size of the node in bytes.
    pub(in crate::raw) fn bytes(&self) -> usize {
        // SAFETY: the node is alive, and the times as long as it.
        unsafe { Row::bytes(self.row) + self.node.times.bytes() }
    }

    fn cell(&self, index: u64) -> &'p NodeSlot<T> {
        // SAFETY: alive as the header is; callers pass an index below LEN.
        unsafe { Row::get(self.row, row_index(index)) }
    }

    /// Reserves a cell; `None` if all are reserved.
    pub(in crate::raw) fn reserve(&self) -> Option<u64> {
        // ORDERING: Relaxed; the cell's state publishes the item. When the queue is closed, barriers
        // order it.
        let index = self.node.reserved.fetch_add(1, Ordering::Relaxed);
        (index < Node::<T>::LEN).then_some(index)
    }

    /// Fills the cell, which the caller reserved; returns the item if the cell was voided.
    pub(in crate::raw) fn offer(&self, index: u64, item: T, since: u64) -> Result<(), T> {
        // SAFETY: the times are alive as long as the node, and the index is that of a cell.
        step!("node.notes-no-time", unsafe {
            self.node.times.set(row_index(index), since);
        });
        self.cell(index).offer(item)
    }

    /// The time of the item at `index`, which is or was there.
    pub(in crate::raw) fn since(&self, index: u64) -> u64 {
        // SAFETY: as in `offer`.
        unsafe { self.node.times.get(row_index(index)) }
    }

    /// The number of reserved cells of this node.
    pub(in crate::raw) fn reserved(&self) -> u64 {
        // ORDERING: Relaxed; only a bound for the cells to check, whose states decide.
        self.node
            .reserved
            .load(Ordering::Relaxed)
            .min(Node::<T>::LEN)
    }

    pub(in crate::raw) fn next(&self) -> *mut NodeSlots<T> {
        // ORDERING: Acquire; pairs with `injector.grow`.
        self.node.next.load(weak!("node.next", Acquire))
    }

    pub(in crate::raw) fn successor(&self) -> Option<Self> {
        let next = NonNull::new(self.next());
        // SAFETY: as this node; a successor is retired after it.
        next.map(|row| unsafe { Self::alive(row) })
    }

    /// How many cells from `index` on are filled, up to `most`.
    pub(in crate::raw) fn full_from(&self, index: u64, most: usize) -> usize {
        let end = index.saturating_add(most as u64).min(Node::<T>::LEN);
        (index..end)
            .take_while(|&at| self.cell(at).state() == FULL)
            .count()
    }

    /// Whether a cell behind `index` is filled, here or in a later node.
    pub(in crate::raw) fn has_more(&self, index: u64) -> bool {
        self.has_full_from(index + 1) || {
            let mut later = iter::successors(self.successor(), At::successor);
            later.any(|node| node.has_full_from(0))
        }
    }

    fn has_full_from(&self, index: u64) -> bool {
        self.first_full_from(index).is_some()
    }

    fn first_full_from(&self, index: u64) -> Option<u64> {
        (index..self.reserved()).find(|&later| self.cell(later).state() == FULL)
    }

    /// The time of the first item at or behind `index`, here or in a later node.
    pub(in crate::raw) fn first_time_from(&self, index: u64) -> Option<u64> {
        let here = self.first_full_from(index).map(|index| self.since(index));
        here.or_else(|| {
            let mut later = iter::successors(self.successor(), At::successor);
            later.find_map(|node| node.first_full_from(0).map(|index| node.since(index)))
        })
    }

    /// Whether the cell at `index` is void.
    pub(in crate::raw) fn is_void(&self, index: u64) -> bool {
        self.cell(index).state() == VOID
    }

    /// Waits a moment for the cell at `index` to be filled.
    pub(in crate::raw) fn wait_for(&self, index: u64) {
        for _ in 0..PATIENCE {
            if self.cell(index).state() != VACANT {
                return;
            }
            spin_hint();
        }
    }

    /// Voids the cell at `index`; false if it is filled.
    pub(in crate::raw) fn void(&self, index: u64) -> bool {
        // ORDERING: Relaxed; it publishes nothing: the state alone decides who owns the item.
        let state = &self.cell(index).state;
        planted!("node.voids-full", state.store(VOID, Ordering::Relaxed));
        state
            .compare_exchange(VACANT, VOID, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Moves an item out.
    ///
    /// # Safety
    ///
    /// The cell is full, and the caller has claimed it.
    pub(in crate::raw) unsafe fn take(&self, index: u64) -> T {
        // SAFETY: by contract.
        unsafe { self.cell(index).slot.take() }
    }
}

/// The index in the row of the cell at `index`.
#[allow(clippy::cast_possible_truncation)] // at most 256
fn row_index(index: u64) -> usize {
    index as usize
}

impl<T> NodeSlot<T> {
    fn vacant() -> Self {
        Self {
            state: AtomicU8::new(VACANT),
            slot: Slot::vacant(),
        }
    }

    fn state(&self) -> u8 {
        // ORDERING: Acquire; pairs with `node.offer`.
        self.state.load(weak!("node.state", Acquire))
    }

    /// Fills the cell, which the caller reserved; returns the item if the cell was voided.
    fn offer(&self, item: T) -> Result<(), T> {
        // SAFETY: the cell is reserved by the caller alone, and nobody reads it before its state is FULL.
        unsafe { self.slot.fill(item) };
        // ORDERING: Release; pairs with `node.state`. Relaxed on failure: the item never left this
        // thread.
        let release = weak!("node.offer", Release);
        let filled = self
            .state
            .compare_exchange(VACANT, FULL, release, Ordering::Relaxed);
        match filled {
            Ok(_) => Ok(()),
            // SAFETY: filled above, and a void cell is read by nobody else.
            Err(_) => Err(unsafe { self.slot.take() }),
        }
    }
}
