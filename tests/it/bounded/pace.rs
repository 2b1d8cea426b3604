//! Queues with a rate limit.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::failing::{fail, failures, INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops, next_output, poppers};
use crate::common::{assert_at_rest, ends};
use requeue::{commit_all, pop_any, Builder, ManualClock, Pace, PopError, Queue, Workers};

const NOT_NOW: Result<u32, PopError> = Err(PopError::Empty);

pub(super) fn builder(pace: Pace) -> (ManualClock, Builder<u32>) {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone()).pace(pace);
    (clock, builder)
}

/// A queue with a rate limit and some items.
pub(super) fn paced(pace: Pace, items: std::ops::Range<u32>) -> (ManualClock, Queue<u32>) {
    let (clock, builder) = builder(pace);
    let queue = builder.build();
    queue.handle().push_batch(items).unwrap();
    (clock, queue)
}

/// One item per second.
fn slow(items: std::ops::Range<u32>) -> (ManualClock, Queue<u32>) {
    paced(Pace::every(SECOND), items)
}

pub(super) type Pop = fn(&Queue<u32>) -> Result<u32, PopError>;

/// The ways to pop without waiting; each commits one item.
pub(super) const POPS: [Pop; 7] = [
    |queue| queue.pop(),
    |queue| queue.handle().pop(),
    |queue| queue.handle().pop_timeout(Duration::ZERO),
    |queue| {
        let mut items = Vec::new();
        queue.handle().pop_batch(5, &mut items);
        assert!(items.len() < 2, "a batch takes one slot for each item");
        items.pop().ok_or(PopError::Empty)
    },
    |queue| queue.handle().transact(|tx| tx.pop().map(|item| *item)),
    |queue| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert!(tx.pop_batch(5).len() < 2);
        let popped = tx.commit().next();
        popped.ok_or(PopError::Empty)
    },
    |queue| {
        queue
            .handle()
            .transact(|tx| tx.peek().map(|peek| *peek.take()))
    },
];

#[test]
fn every_pop_takes_a_slot() {
    for pop in POPS {
        let (clock, queue) = slow(0..3);
        for item in 0..3 {
            assert_eq!(pop(&queue), Ok(item));
            for other in POPS {
                assert_eq!(other(&queue), NOT_NOW);
            }
            clock.advance(NEARLY);
            assert_eq!(pop(&queue), NOT_NOW);
            clock.advance(INSTANT);
        }
        assert_eq!(pop(&queue), NOT_NOW);
        assert_at_rest(&queue, 0, 0);
    }
}

#[test]
fn a_burst_goes_out_at_once() {
    let (clock, queue) = paced(Pace::rate(1, SECOND).burst(3), 0..10);
    let mut handle = queue.handle();
    let mut items = Vec::new();
    for count in [3, 0, 1, 3] {
        assert_eq!(handle.pop_batch(10, &mut items), count);
        clock.advance(
            SECOND
                * if items.len() == 4 {
                    60
                } else {
                    u32::from(count == 0)
                },
        );
    }
    assert!(items.iter().copied().eq(0..7));
}

#[test]
fn a_pop_of_an_empty_queue_takes_no_slot() {
    for pop in POPS {
        let (_, queue) = slow(0..0);
        for _ in 0..3 {
            assert_eq!(pop(&queue), NOT_NOW);
        }
        queue.push(7).unwrap();
        assert_eq!(pop(&queue), Ok(7));
    }
}

#[test]
fn a_peek_takes_no_slot() {
    let (_, queue) = slow(0..2);
    let mut handle = queue.handle();
    assert_eq!(handle.peek_with(|item| *item), Ok(0));
    let tx = handle.begin();
    drop(tx.peek().unwrap());
    assert_eq!(queue.peek_each(|_| ()), 2);
    let first = tx.peek().unwrap().take();
    assert_eq!(tx.peek().unwrap_err(), PopError::Empty);
    assert_eq!(*first, 0);
}

#[test]
fn an_aborted_start_keeps_its_interval_and_its_item_its_position() {
    for failure in failures() {
        let (clock, queue) = slow(0..2);
        let mut handle = queue.handle();
        fail(&mut handle, failure);
        assert_eq!(handle.pop(), NOT_NOW, "{failure:?}");
        clock.advance(NEARLY);
        assert_eq!(handle.pop(), NOT_NOW);
        clock.advance(INSTANT);
        assert_eq!(handle.pop(), Ok(0));
        clock.advance(SECOND);
        assert_eq!(handle.pop(), Ok(1));
    }
}

