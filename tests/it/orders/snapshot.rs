//! Visits to all ready items of queues of other orders: only a few items are held at a time.

use std::cell::Cell;
use std::collections::HashSet;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::failing::SECOND;
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, panics};
use requeue::{FairQueue, ManualClock, Order, PopError, PriorityQueue, Queue, Unleased};

const ITEMS: u32 = 1000;
/// More items than are held at a time.
const MANY: usize = 100;

/// Runs a check with several kinds of queue: their name, and a constructor that always pushes the same items.
macro_rules! check_all {
    ($check:ident) => {
        $check("one key", &|| fair(1));
        $check("keys", &|| fair(17));
        $check("as many keys as items", &|| fair(ITEMS));
        $check("priorities", &|| by_priority(false));
        $check("with ageing", &|| by_priority(true));
        $check("last in, first out", &|| {
            let queue = Queue::builder().lifo().build();
            fill(&queue);
            queue
        });
    };
}

/// With weights up to 3, within a round.
fn fair(keys: u32) -> FairQueue<u32, u32> {
    let builder = Queue::builder().fair_by(move |item| item % keys);
    let queue = builder.weight(|key| 1 + key % 3).build();
    fill(&queue);
    queue
}

/// Some items are scheduled; some of these are due.
fn by_priority(ages: bool) -> PriorityQueue<u32> {
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let builder = if ages {
        builder.age_after(SECOND)
    } else {
        builder
    };
    let queue = builder.build();
    for item in 0..300 {
        let view = queue.priority(u16::try_from(1 + item % 5).unwrap());
        let view = match item % 3 {
            0 => view,
            _ => view.at(clock.now() + item % 7 * SECOND),
        };
        view.push(ITEMS + item).unwrap();
    }
    let tickets: Vec<_> = (0..50)
        .map(|item| queue.priority(3).push(2 * ITEMS + item).unwrap())
        .collect();
    for ticket in &tickets[20..] {
        queue.reprioritize(*ticket, 5000);
    }
    fill(&queue);
    clock.advance(3 * SECOND);
    queue
}

/// Pushes items to several shards; some were popped, and some of those were given back.
fn fill<O: Order<u32> + Unleased>(queue: &Queue<u32, O>) {
    let mut handles = [queue.handle(), queue.handle()];
    for item in 0..ITEMS {
        match item % 3 {
            0 => queue.push(item).unwrap(),
            shard => handles[shard as usize - 1].push(item).unwrap(),
        }
    }
    let [one, other] = &mut handles;
    let (kept, aborted) = (one.begin(), other.begin());
    assert_eq!(kept.pop_batch(20).len(), 20);
    assert_eq!(aborted.pop_batch(50).len(), 50);
    kept.commit();
    aborted.abort();
}

fn visited<O: Order<u32>>(queue: &Queue<u32, O>) -> Vec<u32> {
    let mut items = Vec::new();
    let count = queue.peek_each(|item| items.push(*item));
    assert_eq!(count, items.len());
    items
}

#[track_caller]
fn assert_same(one: impl IntoIterator<Item = u32>, other: &[u32]) {
    let mut one: Vec<_> = one.into_iter().collect();
    let mut other = other.to_vec();
    one.sort_unstable();
    other.sort_unstable();
    assert_eq!(one, other);
}

#[test]
fn each_item_is_seen_once_and_the_order_stays() {
    check_all!(sees_each_once);
}

fn sees_each_once<O: Order<u32>>(name: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    for _ in 0..3 {
        assert_same(visited(&queue), &expected);
        let stats = queue.stats();
        assert_eq!((stats.held, stats.aborted), (0, 50), "{name}");
        stats.check().unwrap();
    }
    assert_eq!(drain(&queue), expected, "{name}");
}

#[test]
fn of_serial_keys_the_first_items_are_seen() {
    let queues = [(); 2].map(|()| {
        let queue = Queue::builder().fair_by(|item| item % 17).serial().build();
        queue.handle().push_batch(0..ITEMS).unwrap();
        assert_eq!(queue.pop(), Ok(0));
        queue
    });
    let mut handle = queues[0].handle();
    let tx = handle.begin();
    assert_eq!(tx.pop().map(|item| *item), Ok(1));
    let seen = visited(&queues[0]);
    assert_same(seen, &(2..18).collect::<Vec<_>>());
    tx.abort();
    assert_eq!(drain(&queues[0]), drain(&queues[1]));
}

#[test]
fn other_consumers_pop_during_a_visit() {
    check_all!(pops_meanwhile);
}

