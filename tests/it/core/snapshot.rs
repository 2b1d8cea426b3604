//! Visits to all ready items.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::failing::{clocked, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{PopError, Queue};

fn visited<T: Copy>(queue: &Queue<T>) -> Vec<T> {
    let mut items = Vec::new();
    let count = queue.peek_each(|item| items.push(*item));
    assert_eq!(count, items.len());
    items
}

#[test]
fn an_empty_queue_has_nothing_to_visit() {
    let queue = Queue::<u32>::unbounded();
    assert_eq!(visited(&queue), []);
    drop(queue.handle());
    queue.close();
    assert_eq!(visited(&queue), []);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

/// A queue with six shards of 100 items each, numbered shard by shard.
fn spread() -> Queue<usize> {
    let queue = Queue::unbounded();
    (0..100).for_each(|item| queue.push(item).unwrap());
    let mut handles: Vec<_> = (0..5).map(|_| queue.handle()).collect();
    for (handle, shard) in handles.iter_mut().zip(1..) {
        let first = shard * 100;
        handle.push_batch(first..first + 100).unwrap();
    }
    queue
}

#[test]
fn at_rest_each_item_is_seen_once_in_the_order_of_its_shard() {
    let queue = spread();
    for _ in 0..3 {
        assert!(visited(&queue).into_iter().eq(0..600));
        assert_at_rest(&queue, 600, 0);
        let stats = queue.stats();
        assert_eq!((stats.committed, stats.aborted), (0, 0));
    }
}

#[test]
fn nothing_moves_and_nothing_is_counted() {
    let queue = spread();
    let mut worker = queue.handle();
    // Parts of several shards were returned, twice.
    for held in [250, 40] {
        let tx = worker.begin();
        assert_eq!(tx.pop_batch(held).len(), held);
        tx.abort();
    }
    let before = queue.stats();
    let items = visited(&queue);
    assert!(items.iter().copied().eq(0..600));
    let after = queue.stats();
    assert_eq!(before, after);
    assert_eq!(visited(&queue), items);
    let tx = worker.begin();
    let mut next = [0; 6];
    for item in tx.pop_batch(600) {
        let shard = *item / 100;
        assert_eq!(*item % 100, next[shard]);
        next[shard] += 1;
        assert!((1..=3).contains(&item.attempts()));
    }
    assert_eq!(next, [100; 6]);
    tx.abort();
}

#[test]
fn the_attempts_stay_as_they_are() {
    let queue = Queue::builder().max_attempts(2).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    assert_eq!(handle.begin().pop_batch(2).len(), 2);
    for _ in 0..5 {
        assert_eq!(visited(&queue), [1, 2, 3]);
    }
    let tx = handle.begin();
    let attempts: Vec<_> = tx.pop_batch(3).map(|item| item.attempts()).collect();
    assert_eq!(attempts, [2, 2, 1]);
    assert!(queue.dead_letters().is_empty());
}

#[test]
fn held_staged_delayed_and_dead_items_are_not_visited() {
    let (clock, builder) = clocked();
    let queue = builder.max_attempts(2).build();
    let mut handle = queue.handle();
    handle.push_batch(0..5).unwrap();
    put_off(&queue, SECOND);
    for _ in 0..2 {
        handle.begin().pop().unwrap();
    }
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    tx.push(9).unwrap();
    assert_eq!(visited(&queue), [3, 4]);
    clock.advance(SECOND);
    assert_eq!(visited(&queue), [0, 3, 4]); // due items are put at the head
    tx.commit();
    assert_eq!(visited(&queue), [0, 3, 4, 9]);
    queue.stats().check().unwrap();
}

#[test]
fn a_visitor_that_panics_moves_nothing() {
    let ledger = Ledger::new(300);
    let queue = Queue::unbounded();
    let mut items = ledger.items();
    items
        .by_ref()
        .take(100)
        .for_each(|item| queue.push(item).unwrap());
    let mut handles = [queue.handle(), queue.handle()];
    for handle in &mut handles {
        handle.push_batch(items.by_ref().take(100)).unwrap();
    }
    for at in [0, 99, 100, 150, 299] {
        let mut seen = 0;
        assert!(panics(|| queue.peek_each(|item| {
            assert_eq!(item.id, seen);
            assert!(seen != at, "the visitor fails");
            seen += 1;
        })));
        let stats = queue.stats();
        assert_eq!((stats.ready, stats.held, stats.aborted), (300, 0, 0));
    }
    let mut seen = 0;
    assert_eq!(
        queue.peek_each(|item| {
            assert_eq!(item.id, seen);
            seen += 1;
        }),
        300
    );
    assert_eq!(ledger.drops().iter().sum::<usize>(), 0);
    drop(handles);
    assert_eq!(drain(&queue).len(), 300);
    ledger.assert_each_dropped_once();
}

#[test]
fn the_visitor_may_use_the_queue() {
    let queue = filled([]);
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    queue.push(0).unwrap();
    let mut seen = Vec::new();
    let count = queue.peek_each(|item| {
        seen.push(*item);
        if *item == 1 {
            assert_eq!(queue.pop(), Ok(0)); // of another shard
            assert_eq!(queue.pop(), Err(PopError::Empty));
            assert_eq!(queue.stats().held, 2);
            queue.stats().check().unwrap();
        }
    });
    assert_eq!((seen, count), (vec![1, 2], 2));
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn waiters_are_woken_when_a_shard_is_returned() {
    for closes in [true, false] {
        let queue = filled([7]);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut tasks = [Task::new(a.pop_async()), Task::new(b.pop_async())];
        queue.peek_each(|_| {
            if closes {
                queue.close();
                assert_eq!(queue.pop(), Err(PopError::Empty));
            }
            tasks.iter_mut().for_each(Task::assert_waits);
        });
        assert!(tasks[0].was_woken());
        assert_eq!(tasks[0].output(), Ok(7));
        if closes {
            assert!(tasks[1].was_woken());
            assert_eq!(tasks[1].output(), Err(PopError::Closed));
        }
    }
}

#[test]
fn a_full_queue_stays_full() {
    let queue = Queue::bounded(3);
    queue.handle().push_batch([1, 2, 3]).unwrap();
    queue.peek_each(|_| assert!(queue.push(4).unwrap_err().is_full()));
    assert!(queue.push(4).unwrap_err().is_full());
    assert_eq!(drain(&queue), [1, 2, 3]);
    crate::common::failing::assert_room(&queue);
}

#[test]
fn a_visit_is_no_lease() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).build();
    queue.handle().push_batch([1, 2]).unwrap();
    queue.peek_each(|_| clock.advance(2 * SECOND));
    assert_eq!(queue.stats().expired, 0);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_visit_beside_a_forgotten_transaction() {
    let queue = filled(0..3);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    mem::forget(tx);
    assert_eq!(visited(&queue), [1, 2]);
    drop(handle);
    assert_eq!(visited(&queue), [0, 1, 2]);
}

/// During concurrent pops and aborts, a visit sees only existing items, and loses none.
#[test]
fn beside_workers() {
    const ITEMS: usize = 300;
    let queue = filled(0..ITEMS);
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
                    } else {
                        tx.abort();
                    }
                }
            });
        }
        for _ in 0..200 {
            queue.peek_each(|item| assert!(*item < ITEMS));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut items = visited(&queue);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..ITEMS));
    queue.stats().check().unwrap();
}

