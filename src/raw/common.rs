//! The common shard: where pushes without a handle go, a FIFO of many producers.
//!
//! A linked list of nodes of cells, after the fetch-and-add array queue of Correia and Ramalhete
//! ("FAAArrayQueue", 2016), with claims by CAS. A producer reserves a cell, fills it and then says
//! so; a cell whose producer stalls in between is voided by a consumer that finds filled cells
//! behind it, and the producer takes its item to another cell. So nobody waits for anybody.
//!
//! States of a cell: `VACANT` → `FULL` (its producer) or `VACANT` → `VOID` (a consumer).

use super::reclaim::{self, Pin};
use super::returned::Returned;
use super::row::Row;
use super::sink::Sink;
use super::slot::Slot;
use super::visit::Take;
use crate::sync::{spin_hint, AtomicPtr, AtomicU64, AtomicU8, Ordering};
use crossbeam_utils::CachePadded;
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Reserved, and not filled.
const VACANT: u8 = 0;
/// Filled: part of the queue.
const FULL: u8 = 1;
/// Given up: its producer goes elsewhere.
const VOID: u8 = 2;

/// How often a consumer looks at a reserved cell before it voids it.
const PATIENCE: usize = if cfg!(loom) { 1 } else { 64 };

/// The shard of pushes without a handle.
pub(super) struct Common<T> {
    head: CachePadded<Head<T>>,
    tail: CachePadded<AtomicPtr<Row<Node<T>, Cell<T>>>>,
    voided: AtomicU64,
}

struct Head<T> {
    node: AtomicPtr<Row<Node<T>, Cell<T>>>,
    returned: Returned<T>,
}

/// The header of a node.
struct Node<T> {
    /// Cells in the nodes before.
    base: u64,
    stamp: u64,
    next: AtomicPtr<Row<Node<T>, Cell<T>>>,
    claimed: CachePadded<AtomicU64>,
    reserved: CachePadded<AtomicU64>,
}

struct Cell<T> {
    state: AtomicU8,
    slot: Slot<T>,
}

/// A node under a pin.
struct At<'p, T> {
    row: NonNull<Row<Node<T>, Cell<T>>>,
    node: &'p Node<T>,
}

// SAFETY: items of type T move between threads; the raw pointers are the shard's own.
unsafe impl<T: Send> Send for Common<T> {}
// SAFETY: items leave by value to one claimant each.
unsafe impl<T: Send> Sync for Common<T> {}

impl<T> Common<T> {
    /// Cells in a node.
    const LEN: u64 = if cfg!(loom) {
        2
    } else {
        Self::fitting(2048, 256)
    };

    const fn fitting(bytes: u64, most: u64) -> u64 {
        let fitting = bytes / size_of::<Cell<T>>() as u64;
        if fitting == 0 {
            1
        } else if fitting > most {
            most
        } else {
            fitting
        }
    }

    pub(super) fn new() -> Self {
        let first = Node::allocate(0, 0).as_ptr();
        Self {
            head: CachePadded::new(Head {
                node: AtomicPtr::new(first),
                returned: Returned::new(),
            }),
            tail: CachePadded::new(AtomicPtr::new(first)),
            voided: AtomicU64::new(0),
        }
    }

    pub(super) fn returned(&self) -> &Returned<T> {
        &self.head.returned
    }

    /// Appends an item.
    pub(super) fn push(&self, mut item: T, stamps: &AtomicU64) {
        let pin = reclaim::pin();
        loop {
            let tail = self.tail_node(&pin);
            // ORDERING: Relaxed; the cell's state publishes the item.
            let index = tail.node.reserved.fetch_add(1, Ordering::Relaxed);
            let refused = if index < Self::LEN {
                tail.cell(index).offer(item)
            } else {
                self.grow(&tail, item, stamps)
            };
            match refused {
                Ok(()) => return,
                Err(back) => item = back,
            }
        }
    }

