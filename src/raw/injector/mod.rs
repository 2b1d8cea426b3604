//! The injector: a multi-producer FIFO for items that no handle pushes.
//!
//! It is a linked list of nodes of cells, after the fetch-and-add array queue of Correia and Ramalhete
//! (`FAAArrayQueue`, 2016), with claims by CAS. A producer reserves a cell, fills it and then marks it
//! as full; if the producer stalls in between, a consumer that finds full cells behind it voids the
//! cell, and the producer puts its item into another cell. So no thread waits for another.

pub(in crate::raw) mod node;

use crate::raw::injector::node::{At, Node, NodeSlots};
use crate::raw::memory::entry::DeliveryMeta;
use crate::raw::memory::reclaim::{self, Pin};
use crate::raw::memory::row::Row;
use crate::raw::memory::segment::FIRST_STAMP;
use crate::raw::memory::times::known;
use crate::raw::shard::cursor::Take;
use crate::raw::shard::front::{Front, Head, FIRST};
use crate::raw::shard::sink::Sink;
use crate::sync::{exclusive, weak, AtomicBool, AtomicPtr, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::ptr::{self, NonNull};

/// The shard for items that no handle pushes.
pub(in crate::raw) struct Injector<T> {
    front: CachePadded<Front<T>>,
    /// A node at or before the head.
    first: AtomicPtr<NodeSlots<T>>,
    /// A node at or before the end.
    last: CachePadded<AtomicPtr<NodeSlots<T>>>,
    /// Voided cells, and those of them that the head has passed; both with the positions before the first one.
    voided: AtomicU64,
    passed: AtomicU64,
    /// Whether any item was ever put here: many queues are used through handles alone.
    used: AtomicBool,
}

// SAFETY: items of type T move between threads; the raw pointers are the shard's own.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: each item is moved out by value, to one claimant.
unsafe impl<T: Send> Sync for Injector<T> {}

impl<T> Injector<T> {
    pub(in crate::raw) fn new(timed: bool) -> Self {
        let node = Node::allocate(FIRST, FIRST_STAMP, timed).as_ptr();
        Self {
            front: CachePadded::new(Front::new()),
            first: AtomicPtr::new(node),
            last: CachePadded::new(AtomicPtr::new(node)),
            voided: AtomicU64::new(FIRST),
            passed: AtomicU64::new(FIRST),
            used: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(in crate::raw) fn front(&self) -> &Front<T> {
        &self.front
    }

    /// Appends an item, unless `admit` returns false after a cell was reserved.
    ///
    /// So once a thread has made `admit` return false and then voided the reserved cells, no more items come.
    pub(in crate::raw) fn push(
        &self,
        mut item: T,
        since: u64,
        stamps: &AtomicU64,
        admit: impl Fn() -> bool,
    ) -> Result<(), T> {
        self.set_used();
        let pin = reclaim::pin();
        loop {
            let last = self.last_node(&pin);
            let Some(index) = last.reserve() else {
                self.grow(&last, stamps);
                continue;
            };
            if !admit() {
                self.void(&last, index);
                return Err(item);
            }
            match last.offer(index, item, since) {
                Ok(()) => return Ok(()),
                Err(back) => item = back,
            }
        }
    }

    /// Announces that items are or were put here.
    pub(in crate::raw) fn set_used(&self) {
        // ORDERING: Relaxed; a check to save the store.
        if !self.used.load(Ordering::Relaxed) {
            // ORDERING: Release; pairs with `injector.is-unused`.
            self.used.store(true, weak!("injector.set-used", Release));
        }
    }

    /// Whether no item was ever put here. A thread that has seen an item from here claimed sees false.
    #[inline]
    pub(in crate::raw) fn is_unused(&self) -> bool {
        // ORDERING: Acquire; pairs with `injector.set-used`.
        !self.used.load(weak!("injector.is-unused", Acquire))
    }

    /// Appends a node unless there is one already, and advances `last` to it.
    fn grow(&self, last: &At<'_, T>, stamps: &AtomicU64) {
        if last.next().is_null() {
            // ORDERING: Relaxed; a logical clock that only compares ages.
            let stamp = stamps.fetch_add(1, Ordering::Relaxed) + 1;
            let node = last.node;
            let new = Node::allocate(node.base + Node::<T>::LEN, stamp, node.timed());
            // ORDERING: Release; pairs with `node.next`. Relaxed on failure: the other thread's node is loaded
            // there.
            let linked = last.node.next.compare_exchange(
                ptr::null_mut(),
                new.as_ptr(),
                weak!("injector.grow", Release),
                Ordering::Relaxed,
            );
            if linked.is_err() {
                // SAFETY: the node was not shared.
                unsafe { Row::free(new) };
            }
        }
        self.advance_last(last);
    }

    /// Voids a reserved cell, unless it is full.
    fn void(&self, at: &At<'_, T>, index: u64) {
        if at.void(index) {
            // ORDERING: Relaxed; statistics.
            self.voided.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Voids all reserved cells that are not full yet.
    pub(in crate::raw) fn void_reserved(&self) {
        let pin = reclaim::pin();
        let mut at = Some(At::pinned(self.first_row(), &pin));
        while let Some(node) = at {
            (0..node.reserved()).for_each(|index| self.void(&node, index));
            at = node.successor();
        }
    }

    /// Advances `last` from a node that has a successor.
    fn advance_last(&self, node: &At<'_, T>) {
        // ORDERING: Release; pairs with `injector.last`. Relaxed on failure: another thread has done it.
        let _ = self.last.compare_exchange(
            node.row.as_ptr(),
            node.next(),
            weak!("injector.leave-last", Release),
            Ordering::Relaxed,
        );
    }

    /// The position of the first cell of the node at the head.
    pub(in crate::raw) fn entered(&self) -> u64 {
        let position = self.front.head().position();
        position - (position - FIRST) % Node::<T>::LEN
    }

    /// Moves up to `most` items from the head into the sink, if the front is `passable`. Returns
    /// `Spent` if the head is no longer in the entered node.
    #[inline]
    pub(in crate::raw) fn take<S: Sink<T>>(
        &self,
        entered: u64,
        sink: &mut S,
        most: usize,
        passable: impl Fn(&Front<T>) -> bool,
    ) -> Take {
        if self.is_unused() {
            return Take::Empty;
        }
        self.take_used(entered, sink, most, passable)
    }

    #[inline(never)]
    fn take_used<S: Sink<T>>(
        &self,
        entered: u64,
        sink: &mut S,
        most: usize,
        passable: impl Fn(&Front<T>) -> bool,
    ) -> Take {
        let head = self.front.head();
        if !passable(&self.front) {
            return Take::Returned;
        }
        let pin = reclaim::pin();
        let at = match self.node_at(head, &pin) {
            Ok(at) => at,
            Err(why) => return why,
        };
        let index = head.position() - at.node.base;
        match at.full_from(index, most) {
            0 => self.skip(&at, head, index),
            _ if at.node.base != entered => Take::Spent,
            full => self.claim(&at, head, sink, full),
        }
    }

    /// Claims up to `full` full cells from the head on.
    fn claim<S: Sink<T>>(&self, at: &At<'_, T>, head: Head, sink: &mut S, full: usize) -> Take {
        let count = sink.reserve(full, &self.front);
        if self.front.claim(head, count as u64).is_err() {
            return Take::Lost;
        }
        let index = head.position() - at.node.base;
        for index in index..index + count as u64 {
            // SAFETY: the cell is full, and this thread has claimed it. The sink granted room.
            unsafe { sink.accept(at.take(index), DeliveryMeta::first(at.since(index))) };
        }
        Take::Got(count)
    }

    /// Skips a cell that is not full, if a cell behind it is.
    fn skip(&self, at: &At<'_, T>, head: Head, index: u64) -> Take {
        if !at.is_void(index) {
            if !at.has_more(index) {
                return Take::Empty;
            }
            at.wait_for(index);
            self.void(at, index);
        }
        if at.is_void(index) {
            // Whether this or another consumer skips it, the next attempt is further on.
            if self.front.claim(head, 1).is_ok() {
                // ORDERING: Relaxed; statistics.
                self.passed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Take::Lost
    }

    fn first_row(&self) -> *mut NodeSlots<T> {
        // ORDERING: Acquire; pairs with `injector.leave-first`, and with the nodes' `injector.grow`.
        self.first.load(weak!("injector.first", Acquire))
    }

    /// Returns the node of the head, or `Empty` if there is none yet, or `Lost` if the head has advanced.
    fn node_at<'p>(&self, head: Head, pin: &'p Pin) -> Result<At<'p, T>, Take> {
        let mut at = At::pinned(self.first_row(), pin);
        loop {
            let index = head.position().checked_sub(at.node.base);
            match index {
                None => return Err(Take::Lost),
                Some(index) if index < Node::<T>::LEN => return Ok(at),
                Some(_) => {
                    let next = at.successor().ok_or(Take::Empty)?;
                    self.advance_first(&at, pin);
                    at = next;
                }
            }
        }
    }

    /// Advances `first` from a node that lies before the head and has a successor.
    fn advance_first(&self, node: &At<'_, T>, pin: &Pin) {
        // `last` may lag; it must not be left on a node that is retired.
        self.advance_last(node);
        let row = node.row;
        // ORDERING: Release; pairs with `injector.first`. Relaxed on failure: another thread has done it.
        let advanced = self.first.compare_exchange(
            row.as_ptr(),
            node.next(),
            weak!("injector.leave-first", Release),
            Ordering::Relaxed,
        );
        if advanced.is_ok() {
            // SAFETY: neither `first` nor `last` points to it any more; its items are claimed, and
            // threads that still move one out, or fill a voided cell, are pinned.
            unsafe { pin.retire(node.bytes(), move || Row::free(row)) };
        }
    }

    /// The position of the head, if no item is visible there.
    pub(in crate::raw) fn position_if_empty(&self) -> Option<u64> {
        if self.is_unused() {
            return Some(FIRST);
        }
        let pin = reclaim::pin();
        loop {
            let head = self.front.head();
            let position = head.position();
            match self.node_at(head, &pin) {
                Err(Take::Lost) => {}
                Err(_) => return Some(position),
                Ok(at) => {
                    let index = position - at.node.base;
                    let empty = at.full_from(index, 1) == 0 && !at.has_more(index);
                    return empty.then_some(position);
                }
            }
        }
    }

    /// Whether no item is visible.
    #[inline]
    pub(in crate::raw) fn looks_empty(&self) -> bool {
        self.is_unused() || self.looks_used_up()
    }

    #[inline(never)]
    fn looks_used_up(&self) -> bool {
        self.position_if_empty().is_some() && self.front.is_exhausted()
    }

    /// The number of ready items, except returned ones.
    #[inline]
    pub(in crate::raw) fn backlog(&self) -> u64 {
        if self.is_unused() {
            return 0;
        }
        self.count_backlog()
    }

    #[inline(never)]
    fn count_backlog(&self) -> u64 {
        let position = self.front.head().position();
        // ORDERING: Relaxed, both; statistics.
        let passed = self.passed.load(Ordering::Relaxed);
        let void = self.voided.load(Ordering::Relaxed).saturating_sub(passed);
        self.reserved().saturating_sub(position + void)
    }

    /// The number of items ever pushed.
    pub(in crate::raw) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        self.reserved()
            .saturating_sub(self.voided.load(Ordering::Relaxed))
    }

    /// The stamp of the node at the head; `None` if no item is ready.
    pub(in crate::raw) fn age(&self) -> Option<u64> {
        if self.is_unused() {
            return None;
        }
        if !self.front.is_clear() {
            return Some(0);
        }
        if self.position_if_empty().is_some() {
            return None;
        }
        let pin = reclaim::pin();
        let at = self.node_at(self.front.head(), &pin);
        Some(at.map_or(u64::MAX, |at| at.node.stamp))
    }

    /// The earliest of the times of the item at the head and of the returned ones.
    pub(in crate::raw) fn oldest(&self) -> Option<u64> {
        let at_head = self.time_at_head();
        at_head.into_iter().chain(self.front.oldest()).min()
    }

    /// The time of the item at the head.
    fn time_at_head(&self) -> Option<u64> {
        let pin = reclaim::pin();
        let head = self.front.head();
        let at = self.node_at(head, &pin).ok()?;
        known(at.first_time_from(head.position() - at.node.base)?)
    }

    /// The number of cells ever reserved.
    fn reserved(&self) -> u64 {
        let pin = reclaim::pin();
        let mut last = self.last_node(&pin);
        while let Some(next) = last.successor() {
            last = next;
        }
        last.node.base + last.reserved()
    }

    fn last_node<'p>(&self, pin: &'p Pin) -> At<'p, T> {
        // ORDERING: Acquire; pairs with `injector.leave-last`.
        At::pinned(self.last.load(weak!("injector.last", Acquire)), pin)
    }
}

impl<T> Drop for Injector<T> {
    /// Frees the memory. The queue has already taken out all items.
    fn drop(&mut self) {
        let mut at = NonNull::new(exclusive(&mut self.first));
        while let Some(row) = at {
            // SAFETY: the shard owns the nodes from the first on.
            unsafe {
                at = NonNull::new(At::alive(row).next());
                Row::free(row);
            }
        }
    }
}
