//! Items that nobody holds are removed: what others see meanwhile and afterwards.

use std::mem;
use std::time::Duration;

use crate::common::failing::{clocked, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{Backoff, PopError, Queue};

#[test]
fn held_and_staged_items_are_left_alone() {
    let queue = filled(0..100);
    let (mut one, mut other) = (queue.handle(), queue.handle());
    let (holds, stages) = (one.begin(), other.begin());
    assert_eq!(holds.pop_batch(10).len(), 10);
    stages.push(100).unwrap();
    let delivery = queue.take().unwrap();
    assert_eq!(queue.retain(|item, _| *item < 20), 80);
    assert_eq!(queue.stats().held, 11);
    holds.abort();
    stages.commit();
    delivery.nack();
    let mut left = drain(&queue);
    left.sort_unstable();
    assert!(left.into_iter().eq((0..20).chain([100])));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn clear_leaves_what_is_not_ready_and_clear_all_does_not() {
    let (_clock, builder) = clocked();
    let queue = builder.paused().build();
    queue.push_batch(0..100).unwrap();
    queue.after(SECOND).push(100).unwrap();
    assert_eq!(queue.clear(), 0); // paused
    queue.resume();
    put_off(&queue, SECOND);
    assert_eq!(queue.clear(), 99);
    queue.pause();
    queue.push_batch(0..3).unwrap();
    assert_eq!(queue.clear_all(), 5);
    assert_at_rest(&queue, 0, 0);
    assert_eq!(queue.stats().committed, 104);
    assert!(queue.wait_idle_timeout(Duration::ZERO));
    assert_eq!(queue.clear_all(), 0);
}

#[test]
fn each_removed_item_is_dropped_once_and_may_use_the_queue() {
    struct Uses(Queue<Option<Uses>>, usize);
    impl Drop for Uses {
        fn drop(&mut self) {
            self.0.push(None).unwrap();
            assert!(self.0.len() < 100);
        }
    }
    let queue = Queue::unbounded();
    for nth in 0..99 {
        queue.push(Some(Uses(queue.clone(), nth))).unwrap();
    }
    let is_odd = |item: &Option<Uses>| item.as_ref().is_some_and(|item| item.1 % 2 == 1);
    assert_eq!(queue.retain(|item, _| is_odd(item)), 50);
    let ledger = Ledger::new(100);
    let tracked = filled(ledger.items());
    assert_eq!(tracked.retain(|item, _| item.id % 3 == 0), 66);
    let dropped = ledger.drops().into_iter().enumerate();
    assert!(dropped
        .clone()
        .all(|(id, drops)| drops == usize::from(id % 3 != 0)));
    drop(tracked);
    ledger.assert_each_dropped_once();
    queue.clear_all();
}

#[test]
fn a_destructor_that_panics_loses_nothing() {
    let ledger = Ledger::new(100);
    let queue = filled(ledger.items_with_bomb(40));
    assert!(panics(|| queue.retain(|item, _| item.id % 2 == 1)));
    // Up to its part the items were removed, and all of them were dropped.
    queue.stats().check().unwrap();
    assert_eq!(queue.stats().held, 0);
    let dropped = ledger.drops();
    assert!((0..64).all(|id| dropped[id] == usize::from(id % 2 == 0)));
    let left: Vec<_> = drain(&queue).into_iter().map(|item| item.id).collect();
    assert!(left
        .into_iter()
        .eq((0..64).filter(|id| id % 2 == 1).chain(64..100)));
    ledger.assert_each_dropped_once();
}

#[test]
fn the_predicate_may_use_the_queue() {
    let queue = filled(0..100);
    let mut popped = Vec::new();
    let removed = queue.retain(|item, _| {
        if *item < 100 {
            queue.push(100 + item).unwrap();
        }
        if *item == 40 {
            popped.extend(drain(&queue));
        }
        assert!(queue.len() < 200);
        item % 2 == 0
    });
    // Those before 32 are back, those of this part are not, and those behind it were popped.
    assert!(popped.contains(&30) && !popped.contains(&31) && !popped.contains(&40));
    assert!(popped.contains(&99) && popped.contains(&140));
    assert_eq!(removed, 32 + 12);
    assert_eq!(queue.stats().held, 0);
    let left = drain(&queue);
    assert!(left
        .iter()
        .copied()
        .eq((32..64).chain(141..164).filter(|item| item % 2 == 0)));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn pushes_that_wait_for_room_are_woken() {
    let queue = Queue::bounded(40);
    queue.push_batch(0..40).unwrap();
    let mut tasks: Vec<_> = (40..60)
        .map(|item| Task::new(queue.push_async(item)))
        .collect();
    tasks.iter_mut().for_each(Task::assert_waits);
    assert_eq!(queue.retain(|item, _| item % 2 == 0), 20);
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(()));
    }
    assert_at_rest(&queue, 40, 0);
    let (_clock, builder) = clocked();
    let delays = builder.capacity(2).build();
    delays.push(1).unwrap();
    put_off(&delays, SECOND);
    delays.after(SECOND).push(2).unwrap();
    assert!(delays.is_full());
    assert_eq!(delays.retain(|item, _| *item == 2), 1);
    delays.push(3).unwrap();
    assert!(delays.is_full());
    assert_eq!(delays.clear_all(), 2);
    delays.push_batch([4, 5]).unwrap();
}

#[test]
fn waits_end_when_the_last_item_is_removed() {
    for delayed in [false, true] {
        let (_clock, builder) = clocked();
        let queue = builder.build();
        queue.push(1).unwrap();
        if delayed {
            put_off(&queue, SECOND);
            queue.after(SECOND).push(2).unwrap();
        }
        let mut idle = Task::new(queue.wait_idle_async());
        idle.assert_waits();
        queue.retain(|_, _| true);
        idle.assert_waits();
        queue.retain(|_, _| {
            assert!(!queue.wait_idle_timeout(Duration::ZERO));
            false
        });
        assert!(idle.was_woken());
        idle.output();
    }
}

#[test]
fn close_now_drops_what_is_not_ready() {
    let (clock, builder) = clocked();
    let queue = builder.backoff(Backoff::fixed(SECOND)).build();
    queue.push_batch([1, 2, 3]).unwrap();
    put_off(&queue, SECOND);
    queue.after(SECOND).push(4).unwrap();
    clock.advance(SECOND); // both are due
    queue.after(SECOND).push(5).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    let mut task = Task::new(queue.pop_async());
    assert_eq!(task.output(), Ok(3));
    let mut task = Task::new(queue.pop_async());
    task.assert_waits();
    assert_eq!(queue.close_now(), 1);
    assert!(queue.is_closed());
    task.assert_waits(); // for the transaction
    tx.abort();
    task.assert_waits(); // the items are delayed
    assert_eq!(queue.close_now(), 3);
    assert!(task.was_woken());
    assert_eq!(task.output(), Err(PopError::Closed));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_closed_queue_is_not_drained_while_its_last_item_is_examined() {
    for delayed in [false, true] {
        let (_clock, builder) = clocked();
        let queue = builder.build();
        queue.push(1).unwrap();
        if delayed {
            put_off(&queue, SECOND);
        }
        queue.close();
        for keep in [true, false] {
            queue.retain(|_, _| {
                assert_eq!(queue.pop(), Err(PopError::Empty));
                keep
            });
            assert_eq!(queue.stats().delayed, u64::from(delayed && keep));
        }
        assert_eq!(queue.pop(), Err(PopError::Closed));
    }
}

#[test]
fn an_item_that_becomes_due_while_it_is_examined_is_ready_afterwards() {
    for retried in [false, true] {
        let (clock, builder) = clocked();
        let queue = builder.build();
        if retried {
            queue.push(1).unwrap();
            put_off(&queue, SECOND);
        } else {
            queue.after(SECOND).push(1).unwrap();
        }
        queue.after(2 * SECOND).push(2).unwrap();
        let mut task = Task::new(queue.pop_async());
        task.assert_waits();
        let mut first = true;
        queue.retain(|_, _| {
            if mem::take(&mut first) {
                clock.advance(SECOND);
                // A release meanwhile finds nothing that is due, and plans nothing.
                assert!(queue.is_empty());
                assert_eq!(queue.next_scheduled(), None);
            }
            true
        });
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(1));
        let mut task = Task::new(queue.pop_async());
        task.assert_waits();
        clock.advance(SECOND);
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(2));
    }
}