/// Puts 1,000 items into one shard.
type Fill = fn(&Queue<usize>) -> Option<requeue::Handle<usize>>;

const FILLS: [Fill; 3] = [
    |queue| {
        (0..1000).for_each(|item| queue.push(item).unwrap());
        None
    },
    |queue| {
        let mut handle = queue.handle();
        handle.push_batch(0..1000).unwrap();
        Some(handle)
    },
    |queue| {
        // Most of them were returned, by one transaction.
        let mut handle = queue.handle();
        handle.push_batch(0..1000).unwrap();
        assert_eq!(handle.begin().pop_batch(800).len(), 800);
        Some(handle)
    },
];

#[test]
fn few_items_at_a_time_are_not_there() {
    for fill in FILLS {
        let queue = Queue::unbounded();
        let _handle = fill(&queue);
        let count = queue.peek_each(|_| {
            let stats = queue.stats();
            assert!((1..=32).contains(&stats.held));
            assert_eq!(stats.ready + stats.held, 1000);
            assert!(!queue.is_empty());
        });
        assert_eq!(count, 1000);
        assert_at_rest(&queue, 1000, 0);
    }
}

#[test]
fn pops_beside_a_visit_find_the_items_in_their_order() {
    for fill in FILLS {
        let queue = Queue::unbounded();
        let _handle = fill(&queue);
        let mut other = queue.handle();
        let mut seen = Vec::new();
        queue.peek_each(|item| {
            seen.push(*item);
            if *item == 500 {
                // What was looked at before comes first.
                let tx = other.begin();
                assert!(tx.pop_batch(100).map(|item| *item).eq(0..100));
                tx.commit();
                let tx = other.begin();
                assert!(tx.pop_batch(10).map(|item| *item).eq(100..110));
                tx.abort();
            }
        });
        assert!(seen.into_iter().eq(0..1000));
        assert_eq!(drain(&queue), (100..1000).collect::<Vec<_>>());
    }
}

#[test]
fn pops_pass_over_the_items_that_are_looked_at() {
    for fill in FILLS {
        let queue = Queue::unbounded();
        let _handle = fill(&queue);
        let mut passed = Vec::new();
        let count = queue.peek_each(|item| {
            if *item == 0 {
                passed.extend([(); 3].map(|()| queue.pop().unwrap()));
            }
        });
        assert_eq!((passed, count), (vec![32, 33, 34], 997));
        let mut left: Vec<_> = (0..1000).collect();
        left.drain(32..35);
        assert_eq!(drain(&queue), left);
    }
}

#[test]
fn visits_at_the_same_time_find_other_items() {
    for fill in FILLS {
        let queue = Queue::unbounded();
        let _handle = fill(&queue);
        let mut inner = Vec::new();
        let count = queue.peek_each(|item| {
            if *item == 100 {
                inner = visited(&queue);
            }
        });
        // The 32 items among which 100 is are held; those behind them are where the other visit has put them.
        assert!(inner.into_iter().eq((0..96).chain(128..1000)));
        assert_eq!(count, 128);
        let mut left = drain(&queue);
        left.sort_unstable();
        assert!(left.into_iter().eq(0..1000));
    }
}
