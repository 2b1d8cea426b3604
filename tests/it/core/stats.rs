//! The counts of a queue, and their invariants.

use std::mem;

use crate::common::failing::{clocked, SECOND};
use crate::common::futures::Task;
use crate::common::panics;
use requeue::{Builder, Handle, ManualClock, Order, Queue, Stats};

/// All counts, in the order of the fields, those of items first.
fn counts(stats: &Stats) -> [u64; 9] {
    [
        stats.pushed,
        stats.ready,
        stats.held,
        stats.delayed,
        stats.committed,
        stats.aborted,
        stats.expired,
        stats.dead,
        stats.waiting,
    ]
}

#[track_caller]
fn assert_counts<T, O: Order<T>>(queue: &Queue<T, O>, expected: [u64; 9]) {
    let stats = queue.stats();
    assert_eq!(counts(&stats), expected);
    stats.check().unwrap();
}

/// All actions that change a count, one after the other; each changes no other count.
#[test]
fn every_step_changes_its_counts_and_no_others() {
    let (clock, builder) = clocked();
    let queue = builder.leased(10 * SECOND).max_attempts(2).build();
    let mut a = queue.named_handle("a");
    let mut b = queue.handle();
    assert_counts(&queue, [0; 9]);
    queue.push(1).unwrap();
    a.push_batch([2, 3, 4, 5, 6]).unwrap();
    assert_counts(&queue, [6, 6, 0, 0, 0, 0, 0, 0, 0]);
    let tx = a.begin();
    tx.push(7).unwrap();
    assert_eq!(tx.pop_batch(3).len(), 3);
    assert_counts(&queue, [6, 3, 3, 0, 0, 0, 0, 0, 0]);
    drop(tx.try_commit());
    assert_counts(&queue, [7, 4, 0, 0, 3, 0, 0, 0, 0]);
    queue.pop().unwrap();
    b.pop().unwrap();
    assert_counts(&queue, [7, 2, 0, 0, 5, 0, 0, 0, 0]);
    let tx = a.begin();
    tx.push(0).unwrap();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.abort();
    assert_counts(&queue, [7, 2, 0, 0, 5, 2, 0, 0, 0]);
    let tx = a.begin();
    tx.pop().unwrap();
    tx.abort(); // its second delivery
    assert_counts(&queue, [7, 1, 0, 0, 5, 3, 0, 1, 0]);
    queue.dead_letters().requeue_all();
    assert_counts(&queue, [8, 2, 0, 0, 5, 3, 0, 1, 0]);
    queue.push(8).unwrap();
    let tx = b.begin();
    let mut items: Vec<_> = tx.pop_batch(3).collect();
    items.retain(|item| item.attempts() == 1);
    tx.retry_after(items.pop().unwrap(), 20 * SECOND).unwrap();
    assert_counts(&queue, [9, 0, 2, 1, 5, 4, 0, 1, 0]);
    tx.try_commit().unwrap();
    assert_counts(&queue, [9, 0, 0, 1, 7, 4, 0, 1, 0]);
    queue.push(9).unwrap();
    let tx = a.begin();
    tx.pop().unwrap();
    clock.advance(10 * SECOND);
    assert_counts(&queue, [10, 1, 0, 1, 7, 4, 1, 1, 0]);
    tx.abort();
    assert_counts(&queue, [10, 1, 0, 1, 7, 4, 1, 1, 0]);
    clock.advance(10 * SECOND);
    assert_counts(&queue, [10, 2, 0, 0, 7, 4, 1, 1, 0]);
    let tx = a.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    clock.advance(SECOND);
    assert_eq!(queue.recover("a", queue.now()), 0); // both become dead letters
    assert_counts(&queue, [10, 0, 0, 0, 7, 4, 3, 3, 0]);
    mem::forget(tx);
    drop(a);
    assert_counts(&queue, [10, 0, 0, 0, 7, 4, 3, 3, 0]);
    assert!(queue.dead_letters().next().is_some());
    assert_counts(&queue, [10, 0, 0, 0, 7, 4, 3, 3, 0]);
}

#[test]
fn waiters_are_counted() {
    let queue = Queue::<u32>::unbounded();
    let mut handles = [queue.handle(), queue.handle(), queue.handle()];
    let [a, b, c] = &mut handles;
    let mut first = Task::waiting(a.pop_async());
    let _second = Task::waiting(b.pop_async());
    let third = Task::waiting(c.pop_async());
    assert_eq!(queue.stats().waiting, 3);
    queue.push(1).unwrap();
    assert_eq!(queue.stats().waiting, 2);
    first.output().unwrap();
    drop(third);
    assert_eq!(queue.stats().waiting, 1);
}