#[test]
fn the_slots_of_failed_items_of_a_burst_are_returned() {
    for failure in failures() {
        let (_, queue) = paced(Pace::every(SECOND).burst(2), 0..3);
        let mut handle = queue.handle();
        for _ in 0..5 {
            fail(&mut handle, failure);
        }
        assert_eq!((handle.pop(), handle.pop()), (Ok(0), Ok(1)), "{failure:?}");
        assert_eq!(handle.pop(), NOT_NOW);
    }
}

#[test]
fn a_retry_returns_its_slot_at_once() {
    let (_, queue) = paced(Pace::every(SECOND).burst(2), 0..4);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let first = tx.pop().unwrap();
    tx.retry(first).unwrap();
    assert_eq!(*tx.pop().unwrap(), 0);
    assert_eq!(*tx.pop().unwrap(), 1);
    assert!(tx.pop().is_err());
    tx.commit();
    assert_eq!(queue.pop(), NOT_NOW, "what is committed gives nothing back");
}

#[test]
fn tasks_are_woken_one_by_one_as_the_pace_allows() {
    for pushed_first in [true, false] {
        let (clock, queue) = slow(0..0);
        let mut handles: Vec<_> = (0..4).map(|_| queue.handle()).collect();
        queue.push(9).unwrap();
        assert_eq!(queue.pop(), Ok(9));
        if pushed_first {
            queue.handle().push_batch(0..4).unwrap();
        }
        let mut tasks = poppers(&mut handles);
        if !pushed_first {
            queue.handle().push_batch(0..4).unwrap();
        }
        for item in 0..4 {
            assert_eq!(next_output(&mut tasks), None);
            clock.advance(NEARLY);
            assert_eq!(next_output(&mut tasks), None);
            clock.advance(INSTANT);
            assert_eq!(next_output(&mut tasks), Some(item));
        }
    }
}

#[test]
fn a_waiter_at_an_empty_queue_is_not_woken_by_the_pace() {
    let (clock, queue) = slow(0..0);
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    for _ in 0..5 {
        clock.advance(SECOND);
        task.assert_waits();
    }
    assert_eq!(task.rings(), 0);
    queue.push(1).unwrap();
    assert_eq!(task.output(), Ok(1));
}

/// Some threads wait in all forms while the clock advances in steps of this length.
fn all_get_something(clock: &ManualClock, queue: &Queue<u32>, forms: usize) -> Vec<Instant> {
    let starts = Mutex::new(Vec::new());
    let begin = Barrier::new(forms + 1);
    thread::scope(|scope| {
        for (_, pop) in blocking_pops().into_iter().take(forms) {
            let (starts, begin) = (&starts, &begin);
            scope.spawn(move || {
                let mut handle = queue.handle();
                begin.wait();
                pop(&mut handle).unwrap();
                starts.lock().unwrap().push(clock.now());
            });
        }
        begin.wait();
        while starts.lock().unwrap().len() < forms {
            clock.advance(SECOND / 4);
            thread::yield_now();
        }
    });
    starts.into_inner().unwrap()
}

#[test]
fn threads_that_wait_get_all() {
    ends(|| {
        for _ in 0..10 {
            let (clock, queue) = slow(0..8);
            let begin = clock.now();
            let starts = all_get_something(&clock, &queue, 8);
            let last = starts.into_iter().max().unwrap();
            assert!(
                last >= begin + 7 * SECOND,
                "seven intervals are between eight starts"
            );
        }
    });
}

#[test]
fn a_sleeper_learns_of_another_pace() {
    for pop in async_pops() {
        let (clock, queue) = paced(Pace::every(3600 * SECOND), 0..3);
        assert_eq!(queue.pop(), Ok(0));
        let mut handle = queue.handle();
        let mut task = Task::waiting(pop(&mut handle));
        queue.set_pace(Pace::every(SECOND));
        assert!(task.was_woken());
        task.assert_waits();
        clock.advance(SECOND);
        assert_eq!(task.output(), Ok(1));
        assert_eq!(queue.pop(), NOT_NOW);
        clock.advance(SECOND);
        assert_eq!(queue.pop(), Ok(2));
    }
}

