//! Last in, first out.
//!
//! A pop takes the only item that is left of its handle's pushes out of the shard, if nobody has taken it in and none was
//! returned: it is the newest one for that handle. Any other item is put on a stack. Returned items have a stack of their own,
//! which is emptied first, and those that went to the tail have one that is emptied last. An item that is being
//! shown leaves a gap in its stack, which pops remove; if the gap is gone, the item is put on top. The gap of one that is removed
//! then stays until it is on top, or gaps are many.

use super::{Dequeued, Engine, Sequence, ShardsOf, Shown, Sorted, Unleased, Unsorted, PART};
use crate::raw::{Entry, Stored};
use std::mem;
use std::sync::Arc;

/// The capacity that a stack always keeps.
const KEPT_CAPACITY: usize = 256;

/// The order of a queue that delivers the newest item first, made by [`Builder::lifo`](crate::Builder::lifo).
///
/// ```
/// use requeue::{Lifo, Queue};
///
/// fn newest_first(queue: &Queue<u32, Lifo>) -> Vec<u32> {
///     queue.drain().collect()
/// }
///
/// let queue = Queue::builder().lifo().build();
/// queue.push(1)?;
/// queue.push(2)?;
/// assert_eq!(newest_first(&queue), [2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lifo;

impl Unleased for Lifo {}

impl<T> Engine<T> for Lifo {
    type Settings = ();
    type Meta = ();
    type Source = Sorted<T, (), Stacks<T>, Unsorted>;

    fn source((): (), shards: &Arc<ShardsOf<T, Self>>) -> Self::Source {
        Sorted::new(Stacks::new(), Unsorted, shards)
    }
}

type StackEntry<T> = Entry<Stored<T, ()>>;

/// Returned items, and pushed ones; those that come next are last.
pub(crate) struct Stacks<T> {
    slots: [Vec<Slot<T>>; STACKS],
    /// How many gaps were removed at the bottom of each: indices count from the first one that there ever was.
    removed: [usize; STACKS],
    /// The number of items that are not being shown.
    ready: usize,
    /// The name of the item that was shown last.
    names: u64,
    /// The number of visits in progress. Meanwhile slots stay where they are.
    visits: usize,
}

const RETURNED: usize = 0;
const PUSHED: usize = 1;
const AT_TAIL: usize = 2;
const STACKS: usize = 3;

/// The name of no item: that of the gaps at the bottom of a stack, whose items were taken out for good.
const REMOVED: u64 = 0;

enum Slot<T> {
    Item(StackEntry<T>),
    /// The gap of the item with this name, which is being shown; or [`REMOVED`].
    Gap(u64),
}

/// The gap of an item that is being shown.
#[derive(Debug)]
pub(crate) struct Position {
    stack: usize,
    index: usize,
    name: u64,
}

impl<T> Stacks<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: [(); STACKS].map(|()| Vec::new()),
            removed: [0; STACKS],
            ready: 0,
            names: 0,
            visits: 0,
        }
    }

    /// The index after the last slot of a stack.
    fn end(&self, stack: usize) -> usize {
        self.removed[stack] + self.slots[stack].len()
    }

    fn push(&mut self, stack: usize, entry: StackEntry<T>) {
        self.slots[stack].push(Slot::Item(entry));
        self.ready += 1;
    }
}

/// Releases the memory of a stack that needs less than a quarter of it.
#[inline]
fn tidy<T>(stack: &mut Vec<Slot<T>>) {
    if stack.len() < stack.capacity() / 4 && stack.capacity() > KEPT_CAPACITY {
        stack.shrink_to((2 * stack.len()).max(KEPT_CAPACITY));
    }
}

impl<T> Sequence<T, ()> for Stacks<T> {
    /// Up to which index slots of each stack are still to be visited, from the last one on.
    type Visit = [usize; STACKS];
    type Position = Position;

    const ANOTHER: Option<fn() -> Self> = Some(Self::new);

    #[inline]
    fn has_returned(&self) -> bool {
        !self.slots[RETURNED].is_empty()
    }

    #[inline]
    fn arrive(&mut self, entry: StackEntry<T>) {
        // It was delivered before only if it went to the tail.
        let stack = if entry.delivery.attempts > 1 {
            AT_TAIL
        } else {
            PUSHED
        };
        self.push(stack, entry);
    }

    fn come_back(&mut self, entry: StackEntry<T>) {
        self.push(RETURNED, entry);
    }

    #[inline(always)] // the pop
    fn next(&mut self, _for_good: bool) -> Option<Dequeued<T, ()>> {
        for stack in &mut self.slots {
            while let Some(slot) = stack.pop() {
                tidy(stack);
                if let Slot::Item(entry) = slot {
                    self.ready -= 1;
                    return Some(Dequeued { entry, gone: 0 });
                }
            }
        }
        None
    }