    /// Appends a node that begins with the item, or moves the tail to the node that is there.
    fn grow(&self, tail: &At<'_, T>, item: T, stamps: &AtomicU64) -> Result<(), T> {
        let mut next = tail.next();
        let mut refused = Err(item);
        if next.is_null() {
            // ORDERING: Relaxed; a logical clock that only compares ages.
            let stamp = stamps.fetch_add(1, Ordering::Relaxed) + 1;
            let new = Node::allocate(tail.node.base + Self::LEN, stamp);
            refused = refused.or_else(|item| At::owned(new).begin(item));
            // ORDERING: Release publishes the node. Acquire on failure: another thread's, which
            // pairs with its Release.
            let linked = tail.node.next.compare_exchange(
                ptr::null_mut(),
                new.as_ptr(),
                Ordering::Release,
                Ordering::Acquire,
            );
            next = match linked {
                Ok(_) => new.as_ptr(),
                Err(theirs) => {
                    // SAFETY: never shared; its one item is taken out first.
                    unsafe {
                        refused = Err(At::owned(new).cell(0).slot.take());
                        Row::free(new);
                    }
                    theirs
                }
            };
        }
        // ORDERING: Release; pairs with the Acquire in `tail_node`. Relaxed on failure: done.
        let _ = self.tail.compare_exchange(
            tail.row.as_ptr(),
            next,
            Ordering::Release,
            Ordering::Relaxed,
        );
        refused
    }

    /// The node at the head, by the number of cells before it.
    pub(super) fn node(&self) -> u64 {
        self.head_node(&reclaim::pin()).node.base
    }

    /// Moves up to `most` items from the head into the sink, unless returned ones come first. Spent
    /// if the head is no longer in the node that was entered.
    #[inline(never)]
    pub(super) fn take<S: Sink<T>>(&self, entered: u64, sink: &mut S, most: usize) -> Take {
        if !self.returned().is_clear() {
            return Take::Returned;
        }
        let pin = reclaim::pin();
        loop {
            let head = self.head_node(&pin);
            let claimed = head.claimed();
            if claimed == Self::LEN {
                if !self.advance(&head, &pin) {
                    return Take::Empty;
                }
            } else if head.node.base != entered {
                return Take::Spent;
            } else if head.is_full(claimed) {
                return head.take(claimed, sink, most, self.returned());
            } else if head.has_more(claimed) {
                self.skip(&head, claimed);
            } else {
                return Take::Empty;
            }
        }
    }

    /// Moves the head to the next node, if there is one.
    fn advance(&self, head: &At<'_, T>, pin: &Pin) -> bool {
        let next = head.next();
        if next.is_null() {
            return false;
        }
        // The tail may lag; it must not be left on a node that is retired.
        // ORDERING: Release; pairs with the Acquire in `tail_node`. Relaxed on failure: it is
        // elsewhere.
        let row = head.row;
        let _ =
            self.tail
                .compare_exchange(row.as_ptr(), next, Ordering::Release, Ordering::Relaxed);
        // ORDERING: Release; pairs with the Acquire in `head_node`. Relaxed on failure: done.
        let advanced = self.head.node.compare_exchange(
            row.as_ptr(),
            next,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if advanced.is_ok() {
            let bytes = Row::<Node<T>, Cell<T>>::bytes(Self::len());
            // SAFETY: neither head nor tail point to it any more; its items are taken, and
            // whoever still moves one, or fills a voided cell, is pinned.
            unsafe { pin.retire(bytes, move || Row::free(row)) };
        }
        true
    }

    /// Gets past a cell that is reserved and not filled, while others behind it are.
    fn skip(&self, head: &At<'_, T>, claimed: u64) {
        let cell = head.cell(claimed);
        for _ in 0..PATIENCE {
            if cell.state() != VACANT {
                break;
            }
            spin_hint();
        }
        if cell.void() {
            // ORDERING: Relaxed; statistics.
            self.voided.fetch_add(1, Ordering::Relaxed);
        }
        if cell.state() == VOID {
            head.claim(claimed, claimed + 1);
        }
    }

    /// Claimed cells so far, void ones included.
    pub(super) fn claimed(&self) -> u64 {
        let pin = reclaim::pin();
        let head = self.head_node(&pin);
        head.node.base + head.claimed()
    }

    /// Whether no item waits, returned ones aside.
    pub(super) fn is_empty(&self) -> bool {
        let pin = reclaim::pin();
        let head = self.head_node(&pin);
        let claimed = head.claimed();
        if claimed == Self::LEN {
            return head.next().is_null();
        }
        !head.is_full(claimed) && !head.has_more(claimed)
    }

    /// Items in line, returned ones aside.
    pub(super) fn backlog(&self) -> u64 {
        let claimed = self.claimed();
        self.reserved().saturating_sub(claimed)
    }

    /// Items ever pushed.
    pub(super) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        self.reserved()
            .saturating_sub(self.voided.load(Ordering::Relaxed))
    }

