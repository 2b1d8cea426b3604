//! Items that nobody holds are removed from queues of all orders, where they are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::failing::{clocked, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, panics};
use requeue::{Builder, FairQueue, ManualClock, Order, PopError, Queue, Unleased};

const ITEMS: u32 = 400;
const KEYS: u32 = 17;

/// A queue with items in all places, its clock, and its lists of items whose order is known: by their numbers.
struct Subject<O: Order<u32>> {
    queue: Queue<u32, O>,
    clock: ManualClock,
    lists: u32,
}

/// Runs a check with queues of all orders: their name, and a constructor that always pushes the same items.
macro_rules! check_all {
    ($check:ident) => {
        check_all!($check, strict, 1);
        check_all!($check, by_shard, 3);
        $check("one key", &|| made(Queue::builder().fair_by(|_| 0), 1));
        $check("keys", &|| {
            made(Queue::builder().fair_by(key).weight(weight), KEYS)
        });
        $check("serial", &|| {
            made(Queue::builder().fair_by(key).serial(), KEYS)
        });
        $check("as many keys as items", &|| {
            made(Queue::builder().fair_by(|item| *item), ITEMS)
        });
        $check("leased", &|| made(Queue::builder().leased(SECOND), 3));
        $check("priorities, leased", &|| {
            made(Queue::builder().by_priority().leased(SECOND), 1)
        });
    };
    ($check:ident, strict, 1) => {
        $check("priorities", &|| {
            by_priority(Queue::builder().by_priority())
        });
        $check("with ageing", &|| {
            by_priority(Queue::builder().by_priority().age_after(SECOND))
        });
        $check("last in, first out", &|| made(Queue::builder().lifo(), 1));
    };
    ($check:ident, by_shard, 3) => {
        $check("first in, first out", &|| made(Queue::builder(), 3));
    };
}

#[allow(clippy::trivially_copy_pass_by_ref)] // a function of keys
fn key(item: &u32) -> u32 {
    item % KEYS
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as above
fn weight(key: &u32) -> u32 {
    1 + key % 3
}

/// Pushes to three shards; some items were popped, some of them given back, some are scheduled, some delayed.
fn made<O: Order<u32>>(builder: Builder<u32, O>, lists: u32) -> Subject<O> {
    let clock = ManualClock::new();
    let queue = builder.clock(clock.clone()).timestamps().build();
    let mut handles = [queue.handle(), queue.handle()];
    for item in 0..ITEMS {
        match item % 3 {
            0 => queue.push(item).unwrap(),
            shard => handles[shard as usize - 1].push(item).unwrap(),
        }
    }
    for item in ITEMS..ITEMS + 100 {
        queue.after(item % 7 * SECOND + SECOND).push(item).unwrap();
    }
    (0..5).for_each(|nth| put_off(&queue, (1 + nth % 2) * SECOND));
    let aborted = handles[1].begin();
    assert!(aborted.pop_batch(50).len() > 0);
    aborted.abort();
    Subject {
        queue,
        clock,
        lists,
    }
}

/// Also with items that have changed their priority, which are ordered elsewhere.
fn by_priority<O>(builder: Builder<u32, O>) -> Subject<O>
where
    O: requeue::Prioritized<u32>,
{
    let subject = made(builder, 1);
    let tickets: Vec<_> = (0..100)
        .map(|item| subject.queue.priority(3).push(1000 + item).unwrap())
        .collect();
    for ticket in &tickets[20..50] {
        subject.queue.reprioritize(*ticket, 5000);
    }
    subject
}

impl<O: Order<u32>> Subject<O> {
    /// All items in their order, list by list, also those that are not ready yet.
    fn drain(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for second in 0..9 {
            for item in drain(&self.queue) {
                all.entry((second, item % self.lists))
                    .or_default()
                    .push(item);
            }
            self.clock.advance(SECOND);
        }
        assert_at_rest(&self.queue, 0, 0);
        let mut lists: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ((_, list), items) in all {
            lists.entry(list).or_default().extend(items);
        }
        lists
    }
}

fn kept(mut lists: BTreeMap<u32, Vec<u32>>, keep: impl Fn(u32) -> bool) -> BTreeMap<u32, Vec<u32>> {
    for items in lists.values_mut() {
        items.retain(|item| keep(*item));
    }
    lists.retain(|_, items| !items.is_empty());
    lists
}

fn count(lists: &BTreeMap<u32, Vec<u32>>) -> usize {
    lists.values().map(Vec::len).sum()
}

#[test]
fn what_is_kept_stays_in_its_order() {
    check_all!(keeps_the_order);
}

fn keeps_the_order<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    let keeps: [fn(u32) -> bool; 7] = [
        |_| true,
        |_| false,
        |item| item % 2 == 0,
        |item| item % 5 == 3,
        |item| item < 40,
        |item| item >= 300,
        |item| item / 40 % 2 == 0,
    ];
    for (nth, keep) in keeps.into_iter().enumerate() {
        let (subject, all) = (make(), make().drain());
        let expected = kept(all.clone(), keep);
        let before = subject.queue.stats();
        let removed = subject.queue.retain(|item, _| keep(*item));
        let stats = subject.queue.stats();
        assert_eq!(removed, count(&all) - count(&expected), "{name} {nth}");
        assert_eq!(stats.committed - before.committed, removed as u64);
        assert_eq!((stats.held, stats.aborted), (0, before.aborted), "{name}");
        stats.check().unwrap();
        assert_eq!(subject.drain(), expected, "{name} {nth}");
    }
}

