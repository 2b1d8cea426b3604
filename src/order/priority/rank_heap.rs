//! A heap of rank entries, which represent items, with lazy deletion.
//!
//! A binary heap cannot remove from its middle cheaply. A cancelled item leaves a stale entry there, and
//! an item with a new priority gets another entry. Stale entries are dropped when they reach the front, and all of
//! them at once when there are too many.

use super::slab::{ItemSlab, ItemState, NOWHERE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rank entries in their order.
pub(super) struct RankHeap {
    heap: BinaryHeap<Reverse<RankEntry>>,
    /// The number of entries that are not stale.
    current: usize,
}

/// The entry of an item; that of the next item is the least.
///
/// It is *stale* if its item was removed, or now has another priority or another [`ItemState`]. Arrival numbers are
/// never reused, so another item in the same place has another number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RankEntry {
    /// The due time, for items that wait.
    pub(super) rank: u64,
    pub(super) arrival: i64,
    pub(super) place: u32,
    /// `None` for items that wait: their entries stay current when the priority changes.
    pub(super) priority: Option<u16>,
}

impl RankEntry {
    fn is_current<T>(&self, slab: &ItemSlab<T>) -> bool {
        let item = slab.get(self.place);
        item.is_some_and(|at| {
            let priority = match at.state {
                ItemState::Ranked => Some(at.link.meta.priority()),
                ItemState::Waits => None,
                ItemState::Listed => return false,
            };
            (at.link.arrival, priority) == (self.arrival, self.priority)
        })
    }
}

impl RankHeap {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            current: 0,
        }
    }

    /// The number of current entries.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.current
    }

    #[inline]
    pub(super) fn stale(&self) -> usize {
        self.heap.len() - self.current
    }

    /// The first entry, which is current between two uses of the heap.
    #[inline]
    pub(super) fn first(&self) -> Option<&RankEntry> {
        self.heap.peek().map(|Reverse(entry)| entry)
    }

    /// Adds the entry of an item that has no current one.
    pub(super) fn add(&mut self, entry: RankEntry) {
        self.heap.push(Reverse(entry));
        self.current += 1;
    }

    /// Removes the first entry.
    pub(super) fn pop(&mut self) -> Option<RankEntry> {
        let Reverse(entry) = self.heap.pop()?;
        self.current -= 1;
        Some(entry)
    }

    /// Counts a current entry as stale.
    pub(super) fn mark_stale(&mut self) {
        self.current -= 1;
    }

    /// Drops stale entries until the first one is current.
    pub(super) fn drop_stale<T>(&mut self, slab: &ItemSlab<T>) {
        while self.stale() > 0 && self.first().is_some_and(|first| !first.is_current(slab)) {
            self.heap.pop();
        }
    }

    /// Moves the items of all current entries to another slab.
    pub(super) fn move_items<T>(&mut self, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        let mut moved = Vec::with_capacity(self.current);
        let mut near = NOWHERE;
        for Reverse(entry) in self.heap.drain() {
            if entry.is_current(from) {
                let item = from.take(entry.place);
                moved.extend(item.map(|item| {
                    near = to.put(item, near);
                    let place = near;
                    Reverse(RankEntry { place, ..entry })
                }));
            }
        }
        self.heap = BinaryHeap::from(moved);
    }
}