    /// The stamp of the node at the head; `None` if nothing waits.
    pub(super) fn age(&self) -> Option<u64> {
        if !self.returned().is_clear() {
            return Some(0);
        }
        if self.is_empty() {
            return None;
        }
        let pin = reclaim::pin();
        Some(self.head_node(&pin).node.stamp)
    }

    fn reserved(&self) -> u64 {
        let pin = reclaim::pin();
        let mut tail = self.tail_node(&pin);
        while let Some(next) = tail.successor() {
            tail = next;
        }
        tail.node.base + tail.reserved()
    }

    fn head_node<'p>(&self, pin: &'p Pin) -> At<'p, T> {
        // ORDERING: Acquire; pairs with the Release in `advance`, and with the nodes' links.
        let node = self.head.node.load(Ordering::Acquire);
        At::pinned(node, pin).expect("the common shard has a node")
    }

    fn tail_node<'p>(&self, pin: &'p Pin) -> At<'p, T> {
        // ORDERING: Acquire; pairs with the Release in `grow` and `advance`.
        let node = self.tail.load(Ordering::Acquire);
        At::pinned(node, pin).expect("the common shard has a node")
    }

    #[allow(clippy::cast_possible_truncation)] // at most 256
    const fn len() -> usize {
        Self::LEN as usize
    }
}

impl<T> Drop for Common<T> {
    /// Frees the memory. The queue has taken all items out.
    fn drop(&mut self) {
        // ORDERING: Relaxed, both; `&mut self`.
        let mut at = NonNull::new(self.head.node.load(Ordering::Relaxed));
        while let Some(row) = at {
            at = NonNull::new(At::owned(row).node.next.load(Ordering::Relaxed));
            // SAFETY: from the head on, nodes are the shard's own.
            unsafe { Row::free(row) };
        }
    }
}

impl<T> Node<T> {
    fn allocate(base: u64, stamp: u64) -> NonNull<Row<Self, Cell<T>>> {
        let header = Self {
            base,
            stamp,
            next: AtomicPtr::new(ptr::null_mut()),
            claimed: CachePadded::new(AtomicU64::new(0)),
            reserved: CachePadded::new(AtomicU64::new(0)),
        };
        Row::new(header, Common::<T>::len(), Cell::vacant)
    }
}

impl<'p, T> At<'p, T> {
    fn pinned(node: *mut Row<Node<T>, Cell<T>>, _pin: &'p Pin) -> Option<Self> {
        NonNull::new(node).map(Self::owned)
    }

    /// A node that is pinned, or not shared.
    fn owned(row: NonNull<Row<Node<T>, Cell<T>>>) -> Self {
        // SAFETY: nodes are retired, not freed, while somebody may be pinned.
        let node = unsafe { Row::header(row) };
        Self { row, node }
    }

