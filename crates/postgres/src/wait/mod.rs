//! Waiters for items: a list for each queue, in the order of their registration.

mod listen;

use listen::Listening;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{sleep_until, Instant};
use tokio_postgres::Row;

/// The waiters of a process.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    waiting: Mutex<HashMap<i32, List>>,
    listening: Listening,
}

/// The waiters for one queue.
#[derive(Debug, Default)]
struct List {
    entries: VecDeque<Arc<Entry>>,
    /// Items for which nobody was asleep: who is registered when a waiter leaves looks for them.
    unclaimed: usize,
}

/// A waiter in its list.
#[derive(Debug, Default)]
struct Entry {
    /// It is woken for an item.
    woken: AtomicBool,
    /// It is to look since there may be items, for others too.
    nudged: AtomicBool,
    notify: Notify,
}

impl Entry {
    fn is_woken(&self) -> bool {
        // ORDERING: Relaxed; written and read under the lock of the lists.
        self.woken.load(Ordering::Relaxed)
    }

    fn set_woken(&self, woken: bool) {
        // ORDERING: as in `is_woken`.
        self.woken.store(woken, Ordering::Relaxed);
    }

    fn nudge(&self) {
        // ORDERING: as in `is_woken`.
        self.nudged.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Why it looks, and that it does.
    fn take_look(&self) -> Look {
        // ORDERING: as in `is_woken`.
        let nudged = self.nudged.swap(false, Ordering::Relaxed);
        let woken = self.is_woken() && !nudged;
        self.set_woken(false);
        if woken {
            Look::Woken
        } else {
            Look::Polls
        }
    }
}

impl Hub {
    /// Registers a waiter, as the last one.
    pub(crate) fn enter(&self, queue: i32) -> Waiter<'_> {
        let entry = Arc::new(Entry::default());
        let mut waiting = self.waiting.lock();
        let list = waiting.entry(queue).or_default();
        list.entries.push_back(Arc::clone(&entry));
        Waiter {
            hub: self,
            queue,
            entry,
            look: Look::No,
        }
    }

    /// Wakes the first waiters that are not woken yet.
    pub(crate) fn wake(&self, queue: i32, items: usize) {
        if let Some(list) = self.waiting.lock().get_mut(&queue) {
            list.wake(items);
        }
    }

    /// Wakes waiters for the queues and numbers of items of these rows.
    pub(crate) fn wake_rows(&self, rows: &[Row]) {
        for row in rows {
            let items: i64 = row.get(1);
            self.wake(row.get(0), usize::try_from(items).unwrap_or(usize::MAX));
        }
    }

    /// The first waiter of a queue looks, and then the next one if it found an item: it is unknown how many items there are.
    pub(crate) fn nudge(&self, queue: i32) {
        if let Some(list) = self.waiting.lock().get(&queue) {
            list.nudge();
        }
    }

    /// The first waiters of all queues look, since notifications may be lost.
    pub(crate) fn nudge_all(&self) {
        self.waiting.lock().values().for_each(List::nudge);
    }

    /// The number of waiters.
    pub(crate) fn len(&self, queue: i32) -> usize {
        let waiting = self.waiting.lock();
        waiting.get(&queue).map_or(0, |list| list.entries.len())
    }
}

impl List {
    /// The first waiter looks. A later one would overtake it.
    fn nudge(&self) {
        if let Some(first) = self.entries.front() {
            first.nudge();
        }
    }

    /// Wakes the first waiters that are not woken yet.
    fn wake(&mut self, items: usize) {
        let asleep = self.entries.iter().filter(|entry| !entry.is_woken());
        let mut woken = 0;
        for entry in asleep.take(items) {
            entry.set_woken(true);
            entry.notify.notify_one();
            woken += 1;
        }
        self.unclaimed = self.unclaimed.saturating_add(items - woken);
    }
}

/// How long a waiter that is not the first one waits between two checks whether it is.
const CHECK: Duration = Duration::from_secs(1);

/// A registered waiter. A wake-up that it leaves unused goes to the next one.
#[derive(Debug)]
pub(crate) struct Waiter<'h> {
    hub: &'h Hub,
    queue: i32,
    entry: Arc<Entry>,
    look: Look,
}

/// Why a waiter looks for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It does not look now, or has looked in vain.
    No,
    Woken,
    /// It was not woken for an item, so there may be some for others too.
    Polls,
}

