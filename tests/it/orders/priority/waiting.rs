//! Waiters sleep until the next scheduled time.

use std::mem;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::{clocked, pushes};
use crate::common::failing::{INSTANT, NEARLY, SECOND};
use crate::common::futures::{block_on, Task};
use crate::common::waits::{async_pops, blocking_pops, next_output, poppers};
use crate::common::{assert_at_rest, ends};
use requeue::{ManualClock, PopError, PriorityQueue, PushError, Queue, Workers};

#[test]
fn a_task_is_woken_when_an_item_is_due() {
    for pop in async_pops() {
        for waits_first in [true, false] {
            let (clock, queue) = clocked();
            let plain = &queue;
            let mut handle = plain.handle();
            let mut task = Task::new(pop(&mut handle));
            if waits_first {
                task.assert_waits();
            }
            queue.after(SECOND).push(7).unwrap();
            // A waiter is woken to plan the time.
            task.assert_waits();
            let woken = task.rings();
            clock.advance(NEARLY);
            assert_eq!(task.rings(), woken);
            clock.advance(INSTANT);
            assert!(task.rings() > woken);
            assert_eq!(task.output(), Ok(7));
        }
    }
}

#[test]
fn every_blocked_pop_is_woken_when_an_item_is_due() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            for round in 0..4 {
                let (clock, queue) = clocked();
                let start = Barrier::new(2);
                let before = round % 2 == 0;
                if before {
                    queue.after(SECOND).push(7).unwrap();
                }
                let popped = thread::scope(|scope| {
                    let plain = &queue;
                    let waiter = scope.spawn(|| {
                        let mut handle = plain.handle();
                        start.wait();
                        pop(&mut handle)
                    });
                    start.wait();
                    (0..round * 40).for_each(|_| thread::yield_now());
                    if !before {
                        queue.after(SECOND).push(7).unwrap();
                    }
                    clock.advance(SECOND);
                    waiter.join().unwrap()
                });
                assert_eq!(popped, Ok(7), "{form}");
            }
        }
    });
}

#[test]
fn threads_and_tasks_wake_by_the_clock_of_the_system() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        let plain = &queue;
        let mut handle = plain.handle();
        for (_, pop) in blocking_pops() {
            queue.after(Duration::from_millis(1)).push(7).unwrap();
            assert_eq!(pop(&mut handle), Ok(7));
        }
        for pop in async_pops() {
            queue.after(Duration::from_millis(1)).push(7).unwrap();
            assert_eq!(block_on(pop(&mut handle)), Ok(7));
        }
    });
}

#[test]
fn an_earlier_time_after_a_later_one_is_kept() {
    let (clock, queue) = clocked();
    queue.after(10 * SECOND).push(1).unwrap();
    let plain = &queue;
    let mut handles = [plain.handle(), plain.handle()];
    let mut tasks = poppers(&mut handles);
    queue.after(SECOND).push(2).unwrap();
    tasks.iter_mut().for_each(Task::assert_waits);
    clock.advance(SECOND);
    assert_eq!(next_output(&mut tasks).unwrap(), 2);
    clock.advance(9 * SECOND);
    assert_eq!(next_output(&mut tasks).unwrap(), 1);
}

#[test]
fn as_many_get_something_as_items_are_due() {
    let (clock, queue) = clocked();
    let plain = &queue;
    let mut handles: Vec<_> = (0..4).map(|_| plain.handle()).collect();
    let mut tasks = poppers(&mut handles);
    for (item, seconds) in (0..).zip([1, 1, 2, 3]) {
        queue.after(seconds * SECOND).push(item).unwrap();
    }
    tasks.iter_mut().for_each(Task::assert_waits);
    for due in [vec![0, 1], vec![2], vec![3]] {
        clock.advance(SECOND);
        let mut items: Vec<_> = due
            .iter()
            .map(|_| next_output(&mut tasks).unwrap())
            .collect();
        items.sort_unstable();
        assert_eq!(items, due);
    }
}

#[test]
fn a_waiter_takes_an_item_that_arrives_before_the_due_time() {
    for pop in async_pops() {
        let (_, queue) = clocked();
        queue.after(SECOND).push(7).unwrap();
        let plain = &queue;
        let mut handle = plain.handle();
        let mut task = Task::waiting(pop(&mut handle));
        queue.priority(u16::MAX).push(8).unwrap();
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(8));
    }
}