fn pops_meanwhile<O: Order<u32> + Unleased>(name: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    let mut handle = queue.handle();
    let mut popped = Vec::new();
    let mut seen = HashSet::new();
    queue.peek_each(|item| {
        assert!(seen.insert(*item), "{name}");
        if seen.len() == 1 {
            let tx = handle.begin();
            popped.extend(tx.pop_batch(MANY).map(|item| *item));
            tx.commit();
            popped.push(queue.pop().unwrap());
            queue.stats().check().unwrap();
        }
        assert!(queue.stats().held < MANY as u64);
        assert!(!popped.contains(item), "{name}");
    });
    assert_eq!(popped.len(), MANY + 1, "{name}");
    popped.extend(drain(&queue));
    assert_same(popped, &expected);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn pops_beyond_set_aside_items_keep_the_order() {
    check_all!(pops_in_order);
}

fn pops_in_order<O: Order<u32> + Unleased>(name: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    let mut handle = queue.handle();
    let mut first = true;
    queue.peek_each(|_| {
        if mem::take(&mut first) {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(MANY).len(), MANY);
            tx.commit();
        }
    });
    // The other items are in the same order as before, except that keys take turns.
    let rest = drain(&queue);
    assert_eq!(rest.len(), expected.len() - MANY);
    if name == "one key"
        || name == "priorities"
        || name == "with ageing"
        || name.starts_with("last")
    {
        let mut left = expected.iter();
        assert!(
            rest.iter().all(|item| left.any(|other| other == item)),
            "{name}"
        );
    }
}

#[test]
fn nothing_is_lost_when_the_visitor_panics() {
    check_all!(panics_meanwhile);
}

fn panics_meanwhile<O: Order<u32>>(name: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    for at in [0, 31, 32, 500] {
        let mut seen = 0;
        assert!(panics(|| queue.peek_each(|_| {
            assert!(seen != at, "the visitor fails");
            seen += 1;
        })));
        let stats = queue.stats();
        assert_eq!((stats.held, stats.aborted), (0, 50), "{name}");
        stats.check().unwrap();
    }
    assert_eq!(drain(&queue), expected, "{name}");
}

#[test]
fn two_visits_never_share_an_item() {
    check_all!(visits_twice);
}

fn visits_twice<O: Order<u32>>(name: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    let mut seen = 0;
    queue.peek_each(|item| {
        seen += 1;
        if seen % MANY == 1 {
            let others = visited(&queue);
            assert!(!others.contains(item), "{name}");
            assert!(others.len() > expected.len() - MANY, "{name}");
        }
    });
    assert_eq!(drain(&queue), expected, "{name}");
}

#[test]
fn a_closed_queue_is_not_drained_during_a_visit() {
    a_pending_pop_ends_after_the_visit(&FairQueue::by(|item: &u32| *item));
    let serial = Queue::builder().fair_by(|item: &u32| *item).serial();
    a_pending_pop_ends_after_the_visit(&serial.build());
    a_pending_pop_ends_after_the_visit(&PriorityQueue::by_priority());
    a_pending_pop_ends_after_the_visit(&Queue::builder().lifo().build());
}

fn a_pending_pop_ends_after_the_visit<O: Order<u32>>(queue: &Queue<u32, O>) {
    queue.push(7).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut tasks = [Task::new(a.pop_async()), Task::new(b.pop_async())];
    queue.peek_each(|item| {
        assert_eq!(*item, 7);
        queue.close();
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert!(queue.is_empty());
        tasks.iter_mut().for_each(Task::assert_waits);
    });
    assert!(tasks[0].was_woken());
    assert_eq!(tasks[0].output(), Ok(7));
    assert!(tasks[1].was_woken());
    assert_eq!(tasks[1].output(), Err(PopError::Closed));
}

/// The items are not `Sync`.
#[test]
fn visited_items_cannot_be_popped() {
    let queue = PriorityQueue::by_priority();
    for item in 0..ITEMS {
        queue.push(Cell::new(item)).unwrap();
    }
    let sum: u32 = thread::scope(|scope| {
        let visits = [(); 3].map(|()| {
            scope.spawn(|| {
                queue.peek_each(|item| item.set(item.get() + ITEMS));
            })
        });
        let popped = scope.spawn(|| (0..100).map_while(|_| queue.pop().ok()).count());
        for visit in visits {
            visit.join().unwrap();
        }
        u32::try_from(popped.join().unwrap()).unwrap()
    });
    let rest: Vec<_> = drain(&queue).into_iter().map(Cell::into_inner).collect();
    assert_eq!(sum + u32::try_from(rest.len()).unwrap(), ITEMS);
    assert!(rest
        .windows(2)
        .all(|pair| pair[0] % ITEMS < pair[1] % ITEMS));
}

/// During concurrent pops and aborts, a visit sees only existing items, and loses none.
#[test]
fn beside_workers() {
    check_all!(works_meanwhile);
}

fn works_meanwhile<O: Order<u32> + Unleased>(_: &str, make: &dyn Fn() -> Queue<u32, O>) {
    let (queue, expected) = (make(), drain(&make()));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..3 {
            let (queue, stop) = (&queue, &stop);
            scope.spawn(move || {
                let mut handle = queue.handle();
                while !stop.load(Ordering::Relaxed) {
                    let tx = handle.begin();
                    let held: Vec<_> = tx.pop_batch(5).map(|item| *item).collect();
                    if worker == 0 {
                        for item in held {
                            tx.push(item).unwrap();
                        }
                        tx.commit();
                    }
                }
            });
        }
        for _ in 0..20 {
            queue.peek_each(|item| assert!(expected.contains(item)));
        }
        stop.store(true, Ordering::Relaxed);
    });
    queue.stats().check().unwrap();
    assert_same(drain(&queue), &expected);
    assert_at_rest(&queue, 0, 0);
}