    /// The first ones of each stack are those at its bottom.
    fn take_old(
        &mut self,
        until: u64,
        most: usize,
        into: &mut Vec<Dequeued<T, ()>>,
    ) -> Option<u64> {
        let (mut least, shows) = (None, self.visits > 0);
        for (stack, removed) in self.slots.iter_mut().zip(&mut self.removed) {
            let is_removed = |slot: &Slot<T>| matches!(slot, Slot::Gap(REMOVED));
            let mut first = stack.partition_point(is_removed);
            let next = loop {
                match stack.get_mut(first) {
                    Some(Slot::Item(entry))
                        if entry.delivery.since > until || into.len() >= most =>
                    {
                        break Some(entry.delivery.since);
                    }
                    Some(slot @ Slot::Item(_)) => {
                        if let Slot::Item(entry) = mem::replace(slot, Slot::Gap(REMOVED)) {
                            into.push(Dequeued { entry, gone: 0 });
                        }
                        self.ready -= 1;
                        first += 1;
                    }
                    // It is looked at again and again, as long as it is shown.
                    Some(Slot::Gap(_)) if shows => break Some(until.saturating_add(1)),
                    Some(gap) => {
                        *gap = Slot::Gap(REMOVED); // by a visit
                        first += 1;
                    }
                    None => break None,
                }
            };
            if first > stack.len() / 2 {
                stack.drain(..first);
                *removed += first;
                tidy(stack);
            }
            least = least.into_iter().chain(next).min();
        }
        least
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn begin_visit(&mut self, _all: bool) -> [usize; STACKS] {
        self.visits += 1;
        [RETURNED, PUSHED, AT_TAIL].map(|stack| self.end(stack))
    }

    /// Shows the items in the order in which they would be dequeued.
    fn show(
        &mut self,
        visit: &mut [usize; STACKS],
        into: &mut Vec<Shown<T, (), Position>>,
    ) -> bool {
        let mut more = false;
        for (stack, left) in visit.iter_mut().enumerate() {
            let removed = self.removed[stack];
            *left = self.end(stack).min(*left);
            let slots = &mut self.slots[stack];
            while *left > removed && into.len() < PART {
                *left -= 1;
                let (index, name) = (*left, self.names + 1);
                let slot = &mut slots[index - removed];
                match mem::replace(slot, Slot::Gap(name)) {
                    Slot::Item(entry) => {
                        self.names = name;
                        self.ready -= 1;
                        let position = Position { stack, index, name };
                        into.push(Shown { entry, position });
                    }
                    gap @ Slot::Gap(_) => *slot = gap,
                }
            }
            more |= *left > removed;
        }
        more
    }

    fn put_back(&mut self, visit: &mut [usize; STACKS], shown: Shown<T, (), Position>) {
        let Position { stack, index, name } = shown.position;
        let end = self.end(stack);
        let slots = &mut self.slots[stack];
        self.ready += 1;
        // What is removed at the bottom is below it.
        match slots.get_mut(index.wrapping_sub(self.removed[stack])) {
            Some(Slot::Gap(its)) if *its == name => {
                slots[index - self.removed[stack]] = Slot::Item(shown.entry);
            }
            _ => {
                // It was seen, but pops may have removed slots that this visit has yet to see.
                visit[stack] = visit[stack].min(end);
                slots.push(Slot::Item(shown.entry));
            }
        }
    }

    /// Removes the gaps of removed items, if they are many.
    fn end_visit(&mut self) {
        self.visits -= 1;
        let slots: usize = self.slots.iter().map(Vec::len).sum();
        if self.visits == 0 && slots > 2 * self.ready + KEPT_CAPACITY {
            for stack in &mut self.slots {
                stack.retain(|slot| matches!(slot, Slot::Item(_)));
                tidy(stack);
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::order::tests::remove_some;
    use crate::raw::DeliveryMeta;

    fn entry(item: usize) -> StackEntry<usize> {
        let delivery = DeliveryMeta {
            attempts: 1,
            since: 0,
        };
        let item = Stored { item, meta: () };
        Entry { item, delivery }
    }

    #[test]
    fn stacks_release_their_memory() {
        const ITEMS: usize = 100_000;
        let mut stacks = Stacks::new();
        (0..ITEMS).for_each(|item| stacks.arrive(entry(item)));
        (0..ITEMS).for_each(|item| stacks.come_back(entry(item)));
        for left in (0..2 * ITEMS).rev() {
            let next = stacks.next(true).unwrap().entry.item.item;
            assert_eq!((next, stacks.ready()), (left % ITEMS, left));
            for slots in &stacks.slots {
                assert!(slots.capacity() <= KEPT_CAPACITY.max(4 * slots.len() + 4));
            }
        }
    }

    #[test]
    fn removals_release_their_memory() {
        const ITEMS: usize = 1000;
        let mut stacks = Stacks::new();
        stacks.arrive(entry(0));
        for _ in 0..10 {
            (1..=ITEMS).for_each(|item| stacks.arrive(entry(item)));
            let visit = stacks.begin_visit(true);
            // Not the last one, so that no gap is on top.
            let keep = |item: &usize| *item == 0 || *item == ITEMS;
            let removed = remove_some(&mut stacks, visit, keep);
            assert_eq!(removed.len(), ITEMS - 1);
            let slots: usize = stacks.slots.iter().map(Vec::len).sum();
            assert!(slots <= 2 * stacks.ready() + KEPT_CAPACITY);
        }
        assert_eq!(stacks.ready(), 11);
    }

    #[test]
    fn an_item_whose_gap_is_gone_is_put_on_top() {
        let mut stacks = Stacks::new();
        (0..4).for_each(|item| stacks.arrive(entry(item)));
        let (mut visit, mut shown) = (stacks.begin_visit(false), Vec::new());
        assert!(!stacks.show(&mut visit, &mut shown));
        assert!(stacks.next(false).is_none());
        stacks.arrive(entry(4));
        while let Some(item) = shown.pop() {
            stacks.put_back(&mut visit, item);
        }
        let next = || Some(stacks.next(true)?.entry.item.item);
        assert!(std::iter::from_fn(next).eq([3, 2, 1, 0, 4]));
    }
}