#[test]
fn a_waiter_at_a_closed_queue_ends_when_the_last_is_cancelled() {
    for pop in async_pops() {
        let (_, queue) = clocked();
        let ticket = queue.after(SECOND).push(7).unwrap();
        let plain = &queue;
        let mut handle = plain.handle();
        let mut task = Task::waiting(pop(&mut handle));
        queue.close();
        task.assert_waits();
        let woken = task.rings();
        assert_eq!(queue.cancel(ticket), Some(7));
        assert!(task.rings() > woken);
        assert_eq!(task.output(), Err(PopError::Closed));
    }
}

#[test]
fn a_push_with_a_priority_waits_for_room() {
    let (clock, queue) = bounded();
    let due = clock.now() + SECOND;
    let mut handle = queue.handle();
    queue.push(1).unwrap();
    let mut task = Task::waiting(handle.priority(2).at(due).push_async(2));
    assert_eq!(queue.pop(), Ok(1));
    assert!(task.was_woken());
    let ticket = task.output().unwrap();
    assert_eq!(
        (queue.next_scheduled(), queue.cancel(ticket)),
        (Some(due), Some(2))
    );

    queue.push(3).unwrap();
    let mut staging = queue.handle();
    let tx = staging.begin();
    let mut task = Task::waiting(tx.priority(1).push_async(4));
    assert_eq!(queue.pop(), Ok(3));
    assert!(task.was_woken());
    let ticket = task.output().unwrap();
    drop(task);
    tx.commit();
    assert_eq!(queue.cancel(ticket), Some(4));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_push_with_a_priority_that_is_called_off_leaves_nothing() {
    let (clock, queue) = bounded();
    let due = clock.now() + SECOND;
    queue.push(1).unwrap();
    let (mut one, mut other) = (queue.handle(), queue.handle());
    drop(Task::waiting(one.priority(1).at(due).push_async(2)));
    let tx = other.begin();
    drop(Task::waiting(tx.priority(1).at(due).push_async(3)));
    tx.commit();
    assert_eq!((queue.pop(), queue.next_scheduled()), (Ok(1), None));
    assert_at_rest(&queue, 0, 0);
    one.push(4).unwrap();
    assert_eq!(other.pop(), Ok(4));
}

#[test]
fn threads_wait_for_room_for_a_push_with_a_priority() {
    ends(|| {
        let queue = Queue::builder().by_priority().capacity(1).build();
        let (mut one, mut other) = (queue.handle(), queue.handle());
        queue.push(1).unwrap();
        let mut items = thread::scope(|scope| {
            scope.spawn(|| one.priority(1).push_blocking(2).unwrap());
            scope.spawn(|| {
                let tx = other.begin();
                let long = 1000 * SECOND;
                tx.priority(1).push_timeout(3, long).unwrap();
                tx.commit();
            });
            let mut handle = queue.handle();
            [(); 3].map(|()| handle.pop_blocking().unwrap())
        });
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3]);
    });
}

#[test]
fn a_push_that_is_refused_ends_a_transaction_that_was_forgotten() {
    for (form, push) in pushes().enumerate().filter(|(form, _)| form % 3 > 0) {
        let queue = PriorityQueue::by_priority();
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        queue.close();
        assert!(push(&queue, &mut handle, 1, None, 2).is_err());
        assert_eq!(queue.len(), 1, "{form}");
    }
}

#[test]
fn workers_take_a_queue_by_priority_as_any_other() {
    let queue = PriorityQueue::by_priority();
    queue.priority(2).push(1).unwrap();
    queue.close();
    let workers = Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    assert_eq!(workers.join().done, 1);
}

#[test]
fn a_waiting_push_with_a_priority_fails_on_close() {
    let (_, queue) = bounded();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.priority(1).push_async(2));
    queue.close();
    assert!(task.was_woken());
    assert_eq!(task.output(), Err(PushError::Closed(2)));
}

/// A queue with room for one item, and its clock.
fn bounded() -> (ManualClock, PriorityQueue<u32>) {
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    (clock, builder.capacity(1).build())
}

#[test]
fn a_cancelled_item_makes_room_for_a_waiting_push() {
    let queue = Queue::builder().by_priority().capacity(1).build();
    let ticket = queue.priority(1).push(7).unwrap();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.push_async(8));
    assert_eq!(queue.cancel(ticket), Some(7));
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(()));
    assert_eq!(queue.pop(), Ok(8));
}
