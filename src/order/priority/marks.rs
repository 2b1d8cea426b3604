//! Marks, which stand for items in a heap, stale ones among them.
//!
//! A heap has no cheap way to take out from its middle. An item that is cancelled leaves its mark there,
//! one with a new priority gets another one. Stale marks are dropped when they come first, and all of them
//! together when they are too many.

use super::slab::{Slab, Turn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Marks by their order.
pub(super) struct Marks {
    heap: BinaryHeap<Reverse<Mark>>,
    /// Those that are not stale.
    current: usize,
}

/// By its order, the mark of the item that is next is the least.
///
/// It is *stale* if its item is gone, has another priority by now, or another [`Turn`]. Arrivals are never
/// used twice, so whatever else is in the place is another's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Mark {
    /// Of those that wait, when they are due.
    pub(super) rank: u64,
    pub(super) arrival: i64,
    pub(super) place: u32,
    /// `None`, of any priority: those that wait keep their marks when it changes.
    pub(super) priority: Option<u16>,
}

impl Mark {
    fn is_current<T>(&self, slab: &Slab<T>) -> bool {
        let seated = slab.get(self.place);
        seated.is_some_and(|at| {
            let priority = match at.turn {
                Turn::Marked => Some(at.link.word.priority()),
                Turn::Waits => None,
                Turn::Listed => return false,
            };
            (at.link.arrival, priority) == (self.arrival, self.priority)
        })
    }
}

impl Marks {
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
    pub(super) fn first(&self) -> Option<&Mark> {
        self.heap.peek().map(|Reverse(mark)| mark)
    }

    /// Adds the mark of an item that has no current one.
    pub(super) fn add(&mut self, mark: Mark) {
        self.heap.push(Reverse(mark));
        self.current += 1;
    }

    /// Takes out the first mark.
    pub(super) fn pop(&mut self) -> Option<Mark> {
        let Reverse(mark) = self.heap.pop()?;
        self.current -= 1;
        Some(mark)
    }

    /// Takes note that a current mark becomes stale.
    pub(super) fn give_up_one(&mut self) {
        self.current -= 1;
    }

    /// Drops stale marks until the first is current.
    pub(super) fn drop_stale<T>(&mut self, slab: &Slab<T>) {
        while self.stale() > 0 && self.first().is_some_and(|first| !first.is_current(slab)) {
            self.heap.pop();
        }
    }

    /// Moves the items of all current marks over to another slab.
    pub(super) fn move_items<T>(&mut self, from: &mut Slab<T>, to: &mut Slab<T>) {
        let mut moved = Vec::with_capacity(self.current);
        for Reverse(mark) in self.heap.drain() {
            if mark.is_current(from) {
                let place = from.take(mark.place).map(|seated| to.put(seated));
                moved.extend(place.map(|place| Reverse(Mark { place, ..mark })));
            }
        }
        self.heap = BinaryHeap::from(moved);
    }
}
