//! Pops that wait while items are delayed: they are woken when an item is due.

use std::mem;
use std::sync::Barrier;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::common::ends;
use crate::common::failing::{
    clocked, clocked_with, fail, failures, put_off, INSTANT, NEARLY, SECOND,
};
use crate::common::futures::{block_on, woken, Task};
use crate::common::waits::{async_pops, blocking_pops, next_output, poppers};
use requeue::{pop_any, Backoff, Handle, PopError, Queue};

#[test]
fn a_task_is_woken_when_an_item_is_due() {
    for pop in async_pops() {
        for waits_first in [true, false] {
            let (clock, queue) = clocked_with([7]);
            let mut handle = queue.handle();
            let mut worker = queue.handle();
            let tx = worker.begin();
            let item = tx.pop().unwrap();
            let mut task = Task::new(pop(&mut handle));
            if waits_first {
                task.assert_waits();
            }
            tx.retry_after(item, SECOND).unwrap();
            // A waiter is woken to plan the delay, as the leader.
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
                let (clock, queue) = clocked_with([7]);
                put_off(&queue, SECOND);
                let start = Barrier::new(2);
                let popped = thread::scope(|scope| {
                    let waiter = scope.spawn(|| {
                        let mut handle = queue.handle();
                        start.wait();
                        pop(&mut handle)
                    });
                    start.wait();
                    (0..round * 40).for_each(|_| thread::yield_now());
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
        let queue = crate::common::filled([7]);
        let mut handle = queue.handle();
        for (_, pop) in blocking_pops() {
            put_off(&queue, Duration::from_millis(1));
            assert_eq!(pop(&mut handle), Ok(7));
            queue.push(7).unwrap();
        }
        for pop in async_pops() {
            put_off(&queue, Duration::from_millis(1));
            assert_eq!(block_on(pop(&mut handle)), Ok(7));
            queue.push(7).unwrap();
        }
    });
}

#[test]
fn every_failure_with_a_backoff_wakes_when_it_is_over() {
    for failure in failures() {
        let (clock, builder) = clocked();
        let queue = builder.backoff(Backoff::fixed(SECOND)).build();
        queue.push(7).unwrap();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut handles = [queue.handle(), queue.handle()];
        assert_eq!(b.pop(), Ok(7));
        let mut tasks = poppers(&mut handles);
        a.push(7).unwrap();
        fail(&mut b, failure);
        tasks.iter_mut().for_each(Task::assert_waits);
        clock.advance(SECOND);
        let mut outputs = tasks.iter_mut().map(Task::poll);
        assert!(outputs.any(|output| output == Poll::Ready(Ok(7))));
    }
}

#[test]
fn as_many_get_something_as_items_are_due() {
    let (clock, queue) = clocked_with(0..4);
    for delay in [1, 1, 2, 3] {
        put_off(&queue, delay * SECOND);
    }
    let mut handles: Vec<_> = (0..4).map(|_| queue.handle()).collect();
    let mut tasks = poppers(&mut handles);
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
fn a_shorter_delay_after_a_longer_one_is_kept() {
    let (clock, queue) = clocked_with([1, 2]);
    put_off(&queue, 10 * SECOND);
    let mut handles = [queue.handle(), queue.handle()];
    let mut worker = queue.handle();
    let tx = worker.begin();
    let item = tx.pop().unwrap();
    let mut tasks = poppers(&mut handles);
    tx.retry_after(item, SECOND).unwrap();
    tasks.iter_mut().for_each(Task::assert_waits);
    clock.advance(SECOND);
    assert_eq!(next_output(&mut tasks).unwrap(), 2);
    clock.advance(9 * SECOND);
    assert_eq!(next_output(&mut tasks).unwrap(), 1);
}

/// A way in which the leader stops waiting.
type Leave = fn(&Queue<u32>, Task<requeue::future::TakeAsync<'_, u32>>);

const LEAVES: [(&str, Leave); 4] = [
    ("it is dropped", |_, task| drop(task)),
    ("it was woken, and is dropped", |queue, task| {
        queue.push(1).unwrap();
        assert!(task.was_woken());
        drop(task);
        assert_eq!(queue.pop(), Ok(1));
    }),
    ("it gets something else", |queue, mut task| {
        queue.push(1).unwrap();
        assert_eq!(task.output(), Ok(1));
    }),
    (
        "it is woken in vain, and then dropped",
        |queue, mut task| {
            queue.push(1).unwrap();
            assert_eq!(queue.pop(), Ok(1));
            task.assert_waits();
            drop(task);
        },
    ),
];

#[test]
fn a_leaving_leader_hands_over() {
    for (name, leave) in LEAVES {
        for polls_between in [true, false] {
            let (clock, queue) = clocked_with([7]);
            put_off(&queue, SECOND);
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let first = Task::waiting(a.pop_async());
            let mut second = Task::waiting(b.pop_async());
            leave(&queue, first);
            if polls_between {
                second.assert_waits();
            }
            clock.advance(SECOND);
            assert!(second.was_woken(), "{name}");
            assert_eq!(second.output(), Ok(7), "{name}");
        }
    }
}

#[test]
fn a_forgotten_future_is_the_leader_until_its_handle_is_used_or_dropped() {
    type End = fn(Handle<u32>);
    let ends: [End; 2] = [drop, |mut handle| drop(handle.begin())];
    for end in ends {
        let (clock, queue) = clocked_with([7]);
        put_off(&queue, SECOND);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let _bell = Task::waiting(a.pop_async()).forget();
        let mut second = Task::waiting(b.pop_async());
        end(a);
        second.assert_waits();
        clock.advance(SECOND);
        assert_eq!(second.output(), Ok(7));
    }
}

#[test]
fn a_timeout_hands_the_time_over() {
    ends(|| {
        let (clock, queue) = clocked_with([7]);
        put_off(&queue, 2 * SECOND);
        thread::scope(|scope| {
            let first = scope.spawn(|| queue.handle().pop_timeout(SECOND));
            while queue.stats().waiting < 1 {
                thread::yield_now();
            }
            let second = scope.spawn(|| queue.handle().pop_blocking());
            while queue.stats().waiting < 2 {
                thread::yield_now();
            }
            clock.advance(SECOND);
            assert_eq!(first.join().unwrap(), Err(PopError::Empty));
            clock.advance(SECOND);
            assert_eq!(second.join().unwrap(), Ok(7));
        });
    });
}

#[test]
fn a_due_item_wins_over_a_timeout_at_the_same_time() {
    ends(|| {
        for round in 0..20 {
            let (clock, queue) = clocked_with([7]);
            put_off(&queue, SECOND);
            let popped = thread::scope(|scope| {
                let waiter = scope.spawn(|| queue.handle().pop_timeout(SECOND));
                while queue.stats().waiting < 1 {
                    thread::yield_now();
                }
                (0..round).for_each(|_| thread::yield_now());
                clock.advance(SECOND);
                waiter.join().unwrap()
            });
            assert_eq!(popped, Ok(7));
        }
    });
}

#[test]
fn a_waiter_at_a_closed_queue_gets_the_due_item_and_the_others_end() {
    for pop in async_pops() {
        let (clock, queue) = clocked_with([7]);
        put_off(&queue, SECOND);
        queue.close();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut tasks = [Task::waiting(pop(&mut a)), Task::waiting(pop(&mut b))];
        clock.advance(SECOND);
        let first = woken(&tasks)[0];
        assert_eq!(tasks[first].output(), Ok(7));
        assert_eq!(tasks[1 - first].output(), Err(PopError::Closed));
    }
}

#[test]
fn a_drain_of_a_closed_queue_waits_for_delayed_items() {
    ends(|| {
        let (clock, queue) = clocked_with(0..3);
        put_off(&queue, SECOND);
        put_off(&queue, 2 * SECOND);
        queue.close();
        let drained = thread::scope(|scope| {
            let drain = scope.spawn(|| queue.iter().collect::<Vec<_>>());
            for _ in 0..2 {
                while queue.stats().waiting < 1 {
                    thread::yield_now();
                }
                clock.advance(SECOND);
            }
            drain.join().unwrap()
        });
        assert_eq!(drained, [2, 0, 1]);
    });
}

#[test]
fn a_waiter_woken_too_early_by_the_clock_waits_on() {
    let (clock, queue) = clocked_with([7]);
    let start = queue.now();
    put_off(&queue, 2 * SECOND);
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    clock.advance(SECOND);
    clock.set(start);
    clock.advance(SECOND);
    task.assert_waits();
    clock.advance(SECOND);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(7));
}

#[test]
fn a_waiting_batch_gathers_due_items() {
    ends(|| {
        let (clock, queue) = clocked_with(0..3);
        put_off(&queue, SECOND);
        put_off(&queue, 2 * SECOND);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut items = Vec::new();
                let mut handle = queue.handle();
                handle.pop_batch_blocking(3, 5, &mut items);
                items
            });
            for _ in 0..2 {
                while queue.stats().waiting < 1 {
                    thread::yield_now();
                }
                clock.advance(SECOND);
            }
            assert_eq!(waiter.join().unwrap(), [2, 0, 1]);
        });
    });
}

