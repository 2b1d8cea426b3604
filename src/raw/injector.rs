//! The injector: where pushes without a handle go, a FIFO of many producers.
//!
//! A linked list of nodes of cells, after the fetch-and-add array queue of Correia and Ramalhete
//! (`FAAArrayQueue`, 2016), with claims by CAS. A producer reserves a cell, fills it and then says
//! so; a cell whose producer stalls in between is voided by a consumer that finds filled cells
//! behind it, and the producer takes its item to another cell. So nobody waits for anybody.

use super::cursor::Take;
use super::entry::DeliveryMeta;
use super::front::{Front, Head};
use super::node::{At, Node, NodeSlots};
use super::reclaim::{self, Pin};
use super::row::Row;
use super::sink::Sink;
use super::times::known;
use crate::sync::{exclusive, weak, AtomicBool, AtomicPtr, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::ptr::{self, NonNull};

/// The shard of pushes without a handle.
pub(super) struct Injector<T> {
    front: CachePadded<Front<T>>,
    /// A node at or before the head.
    first: AtomicPtr<NodeSlots<T>>,
    /// A node at or before the end.
    last: CachePadded<AtomicPtr<NodeSlots<T>>>,
    /// NodeSlots given up, and those of them that the head has passed.
    voided: AtomicU64,
    passed: AtomicU64,
    /// Whether anything was ever pushed here: many queues are used through handles alone.
    used: AtomicBool,
}

// SAFETY: items of type T move between threads; the raw pointers are the shard's own.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: items leave by value to one claimant each.
unsafe impl<T: Send> Sync for Injector<T> {}

impl<T> Injector<T> {
    pub(super) fn new(timed: bool) -> Self {
        let node = Node::allocate(0, 0, timed).as_ptr();
        Self {
            front: CachePadded::new(Front::new()),
            first: AtomicPtr::new(node),
            last: CachePadded::new(AtomicPtr::new(node)),
            voided: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            used: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn front(&self) -> &Front<T> {
        &self.front
    }

    /// Appends an item, unless `admit` refuses after a cell was reserved.
    ///
    /// So whoever makes it refuse and then voids what is reserved knows that nothing more comes.
    pub(super) fn push(
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

    /// Says that something is, or was, to be found here.
    pub(super) fn set_used(&self) {
        // ORDERING: Relaxed; a look to save the store.
        if !self.used.load(Ordering::Relaxed) {
            // ORDERING: Release; pairs with `injector.is-unused`.
            self.used.store(true, weak!("injector.set-used", Release));
        }
    }

    /// Whether nothing was ever pushed here. Who has seen an item from here gone sees that it is not so.
    #[inline]
    fn is_unused(&self) -> bool {
        // ORDERING: Acquire; pairs with `injector.set-used`.
        !self.used.load(weak!("injector.is-unused", Acquire))
    }

    /// Appends a node, or goes on to the one that is there.
    fn grow(&self, last: &At<'_, T>, stamps: &AtomicU64) {
        if last.next().is_null() {
            // ORDERING: Relaxed; a logical clock that only compares ages.
            let stamp = stamps.fetch_add(1, Ordering::Relaxed) + 1;
            let node = last.node;
            let new = Node::allocate(node.base + Node::<T>::LEN, stamp, node.timed());
            // ORDERING: Release; pairs with `node.next`. Relaxed on failure: the other thread's node is read
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
        self.leave_last(last);
    }

    /// Gives up a reserved cell, unless it is filled.
    fn void(&self, at: &At<'_, T>, index: u64) {
        if at.void(index) {
            // ORDERING: Relaxed; statistics.
            self.voided.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives up all reserved cells that are not filled yet.
    pub(super) fn void_reserved(&self) {
        let pin = reclaim::pin();
        let mut at = Some(At::pinned(self.first_row(), &pin));
        while let Some(node) = at {
            (0..node.reserved()).for_each(|index| self.void(&node, index));
            at = node.successor();
        }
    }

    /// Moves `last` on from a node that has a successor.
    fn leave_last(&self, node: &At<'_, T>) {
        // ORDERING: Release; pairs with `injector.last`. Relaxed on failure: it was done.
        let _ = self.last.compare_exchange(
            node.row.as_ptr(),
            node.next(),
            weak!("injector.leave-last", Release),
            Ordering::Relaxed,
        );
    }

    /// The node at the head, by the position of its first cell.
    pub(super) fn entered(&self) -> u64 {
        let position = self.front.head().position();
        position - position % Node::<T>::LEN
    }

    /// Moves up to `most` items from the head into the sink, unless returned ones come first. Spent
    /// if the head is no longer in the node that was entered.
    #[inline]
    pub(super) fn take<S: Sink<T>>(&self, entered: u64, sink: &mut S, most: usize) -> Take {
        if self.is_unused() {
            return Take::Empty;
        }
        self.take_used(entered, sink, most)
    }

    #[inline(never)]
    fn take_used<S: Sink<T>>(&self, entered: u64, sink: &mut S, most: usize) -> Take {
        let head = self.front.head();
        if !self.front.is_clear() {
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

    /// Claims up to `full` filled cells from the head on.
    fn claim<S: Sink<T>>(&self, at: &At<'_, T>, head: Head, sink: &mut S, full: usize) -> Take {
        let count = sink.reserve(full, &self.front);
        if self.front.claim(head, count as u64).is_err() {
            return Take::Lost;
        }
        let index = head.position() - at.node.base;
        for index in index..index + count as u64 {
            // SAFETY: full, and ours by the claim. The sink granted room.
            unsafe { sink.accept(at.take(index), DeliveryMeta::first(at.since(index))) };
        }
        Take::Got(count)
    }

    /// Gets past a cell that is not filled, if something behind it is.
    fn skip(&self, at: &At<'_, T>, head: Head, index: u64) -> Take {
        if !at.is_void(index) {
            if !at.has_more(index) {
                return Take::Empty;
            }
            at.wait_for(index);
            self.void(at, index);
        }
        if at.is_void(index) {
            // Whether this or another consumer gets past it, the next look is further on.
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

    /// The node of the head. `Err`: empty if it is not there yet, lost if the head has moved on.
    fn node_at<'p>(&self, head: Head, pin: &'p Pin) -> Result<At<'p, T>, Take> {
        let mut at = At::pinned(self.first_row(), pin);
        loop {
            let index = head.position().checked_sub(at.node.base);
            match index {
                None => return Err(Take::Lost),
                Some(index) if index < Node::<T>::LEN => return Ok(at),
                Some(_) => {
                    let next = at.successor().ok_or(Take::Empty)?;
                    self.leave_first(&at, pin);
                    at = next;
                }
            }
        }
    }

    /// Moves `first` on from a node that lies before the head and has a successor.
    fn leave_first(&self, node: &At<'_, T>, pin: &Pin) {
        // `last` may lag; it must not be left on a node that is retired.
        self.leave_last(node);
        let row = node.row;
        // ORDERING: Release; pairs with `injector.first`. Relaxed on failure: it was done.
        let left = self.first.compare_exchange(
            row.as_ptr(),
            node.next(),
            weak!("injector.leave-first", Release),
            Ordering::Relaxed,
        );
        if left.is_ok() {
            // SAFETY: neither `first` nor `last` point to it any more; its items are claimed, and
            // whoever still moves one out, or fills a voided cell, is pinned.
            unsafe { pin.retire(node.node.bytes(), move || Row::free(row)) };
        }
    }

    /// The head's position, if no item is visible there.
    pub(super) fn position_if_empty(&self) -> Option<u64> {
        if self.is_unused() {
            return Some(0);
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

    /// Items in line, returned ones aside.
    #[inline]
    pub(super) fn backlog(&self) -> u64 {
        if self.is_unused() {
            return 0;
        }
        self.count_backlog()
    }

    fn count_backlog(&self) -> u64 {
        let position = self.front.head().position();
        // ORDERING: Relaxed, both; statistics.
        let passed = self.passed.load(Ordering::Relaxed);
        let void = self.voided.load(Ordering::Relaxed).saturating_sub(passed);
        self.reserved().saturating_sub(position + void)
    }

    /// Items ever pushed.
    pub(super) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        self.reserved()
            .saturating_sub(self.voided.load(Ordering::Relaxed))
    }

    /// The stamp of the node at the head; `None` if nothing waits.
    pub(super) fn age(&self) -> Option<u64> {
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

    /// The least of the times of the first item in line and of the returned ones.
    pub(super) fn oldest(&self) -> Option<u64> {
        let in_line = self.time_at_head();
        in_line.into_iter().chain(self.front.oldest()).min()
    }

    /// The time of the first item in line.
    fn time_at_head(&self) -> Option<u64> {
        let pin = reclaim::pin();
        let head = self.front.head();
        let at = self.node_at(head, &pin).ok()?;
        known(at.first_time_from(head.position() - at.node.base)?)
    }

    /// NodeSlots ever reserved.
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
    /// Frees the memory. The queue has taken all items out.
    fn drop(&mut self) {
        let mut at = NonNull::new(exclusive(&mut self.first));
        while let Some(row) = at {
            // SAFETY: from the first on, nodes are the shard's own.
            unsafe {
                at = NonNull::new(At::alive(row).next());
                Row::free(row);
            }
        }
    }
}