#[test]
fn many_delayed_items_are_examined_in_the_order_of_their_times() {
    let (clock, builder) = clocked();
    let queue = builder.build();
    let due = |item: u64| Duration::from_secs(1 + item * 7 % 101);
    for item in 0..100 {
        queue.push(item).unwrap();
        put_off(&queue, due(item));
        queue.after(due(item + 100)).push(item + 100).unwrap();
    }
    let begin = queue.now();
    for round in 0..3 {
        let mut times = Vec::new();
        queue.retain(|item, queued| {
            let at = queued.due.unwrap() - begin;
            assert_eq!(at, due(*item));
            times.push(at);
            queue.after(1000 * SECOND).push(1000).unwrap();
            assert_eq!(queue.retain(|item, _| *item < 1000), 1);
            round < 1 || item % 3 > 0
        });
        assert_eq!(times.len(), [200, 200, 133][round]);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    }
    let mut left = Vec::new();
    for _ in 0..101 {
        clock.advance(SECOND);
        left.extend(drain(&queue));
    }
    let mut expected: Vec<_> = (0..200).filter(|item| item % 3 > 0).collect();
    expected.sort_by_key(|item| due(*item));
    assert_eq!(left.len(), expected.len());
    assert!(left
        .iter()
        .map(|item| due(*item))
        .eq(expected.iter().map(|item| due(*item))));
    assert_at_rest(&queue, 0, 0);
}
