//! The waiters of a wait queue in FIFO order.

use super::record::{Arrival, ListNode, Record, Service, State, WaiterKey, HEAD};
use super::word::WaitWord;
use crate::sync::{planted, step};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

/// The number of entries kept for reuse when nobody has one.
const MAX_VACANT_ENTRIES: usize = 64;

/// The number of newcomers without an attempt after which waiters that are being served count as given way to in vain.
const MAX_BEHIND: usize = 32;

/// A doubly linked ring of waiters and [`HEAD`], oldest first, in a vector.
///
/// A waiter keeps its entry until it is released. One that has left without the lock is still linked: it is unlinked
/// when it enters again, or when it is passed.
#[derive(Default)]
pub(super) struct WaiterList {
    /// Empty before the first waiter.
    entries: Vec<ListNode>,
    vacant: Vec<WaiterKey>,
    /// The first waiter that is not woken yet.
    next: WaiterKey,
    /// What the word shows of the list: the number of waiters that are not woken yet, and whether any is being served.
    pub(super) shown: WaitWord,
    /// The arrival of the last waiter.
    pub(super) arrivals: Arrival,
    /// The number of waiters that are being served.
    serving: usize,
    /// The last service.
    services: Service,
    /// The last service when a caller last gave way in vain.
    given_way: Service,
    /// How many newcomers have entered behind services since then, without an attempt.
    behind: usize,
    /// Whether waiters that gather may come.
    may_gather: bool,
    /// The number of waiters that gather.
    gatherers: usize,
    /// Wake-ups owed to waiters that entered without an attempt, because others come first.
    owed: usize,
}

impl WaiterList {
    /// `may_gather`: whether waiters that gather may come.
    pub(super) fn new(may_gather: bool) -> Self {
        Self {
            may_gather,
            ..Self::default()
        }
    }