#[test]
fn a_queue_goes_on_after_items_were_removed() {
    check_all!(goes_on);
}

fn goes_on<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    let Subject { queue, .. } = make();
    for round in 0..200 {
        queue.retain(|item, _| item % 50 == 0);
        queue
            .push_batch((0..64).map(|item| 50 * item + 1 + round % 48))
            .unwrap();
    }
    assert_eq!(queue.retain(|item, _| item % 50 == 0), 64, "{name}");
    let left = queue.len();
    assert!(left <= 20, "{name}");
    queue.clear_all();
    queue.push_batch(0..64).unwrap();
    assert_eq!(drain(&queue).len(), 64, "{name}");
    assert_at_rest(&queue, 0, 0);
    assert!(queue.next_scheduled().is_none());
}

#[test]
fn all_is_kept_that_a_panic_interrupts() {
    check_all!(panics_meanwhile);
}

fn panics_meanwhile<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    for at in [0, 31, 32, 300] {
        let (subject, all) = (make(), make().drain());
        let mut examined = Vec::new();
        assert!(panics(|| subject.queue.retain(|item, _| {
            assert_ne!(examined.len(), at, "the predicate fails");
            examined.push(*item);
            item % 2 == 0
        })));
        // Whole parts were removed.
        let left = subject.drain();
        let lost = |item: &u32| !left.values().flatten().any(|other| other == item);
        let gone = all.values().flatten().filter(|item| lost(item));
        assert!(
            gone.clone()
                .all(|item| item % 2 == 1 && examined.contains(item)),
            "{name}"
        );
        let odd = examined.iter().filter(|item| *item % 2 == 1).count();
        assert!(gone.count() + 32 > odd, "{name}");
    }
}

#[test]
fn pops_meanwhile_find_the_other_items() {
    check_all!(pops_meanwhile);
}

fn pops_meanwhile<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    let (subject, all) = (make(), make().drain());
    let (mut popped, mut removed) = (Vec::new(), Vec::new());
    let count_removed = subject.queue.retain(|item, queued| {
        assert!(!popped.contains(item), "{name}");
        if queued.due.is_none() && item % 3 == 0 {
            popped.extend(subject.queue.pop());
        }
        let keep = item % 2 == 0;
        removed.extend((!keep).then_some(*item));
        keep
    });
    assert_eq!(count_removed, removed.len());
    assert!(!popped.is_empty());
    let left = subject.drain();
    let mut seen: Vec<_> = left
        .values()
        .flatten()
        .chain(&popped)
        .chain(&removed)
        .collect();
    let mut expected: Vec<_> = all.values().flatten().collect();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected, "{name}");
}

#[test]
fn each_item_is_known_by_its_deliveries_and_times() {
    check_all!(knows_deliveries);
}