impl Waiter<'_> {
    /// Waits until it is woken or, if it is the first waiter, until a time. Then it is to look for an item.
    pub(crate) async fn woken(&mut self, mut next: Instant) {
        self.look = Look::No;
        loop {
            select! {
                biased;
                () = self.entry.notify.notified() => {
                    // A later wake-up is for another item.
                    let _waiting = self.hub.waiting.lock();
                    self.look = self.entry.take_look();
                    return;
                }
                () = sleep_until(next) => {}
            }
            if self.is_first() {
                self.look = Look::Polls;
                return;
            }
            next = Instant::now() + CHECK;
        }
    }

    pub(crate) fn is_first(&self) -> bool {
        let waiting = self.hub.waiting.lock();
        let first = waiting
            .get(&self.queue)
            .and_then(|list| list.entries.front());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.entry))
    }

    /// It has an item.
    pub(crate) fn served(mut self) {
        if self.look == Look::Woken {
            self.look = Look::No;
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.hub.waiting.lock();
        if let Some(list) = waiting.get_mut(&self.queue) {
            list.entries
                .retain(|entry| !Arc::ptr_eq(entry, &self.entry));
            let unused = self.entry.is_woken() || self.look == Look::Woken;
            let unclaimed = std::mem::take(&mut list.unclaimed);
            list.wake(unclaimed);
            if unused || self.look == Look::Polls {
                // The first one looks too, and is still the first one to be woken for an item.
                list.nudge();
            }
            if list.entries.is_empty() {
                waiting.remove(&self.queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hub, Look, Ordering, Waiter};
    use std::time::Duration;
    use tokio::time::Instant;

    /// Whether the waiter is woken for an item.
    fn is_woken(waiter: &Waiter<'_>) -> bool {
        waiter.entry.is_woken()
    }

    /// Whether the waiter is to look, since there may be items.
    fn is_nudged(waiter: &Waiter<'_>) -> bool {
        waiter.entry.nudged.load(Ordering::Relaxed)
    }

    #[test]
    fn as_many_waiters_are_woken_as_there_are_items_in_their_order() {
        let hub = Hub::default();
        let waiters = [hub.enter(1), hub.enter(1), hub.enter(1)];
        let other = hub.enter(2);
        hub.wake(1, 1);
        assert!(is_woken(&waiters[0]) && !is_woken(&waiters[1]));
        hub.wake(1, 1);
        assert!(is_woken(&waiters[1]) && !is_woken(&waiters[2]));
        assert!(!is_woken(&other));
    }

    #[test]
    fn an_unused_wake_up_goes_to_the_next_waiter() {
        let hub = Hub::default();
        let (first, second, third) = (hub.enter(1), hub.enter(1), hub.enter(1));
        hub.wake(1, 1);
        drop(first);
        assert!(is_nudged(&second));
        // The next item is for that one too: nobody overtakes it.
        hub.wake(1, 1);
        assert!(is_woken(&second) && !is_woken(&third));
    }

    #[test]
    fn a_waiter_that_is_dropped_while_it_looks_passes_its_wake_up_on() {
        let hub = Hub::default();
        let (mut first, second) = (hub.enter(1), hub.enter(1));
        first.look = Look::Woken;
        drop(first);
        assert!(is_nudged(&second));
    }

    #[test]
    fn a_wake_up_that_was_used_goes_to_nobody() {
        let hub = Hub::default();
        let (mut first, second) = (hub.enter(1), hub.enter(1));
        first.look = Look::Woken;
        first.served();
        assert!(!is_woken(&second));
        assert_eq!(hub.len(1), 1);
    }

    #[test]
    fn an_item_for_which_nobody_was_asleep_wakes_who_came_later() {
        let hub = Hub::default();
        let mut first = hub.enter(1);
        hub.wake(1, 2);
        first.entry.set_woken(false);
        first.look = Look::Woken;
        let second = hub.enter(1);
        first.served();
        assert!(is_woken(&second));
    }

    #[tokio::test]
    async fn who_found_an_item_by_polling_has_the_next_one_look() {
        let hub = Hub::default();
        let (mut first, mut second) = (hub.enter(1), hub.enter(1));
        first.look = Look::Polls;
        first.served();
        assert!(!is_woken(&second));
        second.woken(far()).await;
        assert_eq!(second.look, Look::Polls);
    }

    #[tokio::test]
    async fn after_a_nudge_waiters_look_one_after_the_other() {
        let hub = Hub::default();
        let (mut first, mut second) = (hub.enter(1), hub.enter(1));
        hub.nudge(1);
        assert!(!is_nudged(&second));
        first.woken(far()).await;
        first.served();
        second.woken(far()).await;
        assert_eq!(second.look, Look::Polls);
        hub.nudge_all();
        second.woken(far()).await;
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }
}
