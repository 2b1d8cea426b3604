//! RankHeap, which stand for items in a heap, stale ones among them.
//!
//! A heap has no cheap way to take out from its middle. An item that is cancelled leaves its mark there,
//! one with a new priority gets another one. Stale rank entries are dropped when they come first, and all of them
//! together when they are too many.

use super::slab::{ItemSlab, ItemState};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// RankHeap by their order.
pub(super) struct RankHeap {
    heap: BinaryHeap<Reverse<RankEntry>>,
    /// Those that are not stale.
    current: usize,
}

/// By its order, the mark of the item that is next is the least.
///
/// It is *stale* if its item is gone, has another priority by now, or another [`ItemState`]. Arrivals are never
/// used twice, so whatever else is in the place is another's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RankEntry {
    /// Of those that wait, when they are due.
    pub(super) rank: u64,
    pub(super) arrival: i64,
    pub(super) place: u32,
    /// `None`, of any priority: those that wait keep their rank entries when it changes.
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

    /// How many items have a current mark here.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.current
    }

    #[inline]
    pub(super) fn stale(&self) -> usize {
        self.heap.len() - self.current
    }

    /// The first mark, current between two uses of the heap.
    #[inline]
    pub(super) fn first(&self) -> Option<&RankEntry> {
        self.heap.peek().map(|Reverse(entry)| entry)
    }

    /// Adds the mark of an item that has no current one.
    pub(super) fn add(&mut self, entry: RankEntry) {
        self.heap.push(Reverse(entry));
        self.current += 1;
    }

    /// Takes out the first mark.
    pub(super) fn pop(&mut self) -> Option<RankEntry> {
        let Reverse(entry) = self.heap.pop()?;
        self.current -= 1;
        Some(entry)
    }

    /// Takes note that a current mark becomes stale.
    pub(super) fn give_up_one(&mut self) {
        self.current -= 1;
    }

    /// Drops stale rank entries until the first is current.
    pub(super) fn drop_stale<T>(&mut self, slab: &ItemSlab<T>) {
        while self.stale() > 0 && self.first().is_some_and(|first| !first.is_current(slab)) {
            self.heap.pop();
        }
    }

    /// Moves the items of all current rank entries over to another slab.
    pub(super) fn move_items<T>(&mut self, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        let mut moved = Vec::with_capacity(self.current);
        for Reverse(entry) in self.heap.drain() {
            if entry.is_current(from) {
                let place = from.take(entry.place).map(|item| to.put(item));
                moved.extend(place.map(|place| Reverse(RankEntry { place, ..entry })));
            }
        }
        self.heap = BinaryHeap::from(moved);
    }
}