#[test]
fn refused_pushes_are_not_counted() {
    let queue = Queue::bounded(1);
    let mut handle = queue.handle();
    handle.push(1).unwrap();
    assert!(handle.push(2).is_err() && queue.push(2).is_err());
    assert!(handle.push_batch([2, 3]).is_err());
    queue.close();
    assert!(handle.push(2).is_err() && queue.push(2).is_err());
    assert_counts(&queue, [1, 1, 0, 0, 0, 0, 0, 0, 0]);
    handle.pop().unwrap();
    assert!(queue.push(2).is_err());
    assert_counts(&queue, [1, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn letters_that_a_closed_queue_refuses_are_not_counted() {
    let queue = Queue::builder().max_attempts(1).build();
    queue.push(1).unwrap();
    queue.handle().begin().pop().unwrap();
    queue.close();
    for _ in 0..3 {
        assert_eq!(queue.dead_letters().requeue_all(), 0);
        assert_counts(&queue, [1, 0, 0, 0, 0, 1, 0, 1, 0]);
    }
}

#[test]
fn counts_outlive_their_handles() {
    let queue = Queue::unbounded();
    for round in 1..=20 {
        let mut handle = queue.handle();
        handle.push_batch([1, 2]).unwrap();
        handle.pop().unwrap();
        handle.begin().pop().unwrap();
        drop(handle);
        assert_counts(&queue, [2 * round, round, 0, 0, round, round, 0, 0, 0]);
    }
}

#[test]
fn a_panic_counts_as_an_abort() {
    let queue = crate::common::filled([1]);
    let mut handle = queue.handle();
    assert!(panics(|| {
        let tx = handle.begin();
        tx.pop().unwrap();
        panic!("the worker fails");
    }));
    assert_counts(&queue, [1, 1, 0, 0, 0, 1, 0, 0, 0]);
}

type Step<O> = fn(&Queue<u32, O>, &mut Handle<u32, O>);

/// Small sequences of all operations, for queues of all kinds: the invariants hold at rest.
#[test]
fn it_adds_up_after_everything() {
    let builder = Queue::builder;
    adds_up(builder);
    adds_up(|| builder().capacity(4));
    adds_up(|| builder().leased(SECOND).max_attempts(2));
    adds_up(|| builder().capacity(4).leased(SECOND).max_attempts(2));
    adds_up(|| builder().backoff(requeue::Backoff::fixed(SECOND)));
}

fn adds_up<O: Order<u32>>(builder: impl Fn() -> Builder<u32, O>) {
    let steps: [Step<O>; 9] = [
        |_, handle| _ = handle.push_batch([1, 2, 3]),
        |queue, _| _ = queue.push(4),
        |_, handle| _ = handle.pop(),
        |queue, _| _ = queue.pop(),
        |_, handle| _ = handle.begin().pop_batch(2),
        |_, handle| {
            let tx = handle.begin();
            if let Some(item) = tx.pop_batch(3).nth(1) {
                let _ = tx.retry_after(item, SECOND);
            }
            let _ = tx.push(5);
            drop(tx.try_commit());
        },
        |_, handle| {
            let tx = handle.begin();
            let _items = tx.pop_batch(2);
            mem::forget(tx);
        },
        |queue, _| _ = queue.dead_letters().requeue_all(),
        |queue, _| _ = queue.peek_each(|_| {}),
    ];
    for seed in 0..400_usize {
        let clock = ManualClock::new();
        let queue = builder().clock(clock.clone()).build();
        let mut handle = queue.handle();
        let mut choice = seed;
        for turn in 0..12 {
            choice = choice.wrapping_mul(31).wrapping_add(17 + turn);
            steps[choice / 7 % steps.len()](&queue, &mut handle);
            if choice % 4 == 0 {
                clock.advance(SECOND);
            }
            queue.stats().check().unwrap();
        }
        drop(handle);
        let stats = queue.stats();
        stats.check().unwrap();
        assert_eq!(stats.held, 0);
        if queue.capacity().is_some() {
            crate::common::failing::assert_room(&queue);
        }
    }
}