#[test]
fn a_queue_without_a_pace_may_get_one() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    let mut handle = queue.handle();
    handle.push_batch(0..4).unwrap();
    assert_eq!(handle.pop(), Ok(0));
    queue.set_pace(Pace::every(SECOND));
    assert_eq!(handle.pop(), Ok(1));
    assert_eq!(handle.pop(), NOT_NOW);
    assert!(handle.begin().pop().is_err());
    clock.advance(SECOND);
    let tx = handle.begin();
    let _held = tx.pop().unwrap();
    queue.set_pace(Pace::unlimited());
    tx.abort();
    assert_eq!((handle.pop(), handle.pop()), (Ok(2), Ok(3)));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn queues_with_one_pace_start_their_items_in_turn() {
    let pace = Pace::every(SECOND);
    let (clock, builder) = builder(pace.clone());
    let queues = [builder.clone().build(), builder.build()];
    for queue in &queues {
        queue.handle().push_batch(0..2).unwrap();
    }
    for round in 0..4 {
        let first = &queues[round % 2];
        assert!(first.pop().is_ok());
        assert!(queues.iter().all(|queue| queue.pop() == NOT_NOW));
        clock.advance(SECOND);
    }
}

#[test]
fn the_first_of_several_queues_comes_when_the_pace_allows() {
    ends(|| {
        let pace = Pace::every(SECOND);
        let (clock, builder) = builder(pace);
        let queues = [builder.clone().build(), builder.build()];
        queues[0].push(0).unwrap();
        queues[1].push(1).unwrap();
        let mut handles = queues.each_ref().map(Queue::handle);
        assert_eq!(pop_any(&mut handles), Ok((0, 0)));
        thread::scope(|scope| {
            let popped = scope.spawn(|| pop_any(&mut handles));
            clock.advance(SECOND);
            assert_eq!(popped.join().unwrap(), Ok((1, 1)));
        });
    });
}

#[test]
fn a_closed_queue_is_drained_at_its_pace() {
    let (clock, queue) = slow(0..2);
    queue.close();
    assert_eq!(queue.pop(), Ok(0));
    for pop in POPS {
        assert_eq!(pop(&queue), NOT_NOW, "something is left");
    }
    let mut handles = [queue.handle(), queue.handle()];
    let [a, b] = &mut handles;
    let mut tasks = [a, b].map(|handle| Task::waiting(handle.pop_async()));
    clock.advance(SECOND);
    assert_eq!(tasks[0].output(), Ok(1));
    assert!(tasks[1].was_woken());
    assert_eq!(tasks[1].output(), Err(PopError::Closed));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn a_commit_over_several_queues_returns_no_slots() {
    let (_, left) = paced(Pace::every(SECOND).burst(2), 0..3);
    let (_, right) = paced(Pace::every(SECOND).burst(2), 0..3);
    let (mut a, mut b) = (left.handle(), right.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!((tx_a.pop_batch(9).len(), tx_b.pop_batch(9).len()), (2, 2));
    drop(commit_all((tx_a, tx_b)));
    assert_eq!((left.pop(), right.pop()), (NOT_NOW, NOT_NOW));
    drop(a.begin());
    assert_eq!(left.pop(), NOT_NOW);
}

#[test]
fn a_pool_of_workers_keeps_the_pace() {
    ends(|| {
        let (clock, queue) = slow(0..5);
        queue.close();
        let begin = clock.now();
        let starts = Arc::new(Mutex::new(Vec::new()));
        let workers = Workers::builder(&queue).threads(3).run({
            let (starts, clock) = (Arc::clone(&starts), clock.clone());
            move |_, _| {
                starts.lock().unwrap().push(clock.now());
                Ok::<(), std::convert::Infallible>(())
            }
        });
        while starts.lock().unwrap().len() < 5 {
            clock.advance(SECOND / 2);
            thread::yield_now();
        }
        workers.join();
        let last = *starts.lock().unwrap().last().unwrap();
        assert!(last >= begin + 4 * SECOND);
        assert_at_rest(&queue, 0, 0);
    });
}