    /// A record for a new waiter, which is idle.
    #[cold]
    pub(super) fn new_record(&mut self) -> Record {
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.entries
                .resize_with(self.entries.len().max(1) + 1, ListNode::default);
            let added = self.entries.len() - 1;
            (self.entries[added].before, self.entries[added].after) = (added, added);
            added
        });
        let state = Arc::clone(&self.entries[key].state);
        Record { key, state }
    }

    /// Releases the entry of an idle waiter, and the memory of all if it was the last one.
    pub(super) fn release(&mut self, key: WaiterKey) {
        self.unlink(key);
        self.vacant.push(key);
        let are_many = self.vacant.len() > MAX_VACANT_ENTRIES;
        if are_many && self.vacant.len() + 1 == self.entries.len() {
            (self.entries, self.vacant) = Default::default();
        }
    }

    /// Adds an idle waiter, and returns how many are being served: only if none is, it may simply attempt.
    #[inline(always)] // the wait of a task
    pub(super) fn enter(&mut self, key: WaiterKey, waker: Waker, gathers: bool) -> usize {
        if self.entries[HEAD].before != key {
            self.move_to_end(key);
        }
        if gathers {
            debug_assert!(self.may_gather);
            // A woken waiter that leaves may make this one the first, which must then be woken.
            step!("waiterlist.awaits-none", {
                let states = self.entries.iter().map(|entry| &entry.state);
                states.for_each(|state| state.set_awaited());
            });
            self.gatherers += 1;
        }
        self.arrivals += 1;
        let entry = &mut self.entries[key];
        entry.state.set(State::WAITING);
        entry.arrival = self.arrivals;
        // Without a test for an old one, which an idle waiter has not.
        debug_assert!(entry.waker.is_none(), "an idle waiter has no waker");
        mem::forget(entry.waker.replace(waker));
        entry.vain = false;
        entry.service = None;
        entry.gathers = gathers;
        if self.next == HEAD {
            self.next = key;
        }
        self.shown.add_waiter();
        // It may sleep without an attempt, and what was published before has woken nobody for it: another waiter that leaves
        // wakes one more. If the served one finds nothing it has missed nothing, since that attempt comes after its entry.
        if self.serving > 0 {
            self.owed += 1;
        }
        self.serving
    }

    /// Links an entry at the end. It may still be linked elsewhere.
    #[inline(never)]
    fn move_to_end(&mut self, key: WaiterKey) {
        self.unlink(key);
        let last = self.entries[HEAD].before;
        (self.entries[key].before, self.entries[key].after) = (last, HEAD);
        self.entries[last].after = key;
        self.entries[HEAD].before = key;
    }

    /// Changes the number of waiters that are being served.
    fn set_serving(&mut self, serving: usize) {
        self.serving = serving;
        self.shown.set_serving(serving > 0);
    }

    pub(super) fn is_first(&mut self, key: WaiterKey) -> bool {
        self.first_waiter() == key
    }

    /// The oldest waiter. Unlinks those before it that have left.
    fn first_waiter(&mut self) -> WaiterKey {
        while self.after(HEAD) != HEAD && self.has_left(self.after(HEAD)) {
            self.unlink(self.after(HEAD));
        }
        self.after(HEAD)
    }

    fn has_left(&self, key: WaiterKey) -> bool {
        self.entries[key].state.is(State::IDLE)
    }

    fn is_woken(&self, key: WaiterKey) -> bool {
        self.entries[key].waker.is_none()
    }

    /// Marks the oldest waiter as woken, and returns its waker.
    #[inline(always)] // the wake-up of one waiter
    pub(super) fn wake_next(&mut self) -> Option<Waker> {
        let key = self.next;
        if key == HEAD {
            return None;
        }
        let (waker, after) = self.wake(key);
        self.next = self.waiting_from(after);
        waker
    }

    /// Marks the oldest waiter that arrived after `after`, and not after `until`, as woken. Returns its waker and arrival.
    pub(super) fn wake_between(
        &mut self,
        after: Arrival,
        until: Arrival,
    ) -> Option<(Waker, Arrival)> {
        let mut key = self.next;
        while key != HEAD && (self.is_woken(key) || self.entries[key].arrival <= after) {
            key = self.after(key);
        }
        if key == HEAD || self.entries[key].arrival > until {
            return None;
        }
        let arrival = self.entries[key].arrival;
        let (waker, _) = self.wake(key);
        self.next = self.waiting_from(self.next);
        Some((waker?, arrival))
    }

    /// Marks a waiter as woken, and returns its waker and the next entry.
    #[inline(always)] // the wake-up of one waiter
    fn wake(&mut self, key: WaiterKey) -> (Option<Waker>, WaiterKey) {
        let entry = &mut self.entries[key];
        let waker = entry.waker.take();
        let after = entry.after;
        if self.owed > 0 || self.may_gather || entry.vain {
            self.await_leaving(key);
        } else {
            entry.state.set(State::FREE);
        }
        self.shown.remove_waiter();
        (waker, after)
    }

    /// Marks a waiter as woken, on whose leaving others may depend, and serves it if it was woken in vain before.
    #[inline(never)]
    fn await_leaving(&mut self, key: WaiterKey) {
        let entry = &mut self.entries[key];
        let awaited = self.owed > 0 || self.gatherers > 0 || entry.vain;
        let depends = awaited && !planted!("waiterlist.awaits-nobody");
        entry.state.set(if depends {
            State::AWAITED
        } else {
            State::WOKEN
        });
        if entry.vain {
            self.services += 1;
            entry.service = Some(self.services);
            self.set_serving(self.serving + 1);
        }
    }

    fn after(&self, key: WaiterKey) -> WaiterKey {
        self.entries[key].after
    }

    /// The first waiter from `at` on that is not woken. Unlinks those before it that have left.
    #[inline]
    fn waiting_from(&mut self, mut at: WaiterKey) -> WaiterKey {
        while at != HEAD && self.is_woken(at) {
            let woken = at;
            at = self.after(at);
            if self.has_left(woken) {
                self.unlink(woken);
            }
        }
        at
    }

    /// The waker of a waiter that is not woken.
    pub(super) fn waker(&mut self, key: WaiterKey) -> &mut Option<Waker> {
        &mut self.entries[key].waker
    }

    /// Lets a waiter that was woken in vain wait again, at its old position.
    pub(super) fn wait_again(&mut self, key: WaiterKey, waker: Waker) {
        self.end_service(key);
        // A waiter that gathers makes no attempt unless it is the first.
        self.owed += usize::from(self.entries[key].gathers && !self.is_first(key));
        let entry = &mut self.entries[key];
        entry.state.set(State::WAITING);
        entry.waker = Some(waker);
        entry.vain = true;
        self.shown.add_waiter();
        let arrival = entry.arrival;
        if self.next == HEAD || arrival < self.entries[self.next].arrival {
            self.next = key;
        }
    }

    /// Ends the service of a waiter that was woken, if it is still being served.
    fn end_service(&mut self, key: WaiterKey) {
        let served = self.entries[key].service.take().is_some();
        self.set_serving(self.serving - usize::from(served));
    }

    /// Records that a newcomer has entered behind the served waiters without an attempt. Many such newcomers have given way
    /// in vain. Returns how many others must be woken.
    pub(super) fn enter_behind(&mut self) -> usize {
        self.behind += 1;
        if self.behind < MAX_BEHIND {
            return 0;
        }
        self.give_way_in_vain()
    }

    /// Records that a caller has given way to the served waiters in vain. For the services that had begun when that
    /// happened last, it is the second time: they end, since their waiters may never react. Returns how many newcomers
    /// must be woken, since they have entered without an attempt.
    pub(super) fn give_way_in_vain(&mut self) -> usize {
        self.behind = 0;
        let given_way_twice = mem::replace(&mut self.given_way, self.services);
        // Those that are being served are among the first.
        let (mut key, mut unseen, mut ended) = (HEAD, self.serving, 0);
        while unseen > 0 {
            key = self.after(key);
            let service = &mut self.entries[key].service;
            unseen -= usize::from(service.is_some());
            if service.is_some_and(|service| service <= given_way_twice) {
                *service = None;
                ended += 1;
            }
        }
        self.set_serving(self.serving - ended);
        self.owed = self.owed.min(self.shown.waiting());
        let to_wake = ended.min(self.owed);
        self.owed -= to_wake;
        planted!("waiterlist.ends-unsaid", return 0);
        to_wake
    }

    /// Removes a waiter. `spent`: it has used its wake-up, if it was woken.
    ///
    /// Returns its waker if it was not woken, for the caller to drop, and how many others must be woken in its place, at least:
    /// its own wake-up included, if it was unused.
    pub(super) fn leave(&mut self, key: WaiterKey, spent: bool) -> (Option<Waker>, usize) {
        let mut to_wake =
            usize::from(self.is_woken(key) && !spent && !planted!("waiterlist.has-no-heir"));
        self.end_service(key);
        if self.next == key {
            self.next = self.waiting_from(self.after(key));
        }
        self.unlink(key);
        let entry = &mut self.entries[key];
        entry.state.set(State::IDLE);
        self.gatherers -= usize::from(entry.gathers);
        let waker = entry.waker.take();
        if waker.is_some() {
            self.shown.remove_waiter();
        }
        self.owed = self.owed.min(self.shown.waiting());
        let owed = self.owed.min(1);
        self.owed -= owed;
        step!("waiterlist.owes-nothing", to_wake += owed);
        to_wake = to_wake.max(usize::from(self.is_gatherer_next()));
        (waker, to_wake)
    }

    /// Whether the oldest waiter gathers, and was not woken.
    fn is_gatherer_next(&mut self) -> bool {
        self.gatherers > 0 && {
            let first = self.first_waiter();
            self.entries[first].gathers && first == self.next
        }
    }

    /// Unlinks an entry, if it is linked.
    #[inline]
    fn unlink(&mut self, key: WaiterKey) {
        let (before, after) = (self.entries[key].before, self.entries[key].after);
        self.entries[before].after = after;
        self.entries[after].before = before;
        (self.entries[key].before, self.entries[key].after) = (key, key);
    }
}
