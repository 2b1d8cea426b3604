//! The waiters of a wait queue in FIFO order.

use crate::sync::{planted, step};
use std::task::Waker;

/// The number of entries kept for reuse when nobody waits.
const KEPT: usize = 64;

/// Identifies a waiter until it leaves: an index into the entries.
pub(super) type WaiterKey = usize;

/// The sequence number of a waiter, in the order of arrival.
pub(super) type Arrival = u64;

/// A doubly linked list of waiters, oldest first, in a vector.
#[derive(Default)]
pub(super) struct WaiterList {
    entries: Vec<ListNode>,
    vacant: Vec<WaiterKey>,
    first: Option<WaiterKey>,
    last: Option<WaiterKey>,
    /// The first waiter that is not woken yet.
    next: Option<WaiterKey>,
    /// The number of waiters that are not woken yet.
    waiting: usize,
    arrivals: Arrival,
    /// The number of waiters that are being served.
    serving: usize,
    /// Wake-ups owed to waiters that entered without an attempt, because others come first.
    owed: usize,
}

struct ListNode {
    arrival: Arrival,
    before: Option<WaiterKey>,
    after: Option<WaiterKey>,
    /// `None`: it was woken.
    waker: Option<Waker>,
    /// Whether it was woken in vain.
    vain: bool,
    /// Whether it keeps what it has obtained so far while it is the first.
    gathers: bool,
}

/// The result of removing a waiter.
pub(super) struct Left {
    /// Its waker if it was not woken; for the caller to drop.
    pub(super) waker: Option<Waker>,
    /// How many others must be woken in its place, at least: its own wake-up included, if it was unused.
    pub(super) to_wake: usize,
}

impl WaiterList {
    /// Adds a waiter, and returns how many are being served: only if none is, it may simply attempt.
    pub(super) fn enter(&mut self, waker: Waker, gathers: bool) -> (WaiterKey, usize) {
        self.arrivals += 1;
        let entry = ListNode {
            arrival: self.arrivals,
            before: self.last,
            after: None,
            waker: Some(waker),
            vain: false,
            gathers,
        };
        let key = self.store(entry);
        match self.last.replace(key) {
            Some(last) => self.entries[last].after = Some(key),
            None => self.first = Some(key),
        }
        self.next = self.next.or(Some(key));
        self.waiting += 1;
        self.owed += self.serving.min(1);
        (key, self.serving)
    }

    fn store(&mut self, entry: ListNode) -> WaiterKey {
        if let Some(key) = self.vacant.pop() {
            self.entries[key] = entry;
            return key;
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_serving(&self) -> bool {
        self.serving > 0
    }

    pub(super) fn is_first(&self, key: WaiterKey) -> bool {
        self.first == Some(key)
    }

    pub(super) fn is_woken(&self, key: WaiterKey) -> bool {
        self.entries[key].waker.is_none()
    }

    /// The arrival of the last waiter.
    pub(super) fn last_arrival(&self) -> Arrival {
        self.arrivals
    }

    /// Marks the oldest waiter that arrived after `after`, and not after `until`, as woken, and returns its waker.
    pub(super) fn wake_next(&mut self, after: Arrival, until: Arrival) -> Option<(Waker, Arrival)> {
        let mut at = self.next;
        while let Some(key) = at.filter(|&key| self.is_woken(key) || self.arrival(key) <= after) {
            at = self.after(key);
        }
        let key = at.filter(|&key| self.arrival(key) <= until)?;
        let entry = &mut self.entries[key];
        self.serving += usize::from(entry.vain);
        let waker = entry.waker.take()?;
        self.waiting -= 1;
        if self.next == at {
            self.next = self.waiting_from(self.after(key));
        }
        Some((waker, self.arrival(key)))
    }

    fn arrival(&self, key: WaiterKey) -> Arrival {
        self.entries[key].arrival
    }

    fn after(&self, key: WaiterKey) -> Option<WaiterKey> {
        self.entries[key].after
    }

    /// The first waiter from `at` on that is not woken.
    fn waiting_from(&self, mut at: Option<WaiterKey>) -> Option<WaiterKey> {
        while let Some(key) = at.filter(|&key| self.is_woken(key)) {
            at = self.after(key);
        }
        at
    }

    /// Replaces the waker of a waiter that is not woken, and returns the old one.
    pub(super) fn replace_waker(&mut self, key: WaiterKey, waker: Waker) -> Option<Waker> {
        self.entries[key].waker.replace(waker)
    }

    pub(super) fn has_waker(&self, key: WaiterKey, waker: &Waker) -> bool {
        let own = self.entries[key].waker.as_ref();
        own.is_some_and(|own| own.will_wake(waker))
    }

    /// Lets a waiter that was woken in vain wait again, at its old position.
    pub(super) fn wait_again(&mut self, key: WaiterKey, waker: Waker) {
        self.end_service(key);
        // A waiter that gathers makes no attempt unless it is the first.
        self.owed += usize::from(self.entries[key].gathers && !self.is_first(key));
        let entry = &mut self.entries[key];
        entry.waker = Some(waker);
        entry.vain = true;
        self.waiting += 1;
        let arrival = entry.arrival;
        let is_older = |next: WaiterKey| arrival < self.entries[next].arrival;
        if self.next.map_or(true, is_older) {
            self.next = Some(key);
        }
    }

    /// Ends the service of a waiter that was woken, if it was being served.
    fn end_service(&mut self, key: WaiterKey) {
        let served = self.is_woken(key) && self.entries[key].vain;
        self.serving -= usize::from(served);
    }

    /// Removes a waiter. `spent`: it has used its wake-up, if it was woken.
    pub(super) fn leave(&mut self, key: WaiterKey, spent: bool) -> Left {
        let mut to_wake =
            usize::from(self.is_woken(key) && !spent && !planted!("waiterlist.has-no-heir"));
        self.end_service(key);
        if self.next == Some(key) {
            self.next = self.waiting_from(self.after(key));
        }
        let waker = self.unlink(key);
        self.waiting -= usize::from(waker.is_some());
        let owed = self.owed.min(1);
        self.owed -= owed;
        step!("waiterlist.owes-nothing", to_wake += owed);
        let gatherer = self.first.filter(|&first| self.entries[first].gathers);
        to_wake = to_wake.max(usize::from(gatherer.is_some() && gatherer == self.next));
        if self.first.is_none() {
            self.forget();
        }
        Left { waker, to_wake }
    }

    fn unlink(&mut self, key: WaiterKey) -> Option<Waker> {
        let entry = &mut self.entries[key];
        let (before, after, waker) = (entry.before, entry.after, entry.waker.take());
        match before {
            Some(before) => self.entries[before].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.entries[after].before = before,
            None => self.last = before,
        }
        self.vacant.push(key);
        waker
    }

    /// Releases memory; nobody waits.
    fn forget(&mut self) {
        self.owed = 0;
        if self.entries.len() > KEPT {
            self.entries = Vec::new();
            self.vacant = Vec::new();
        }
    }
}