#[test]
fn a_waiter_of_a_transaction_can_be_the_leader() {
    let (clock, queue) = clocked_with([7]);
    put_off(&queue, SECOND);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let first = Task::waiting(tx.pop_async());
    let mut second = Task::waiting(b.pop_async());
    mem::drop(first);
    second.assert_waits();
    clock.advance(SECOND);
    assert!(second.was_woken());
    assert_eq!(second.output(), Ok(7));
    drop(second);
    tx.abort();
}

#[test]
fn a_waiter_for_several_queues_is_woken_when_an_item_is_due() {
    ends(|| {
        let (clock, builder) = clocked();
        let queues = [builder.clone().build(), builder.build()];
        for queue in &queues {
            queue.push(7).unwrap();
            put_off(queue, SECOND);
        }
        queues[0].close();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut handles = [queues[0].handle(), queues[1].handle()];
                [(); 2].map(|()| pop_any(&mut handles).unwrap())
            });
            while queues.iter().any(|queue| queue.stats().waiting < 1) {
                thread::yield_now();
            }
            clock.advance(SECOND);
            // The time may come between the waiter's entry into the second wait queue and its attempt there.
            let mut popped = waiter.join().unwrap();
            popped.sort_unstable();
            assert_eq!(popped, [(0, 7), (1, 7)]);
        });
    });
}