fn knows_deliveries<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    let Subject { queue, clock, .. } = make();
    clock.advance(SECOND / 2);
    let (mut failed, mut scheduled, mut returned) = (0, 0, 0);
    queue.retain(|item, queued| {
        assert_eq!(queued.waited, Some(SECOND / 2), "{name}");
        let due = queued.due.map(|due| due - queue.now() + SECOND / 2);
        let is_scheduled = (ITEMS..ITEMS + 100).contains(item);
        assert_eq!(
            is_scheduled,
            due.is_some() && queued.attempts == 0,
            "{name}"
        );
        if is_scheduled {
            assert_eq!(due, Some(item % 7 * SECOND + SECOND), "{name}");
            scheduled += 1;
        } else if let Some(due) = due {
            assert!(queued.attempts == 1 && (due == SECOND || due == 2 * SECOND));
            failed += 1;
        } else {
            returned += queued.attempts;
        }
        true
    });
    assert_eq!((failed, scheduled), (5, 100), "{name}");
    let serial = name == "serial";
    assert_eq!(returned, if serial { KEYS - 5 } else { 50 }, "{name}");
}

#[test]
fn items_of_serial_keys_are_found_behind_others() {
    let queue = Queue::builder()
        .fair_by(key)
        .serial()
        .key_capacity(4)
        .build();
    queue.push_batch((0..4).map(|nth| nth * KEYS)).unwrap();
    assert!(queue.push(KEYS).unwrap_err().is_full());
    let mut handle = queue.handle();
    let tx = handle.begin();
    let first = tx.pop().unwrap();
    let mut task = Task::new(queue.pop_async());
    task.assert_waits();
    // Neither the first, which is held, nor the last.
    assert_eq!(queue.retain(|item, _| *item == 3 * KEYS), 2);
    queue.push_batch([10 * KEYS, 11 * KEYS]).unwrap();
    assert_eq!(*first, 0);
    tx.commit();
    assert_eq!(task.output(), Ok(3 * KEYS));
    assert_eq!(drain(&queue), [10 * KEYS, 11 * KEYS]);
}

#[test]
fn a_serial_key_goes_on_when_its_delayed_item_is_removed() {
    let (_clock, builder) = clocked();
    let queue = builder.fair_by(key).serial().build();
    queue.push_batch([0, KEYS]).unwrap();
    put_off(&queue, SECOND);
    let mut task = Task::new(queue.pop_async());
    task.assert_waits();
    assert_eq!(queue.retain(|_, queued| queued.due.is_none()), 1);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(KEYS));
    assert_at_rest(&queue, 0, 0);
    assert!(queue.keys().iter().next().is_none());
}

#[test]
fn a_shown_item_that_is_removed_frees_its_key() {
    let queue = Queue::builder().fair_by(key).serial().build();
    queue.push_batch([0, KEYS, 2 * KEYS]).unwrap();
    let mut nested = true;
    // The key is passed over while its first item is examined.
    queue.retain(|item, _| {
        if std::mem::take(&mut nested) {
            assert_eq!(queue.pop(), Err(PopError::Empty));
        }
        *item == 2 * KEYS
    });
    assert_eq!((queue.len(), queue.pop()), (1, Ok(2 * KEYS)));
    assert!(queue.keys().iter().next().is_none());
}

/// A pop that has passed over the key is told of its next item.
#[test]
fn a_removal_that_makes_another_item_ready_wakes_a_pop() {
    let queue = Queue::builder().fair_by(key).serial().build();
    queue.push(0).unwrap();
    let mut task = Task::new(queue.pop_async());
    queue.retain(|_, _| {
        queue.push(KEYS).unwrap();
        task.assert_waits();
        false
    });
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(KEYS));
}

#[test]
fn room_of_removed_items_is_used() {
    let queue = Queue::builder()
        .fair_by(key)
        .capacity(40)
        .key_capacity(3)
        .build();
    let mut pushed = 0;
    for item in 0..1000 {
        pushed += usize::from(queue.push(item).is_ok());
        if item % 30 == 29 {
            queue.retain(|other, _| other % 4 == 0 && other + 30 > item);
        }
    }
    assert!(pushed > 500, "{pushed}");
    queue.clear_all();
    assert_eq!(queue.key_at_limit(&0), None);
    queue.push_batch(0..40).unwrap();
    assert_at_rest(&queue, 40, 0);
}

