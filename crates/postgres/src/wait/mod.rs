//! Waiters for items: a list for each queue, in the order of their registration.

mod listen;

use crate::background::Task;
use crate::connect::{Params, Shared};
use crate::error::Result;
use listen::Listening;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Weak};
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
    /// What others are to be told: queues, and numbers of items; 0 if that is unknown.
    news: Mutex<BTreeMap<i32, i64>>,
    /// Sends it: the server has one transaction with notifications commit at a time, and no call waits for that.
    teller: Task,
}

/// The waiters for one queue. Only the first one looks for an item, so none is overtaken; when it leaves, the next one looks if
/// there may be more items.
#[derive(Debug, Default)]
struct List {
    entries: VecDeque<Arc<Notify>>,
    /// Items that were pushed since the first waiter began to look.
    items: usize,
}

impl Hub {
    /// Registers a waiter, as the last one. If it is the only one, it looks at once: what came before is for the waiters before it.
    pub(crate) fn enter(&self, queue: i32) -> Waiter<'_> {
        let entry = Arc::new(Notify::new());
        let mut waiting = self.waiting.lock();
        let list = waiting.entry(queue).or_default();
        if list.entries.is_empty() {
            entry.notify_one();
        }
        list.entries.push_back(Arc::clone(&entry));
        Waiter {
            hub: self,
            queue,
            entry,
            look: None,
        }
    }

    /// Wakes waiters for this number of new items; if it is 0, the number is unknown: the first one looks, and then the next one if it
    /// found an item.
    pub(crate) fn wake(&self, queue: i32, items: usize) {
        if let Some(list) = self.waiting.lock().get_mut(&queue) {
            list.items = list.items.saturating_add(items);
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

impl Shared {
    /// Wakes waiters of all processes for the rows of [`counts`](crate::sql): queues, numbers of items, some that listen.
    pub(crate) fn wake_rows(self: &Arc<Self>, rows: &[Row]) {
        let own = self.known_process();
        let mut listened = Vec::new();
        for row in rows {
            let (queue, items, listeners): (i32, i64, Vec<i64>) =
                (row.get(0), row.get(1), row.get(2));
            let count = usize::try_from(items).unwrap_or(usize::MAX);
            self.hub.wake(queue, count);
            if listeners.iter().any(|process| Some(*process) != own) {
                listened.push((queue, items));
            }
        }
        self.tell(listened);
    }

    /// Tells the other processes that listen of items of these queues, or of 0 if it is unknown how many. If that fails, their
    /// waiters see them at the next poll.
    pub(crate) fn tell(self: &Arc<Self>, counts: Vec<(i32, i64)>) {
        if counts.is_empty() {
            return;
        }
        let mut news = self.hub.news.lock();
        for (queue, items) in counts {
            let is_unknown = items == 0 || news.get(&queue) == Some(&0);
            let sum = news.entry(queue).or_insert(0);
            *sum = if is_unknown { 0 } else { *sum + items };
        }
        drop(news);
        self.hub.teller.nudge();
        self.hub.teller.start(self, tell);
    }

    async fn send_news(self: &Arc<Self>) -> Result<()> {
        let process = self.process().await?;
        let news = mem::take(&mut *self.hub.news.lock());
        let (queues, items): (Vec<i32>, Vec<i64>) = news.into_iter().unzip();
        // It may wait for a lock.
        let params: Params<'_> = &[&queues, &items, &process];
        self.run_aside(&self.sql.tell, params).await.map(drop)
    }
}

async fn tell(shared: Weak<Shared>, added: Arc<Notify>) {
    loop {
        added.notified().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let _ = shared.send_news().await; // they look again after a second
    }
}

impl List {
    /// The first waiter looks.
    fn nudge(&self) {
        if let Some(first) = self.entries.front() {
            first.notify_one();
        }
    }
}

/// How long a waiter that is not the first one waits between two checks whether it is.
const CHECK: Duration = Duration::from_secs(1);

/// A registered waiter.
#[derive(Debug)]
pub(crate) struct Waiter<'h> {
    hub: &'h Hub,
    queue: i32,
    entry: Arc<Notify>,
    /// While it looks: the number of items that it was woken for.
    look: Option<usize>,
}

impl Waiter<'_> {
    /// Waits until it is the first waiter, and is woken or a time has come. Then it is to look for an item.
    pub(crate) async fn woken(&mut self, mut next: Instant) {
        self.look = None;
        loop {
            select! {
                biased;
                () = self.entry.notified() => {}
                () = sleep_until(next) => {}
            }
            if self.begin_look() {
                return;
            }
            next = Instant::now() + CHECK;
        }
    }

    fn begin_look(&mut self) -> bool {
        let mut waiting = self.hub.waiting.lock();
        let list = waiting.get_mut(&self.queue);
        let own = list.filter(|list| Arc::ptr_eq(&list.entries[0], &self.entry));
        self.look = own.map(|list| mem::take(&mut list.items));
        self.look.is_some()
    }

    /// It has some items. If it was not woken for them, or for others too, the next waiter looks.
    pub(crate) fn served(mut self, items: usize) {
        let others = self.look.filter(|look| *look != items);
        self.look = others.map(|look| look.saturating_sub(items));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.hub.waiting.lock();
        if let Some(list) = waiting.get_mut(&self.queue) {
            list.entries
                .retain(|entry| !Arc::ptr_eq(entry, &self.entry));
            list.items = list.items.saturating_add(self.look.unwrap_or(0));
            if self.look.is_some() || list.items > 0 {
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
    use super::{Hub, Waiter};
    use std::time::Duration;
    use tokio::time::{timeout, Instant};

    /// Whether the waiter is to look for an item.
    async fn looks(waiter: &mut Waiter<'_>) -> bool {
        let far = Instant::now() + Duration::from_secs(3600);
        timeout(Duration::ZERO, waiter.woken(far)).await.is_ok()
    }

    #[tokio::test]
    async fn the_only_waiter_looks_at_once_and_those_behind_it_do_not() {
        let hub = Hub::default();
        let (mut first, mut second, mut other) = (hub.enter(1), hub.enter(1), hub.enter(2));
        assert!(!looks(&mut second).await);
        assert!(looks(&mut first).await && looks(&mut other).await);
        drop(first);
        assert!(looks(&mut second).await, "it was dropped while it looked");
    }

    #[tokio::test]
    async fn waiters_look_in_their_order_as_many_as_there_are_items() {
        let hub = Hub::default();
        let (mut first, mut second, mut third) = (hub.enter(1), hub.enter(1), hub.enter(1));
        let mut other = hub.enter(2);
        assert!(looks(&mut first).await && looks(&mut other).await);
        hub.wake(1, 2);
        assert!(!looks(&mut second).await && looks(&mut first).await);
        first.served(1);
        assert!(looks(&mut second).await && !looks(&mut third).await);
        second.served(1);
        assert!(!looks(&mut third).await && !looks(&mut other).await);
        assert_eq!(hub.len(1), 1);
    }

    #[tokio::test]
    async fn a_wake_up_that_comes_late_wakes_no_later_waiter_for_the_next_item() {
        let hub = Hub::default();
        let (mut first, mut second) = (hub.enter(1), hub.enter(1));
        hub.wake(1, 1); // another waiter has the item already
        hub.wake(1, 1);
        assert!(!looks(&mut second).await && looks(&mut first).await);
        assert!(!looks(&mut second).await);
    }

    #[tokio::test]
    async fn a_waiter_that_is_dropped_while_it_looks_passes_its_wake_up_on() {
        let hub = Hub::default();
        let (mut first, mut second) = (hub.enter(1), hub.enter(1));
        hub.wake(1, 1);
        assert!(looks(&mut first).await);
        drop(first);
        assert!(looks(&mut second).await);
    }

    #[tokio::test]
    async fn an_unused_wake_up_goes_to_the_next_waiter() {
        let hub = Hub::default();
        let (first, mut second) = (hub.enter(1), hub.enter(1));
        hub.wake(1, 1);
        drop(first);
        assert!(looks(&mut second).await);
    }

    #[tokio::test]
    async fn an_item_that_comes_while_the_first_waiter_looks_is_for_the_next_one() {
        let hub = Hub::default();
        let mut first = hub.enter(1);
        hub.wake(1, 1);
        assert!(looks(&mut first).await);
        hub.wake(1, 1);
        let mut second = hub.enter(1);
        first.served(1);
        assert!(looks(&mut second).await);
    }

    #[tokio::test]
    async fn an_item_found_without_a_wake_up_lets_the_next_waiter_look() {
        let hub = Hub::default();
        let (mut first, mut second) = (hub.enter(1), hub.enter(1));
        hub.wake(1, 0);
        assert!(looks(&mut first).await);
        first.served(1);
        assert!(looks(&mut second).await);
        assert!(!looks(&mut second).await);
        hub.nudge_all();
        assert!(looks(&mut second).await);
    }
}
