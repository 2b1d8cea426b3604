//! The waiters of a wait queue in FIFO order.

use super::entries::{Arrival, Entries, Service, WaiterKey};
use super::record::{Record, State};
use super::word::WaitWord;
use crate::sync::{planted, step};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

/// The number of entries kept for reuse when nobody has one.
const MAX_VACANT_ENTRIES: usize = 64;

/// The number of newcomers without an attempt after which waiters that are being served count as given way to in vain.
const MAX_BEHIND: usize = 32;

/// A doubly linked list of waiters, oldest first, in a vector.
///
/// A waiter keeps its entry until it is released. One that has left without the lock is still linked: it is unlinked
/// when it enters again, or when it is passed.
#[derive(Default)]
pub(super) struct WaiterList {
    entries: Entries,
    vacant: Vec<WaiterKey>,
    first: Option<WaiterKey>,
    last: Option<WaiterKey>,
    /// The first waiter that is not woken yet.
    next: Option<WaiterKey>,
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

/// The result of removing a waiter.
pub(super) struct Left {
    /// Its waker if it was not woken; for the caller to drop.
    pub(super) waker: Option<Waker>,
    /// How many others must be woken in its place, at least: its own wake-up included, if it was unused.
    pub(super) to_wake: usize,
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
        let vacant = self.vacant.pop();
        let key = vacant.unwrap_or_else(|| self.entries.add());
        let state = Arc::clone(&self.entries[key].state);
        Record { key, state }
    }

    /// Releases the entry of an idle waiter, and the memory of all if it was the last one.
    pub(super) fn release(&mut self, key: WaiterKey) {
        self.unlink(key);
        self.vacant.push(key);
        let entries = self.entries.len();
        if self.vacant.len() == entries && entries > MAX_VACANT_ENTRIES {
            self.entries = Entries::default();
            self.vacant = Vec::new();
        }
    }

    /// Adds an idle waiter, and returns how many are being served: only if none is, it may simply attempt.
    #[inline(always)] // the wait of a task
    pub(super) fn enter(&mut self, key: WaiterKey, waker: Waker, gathers: bool) -> usize {
        if self.last != Some(key) {
            self.move_to_end(key);
        }
        if gathers {
            debug_assert!(self.may_gather);
            // A woken waiter that leaves may make this one the first, which must then be woken.
            step!("waiterlist.awaits-none", self.await_woken());
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
        self.next = self.next.or(Some(key));
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
        let entry = &mut self.entries[key];
        entry.linked = true;
        entry.before = self.last;
        entry.after = None;
        match self.last.replace(key) {
            Some(last) => self.entries[last].after = Some(key),
            None => self.first = Some(key),
        }
    }

    /// Makes all woken waiters leave under the lock.
    fn await_woken(&self) {
        let mut at = self.first;
        while let Some(key) = at {
            self.entries[key].state.set_awaited();
            at = self.after(key);
        }
    }

    /// Changes the number of waiters that are being served.
    fn set_serving(&mut self, serving: usize) {
        self.serving = serving;
        self.shown.set_serving(serving > 0);
    }

    pub(super) fn is_first(&mut self, key: WaiterKey) -> bool {
        self.first_waiter() == Some(key)
    }

    /// The oldest waiter. Unlinks those before it that have left.
    fn first_waiter(&mut self) -> Option<WaiterKey> {
        while let Some(key) = self.first.filter(|&key| self.has_left(key)) {
            self.unlink(key);
        }
        self.first
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
        let (waker, after) = self.wake(self.next?);
        self.next = self.waiting_from(after);
        waker
    }

    /// Marks the oldest waiter that arrived after `after`, and not after `until`, as woken. Returns its waker and arrival.
    pub(super) fn wake_between(
        &mut self,
        after: Arrival,
        until: Arrival,
    ) -> Option<(Waker, Arrival)> {
        let mut at = self.next;
        while let Some(key) = at.filter(|&key| self.is_woken(key) || self.arrival(key) <= after) {
            at = self.after(key);
        }
        let key = at.filter(|&key| self.arrival(key) <= until)?;
        let waker = if self.next == at {
            self.wake_next()
        } else {
            self.wake(key).0
        };
        Some((waker?, self.arrival(key)))
    }

    /// Marks a waiter as woken, and returns its waker and the next entry.
    #[inline(always)] // the wake-up of one waiter
    fn wake(&mut self, key: WaiterKey) -> (Option<Waker>, Option<WaiterKey>) {
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

    fn arrival(&self, key: WaiterKey) -> Arrival {
        self.entries[key].arrival
    }

    fn after(&self, key: WaiterKey) -> Option<WaiterKey> {
        self.entries[key].after
    }

    /// The first waiter from `at` on that is not woken. Unlinks those before it that have left.
    #[inline]
    fn waiting_from(&mut self, mut at: Option<WaiterKey>) -> Option<WaiterKey> {
        while let Some(key) = at.filter(|&key| self.is_woken(key)) {
            at = self.after(key);
            if self.has_left(key) {
                self.unlink(key);
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
        let is_older = |next: WaiterKey| arrival < self.entries[next].arrival;
        if self.next.map_or(true, is_older) {
            self.next = Some(key);
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
        let ended = self.end_services(given_way_twice);
        self.set_serving(self.serving - ended);
        self.owed = self.owed.min(self.shown.waiting());
        let to_wake = ended.min(self.owed);
        self.owed -= to_wake;
        planted!("waiterlist.ends-unsaid", return 0);
        to_wake
    }

    /// Ends the services up to this one, and returns their number.
    fn end_services(&mut self, last: Service) -> usize {
        let (mut at, mut unseen, mut ended) = (self.first, self.serving, 0);
        while let Some(key) = at.filter(|_| unseen > 0) {
            at = self.after(key);
            let service = &mut self.entries[key].service;
            unseen -= usize::from(service.is_some());
            if service.is_some_and(|service| service <= last) {
                *service = None;
                ended += 1;
            }
        }
        ended
    }

    /// Removes a waiter. `spent`: it has used its wake-up, if it was woken.
    pub(super) fn leave(&mut self, key: WaiterKey, spent: bool) -> Left {
        let mut to_wake =
            usize::from(self.is_woken(key) && !spent && !planted!("waiterlist.has-no-heir"));
        self.end_service(key);
        if self.next == Some(key) {
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
        Left { waker, to_wake }
    }

    /// Whether the oldest waiter gathers, and was not woken.
    fn is_gatherer_next(&mut self) -> bool {
        self.gatherers > 0 && {
            let first = self.first_waiter();
            let gatherer = first.filter(|&first| self.entries[first].gathers);
            gatherer.is_some() && gatherer == self.next
        }
    }

    /// Unlinks an entry, if it is linked.
    #[inline]
    fn unlink(&mut self, key: WaiterKey) {
        let entry = &mut self.entries[key];
        if !mem::take(&mut entry.linked) {
            return;
        }
        let (before, after) = (entry.before, entry.after);
        match before {
            Some(before) => self.entries[before].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.entries[after].before = before,
            None => self.last = before,
        }
    }
}