    #[allow(clippy::cast_possible_truncation)] // at most 256
    fn cell(&self, index: u64) -> &'p Cell<T> {
        // SAFETY: alive as the header is; callers stay below LEN.
        unsafe { Row::get(self.row, index as usize) }
    }

    /// Puts the first item into a node that is not shared yet.
    fn begin(&self, item: T) -> Result<(), T> {
        // ORDERING: Relaxed; the link publishes the node.
        self.node.reserved.store(1, Ordering::Relaxed);
        self.cell(0).offer(item)
    }

    fn next(&self) -> *mut Row<Node<T>, Cell<T>> {
        // ORDERING: Acquire; pairs with the Release in `grow`.
        self.node.next.load(Ordering::Acquire)
    }

    fn successor(&self) -> Option<Self> {
        NonNull::new(self.next()).map(Self::owned)
    }

    fn claimed(&self) -> u64 {
        // ORDERING: Acquire; pairs with the Release in `claim`: who sees an item gone sees what
        // its taker saw.
        self.node.claimed.load(Ordering::Acquire)
    }

    fn claim(&self, from: u64, to: u64) -> bool {
        // ORDERING: AcqRel; Release pairs with the Acquire in `claimed`. Relaxed on failure.
        self.node
            .claimed
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Reserved cells of this node.
    fn reserved(&self) -> u64 {
        // ORDERING: Relaxed; only a bound for cells to look at, whose states say the rest.
        self.node
            .reserved
            .load(Ordering::Relaxed)
            .min(Common::<T>::LEN)
    }

    fn is_full(&self, index: u64) -> bool {
        self.cell(index).state() == FULL
    }

    /// Whether a cell behind `index` is filled, here or in a later node, or `index` was voided.
    fn has_more(&self, index: u64) -> bool {
        self.cell(index).state() == VOID
            || (index + 1..self.reserved()).any(|later| self.is_full(later))
            || !self.next().is_null()
    }

    /// Claims the filled cells from `claimed` on, and moves their items into the sink.
    fn take<S: Sink<T>>(
        &self,
        claimed: u64,
        sink: &mut S,
        most: usize,
        home: &Returned<T>,
    ) -> Take {
        let most = claimed.saturating_add(most as u64).min(Common::<T>::LEN);
        let full = (claimed..most)
            .take_while(|&index| self.is_full(index))
            .count();
        let count = sink.reserve(full, home);
        if !self.claim(claimed, claimed + count as u64) {
            return Take::Lost;
        }
        for index in claimed..claimed + count as u64 {
            // SAFETY: full, and ours by the claim. The sink granted room.
            unsafe { sink.accept(self.cell(index).slot.take(), 1) };
        }
        Take::Got(count)
    }
}

impl<T> Cell<T> {
    fn vacant() -> Self {
        Self {
            state: AtomicU8::new(VACANT),
            slot: Slot::vacant(),
        }
    }

    fn state(&self) -> u8 {
        // ORDERING: Acquire; pairs with the Release in `offer`.
        self.state.load(Ordering::Acquire)
    }

    /// Fills the cell, which the caller reserved; gives the item back if it was voided.
    fn offer(&self, item: T) -> Result<(), T> {
        // SAFETY: the reservation is the caller's alone, and nobody reads before the state says so.
        unsafe { self.slot.fill(item) };
        // ORDERING: Release; pairs with the Acquire in `state`. Relaxed on failure: the item never
        // left this thread.
        let filled =
            self.state
                .compare_exchange(VACANT, FULL, Ordering::Release, Ordering::Relaxed);
        match filled {
            Ok(_) => Ok(()),
            // SAFETY: filled above, and a void cell is read by nobody else.
            Err(_) => Err(unsafe { self.slot.take() }),
        }
    }

    /// Voids a vacant cell: true if it was one.
    fn void(&self) -> bool {
        // ORDERING: Relaxed; it hands nothing on: the state alone decides who has the item.
        self.state
            .compare_exchange(VACANT, VOID, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}