#[test]
fn a_ticket_of_a_removed_item_finds_nothing() {
    let queue = FairQueue::by(key);
    let ticket = queue.after(SECOND).push(1).unwrap();
    queue.retain(|_, _| {
        assert_eq!(queue.cancel(ticket), None);
        true
    });
    assert_eq!(queue.cancel(ticket), Some(1));
    let urgent = requeue::PriorityQueue::by_priority();
    let tickets = urgent.priority(1).push_batch(0..100).unwrap();
    assert_eq!(urgent.cancel(tickets[50]), Some(50));
    assert_eq!(urgent.retain(|item, _| item % 2 == 0), 50);
    assert_eq!(urgent.cancel(tickets[51]), None);
    assert!(urgent.reprioritize(tickets[98], 0));
    assert_eq!((urgent.pop(), urgent.cancel(tickets[0])), (Ok(98), Some(0)));
    assert_eq!(urgent.clear_all(), 47);
}

#[test]
fn beside_workers() {
    check_all!(works_meanwhile);
}

/// Nothing is lost, and nothing is removed twice.
fn works_meanwhile<O: Order<u32>>(name: &str, make: &dyn Fn() -> Subject<O>) {
    let (subject, all) = (make(), make().drain());
    let (stop, popped) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut removed = 0;
    thread::scope(|scope| {
        for worker in 0..2 {
            let (queue, stop, popped) = (&subject.queue, &stop, &popped);
            scope.spawn(move || {
                let mut handle = queue.handle();
                while !stop.load(Ordering::Relaxed) {
                    let tx = handle.begin();
                    let held: Vec<_> = tx.pop_batch(5).map(|item| *item).collect();
                    if worker == 0 && held.iter().all(|item| item % 3 == 0) {
                        let count = held.len();
                        popped.fetch_add(tx.try_commit().map_or(0, |_| count), Ordering::Relaxed);
                    }
                }
            });
        }
        for divisor in [7, 5, 2] {
            removed += subject
                .queue
                .retain(|item, _| item % 3 == 0 || item % divisor != 1);
        }
        stop.store(true, Ordering::Relaxed);
    });
    subject.queue.stats().check().unwrap();
    // What workers held meanwhile was missed.
    removed += subject
        .queue
        .retain(|item, _| item % 3 == 0 || item % 2 == 0);
    let left = subject.drain();
    let mut items: Vec<_> = left.values().flatten().collect();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), count(&left), "{name}");
    assert!(
        items.iter().all(|item| **item % 3 == 0 || **item % 2 == 0),
        "{name}"
    );
    assert_eq!(
        removed + popped.into_inner() + items.len(),
        count(&all),
        "{name}"
    );
}

#[test]
fn a_drain_is_in_the_order_of_the_queue() {
    fn check<O: Order<u32> + Unleased>(builder: Builder<u32, O>, expected: [u32; 6]) {
        let queue = builder.build();
        queue.push_batch([1, 2, 3]).unwrap();
        queue.push_batch([11, 12, 21]).unwrap();
        assert!(queue.drain().eq(expected));
        // Aborted items first, as for any pop.
        queue.push_batch([1, 2, 11]).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        let first = *tx.pop().unwrap();
        tx.abort();
        assert_eq!(queue.drain().next(), Some(first));
    }
    check(Queue::builder(), [1, 2, 3, 11, 12, 21]);
    check(Queue::builder().lifo(), [21, 12, 11, 3, 2, 1]);
    check(Queue::builder().by_priority(), [1, 2, 3, 11, 12, 21]);
    check(
        Queue::builder().fair_by(|item| item / 10),
        [1, 11, 21, 2, 12, 3],
    );
    let urgent = requeue::PriorityQueue::by_priority();
    for (item, priority) in [(1, 3), (2, 1), (3, 2), (4, 1)] {
        urgent.priority(priority).push(item).unwrap();
    }
    assert!(urgent.drain().eq([2, 4, 3, 1]));
}
