//! Waits at queues without a handle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::futures::{block_on, woken, Task};
use crate::common::{assert_at_rest, ends};
use requeue::{ManualClock, Order, PopError, PushError, Queue};

/// Runs a test on a queue of each order, bounded to two items.
macro_rules! each_order {
    ($test:ident) => {
        $test(&Queue::bounded(2));
        $test(
            &Queue::builder()
                .fair_by(|item: &u32| item % 2)
                .capacity(2)
                .build(),
        );
        $test(&Queue::builder().by_priority().capacity(2).build());
    };
}

type Wait<O> = fn(&Queue<u32, O>) -> Option<u32>;

#[test]
fn a_push_wakes_waiters_of_all_forms() {
    fn test<O: Order<u32> + Send + 'static>(queue: &Queue<u32, O>)
    where
        Queue<u32, O>: Send + Sync,
    {
        let forms: [Wait<O>; 7] = [
            |queue| queue.pop_blocking().ok(),
            |queue| queue.pop_timeout(Duration::MAX).ok(),
            |queue| block_on(queue.pop_async()).ok(),
            |queue| {
                let mut items = Vec::new();
                queue.pop_batch_blocking(1, 1, &mut items);
                items.pop()
            },
            |queue| {
                let mut items = Vec::new();
                queue.pop_batch_timeout(1, 1, &mut items, Duration::MAX);
                items.pop()
            },
            |queue| {
                let mut items = Vec::new();
                block_on(queue.pop_batch_async(1, 1, &mut items));
                items.pop()
            },
            |queue| queue.iter().next(),
        ];
        for pop in forms {
            let queue = queue.clone();
            ends(move || {
                thread::scope(|scope| {
                    let waiter = scope.spawn(|| pop(&queue));
                    while queue.stats().waiting == 0 {
                        thread::yield_now();
                    }
                    queue.push(5).unwrap();
                    assert_eq!(waiter.join().unwrap(), Some(5));
                });
                assert_at_rest(&queue, 0, 0);
                assert_eq!(queue.stats().waiting, 0);
            });
        }
    }
    each_order!(test);
}

#[test]
fn a_pop_wakes_waiters_for_room_of_all_forms() {
    fn test<O: Order<u32> + Send + 'static>(queue: &Queue<u32, O>)
    where
        Queue<u32, O>: Send + Sync,
    {
        let forms: [fn(&Queue<u32, O>); 5] = [
            |queue| queue.push_blocking(3).unwrap(),
            |queue| queue.push_timeout(3, Duration::MAX).unwrap(),
            |queue| block_on(queue.push_async(3)).unwrap(),
            |queue| assert_eq!(queue.push_batch_blocking([3]), Ok(1)),
            |queue| assert_eq!(block_on(queue.push_batch_async([3])), Ok(1)),
        ];
        for push in forms {
            let queue = queue.clone();
            ends(move || {
                queue.push_batch([1, 2]).unwrap();
                let popped = AtomicBool::new(false);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        push(&queue);
                        assert!(popped.load(Ordering::SeqCst), "there was no room before");
                    });
                    thread::yield_now();
                    popped.store(true, Ordering::SeqCst);
                    queue.pop().unwrap();
                });
                assert!(queue.is_full());
                assert_eq!(queue.clear(), 2);
                assert_at_rest(&queue, 0, 0);
            });
        }
    }
    each_order!(test);
}

#[test]
fn tasks_are_woken_in_their_order() {
    let queue = Queue::unbounded();
    let mut tasks: Vec<_> = (0..3).map(|_| Task::waiting(queue.pop_async())).collect();
    queue.push(1).unwrap();
    assert_eq!(woken(&tasks), [0]);
    assert_eq!(tasks[0].output(), Ok(1));
    queue.push_batch([2, 3]).unwrap();
    assert_eq!(woken(&tasks), [0, 1, 2]);
    assert_eq!((tasks[1].output(), tasks[2].output()), (Ok(2), Ok(3)));
}

#[test]
fn a_dropped_pop_leaves_the_wait_queue_and_passes_its_wake_up_on() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        let first = Task::waiting(queue.pop_async());
        let second = Task::waiting(queue.pop_async());
        let mut third = Task::waiting(queue.pop_async());
        drop(first); // before it was woken
        queue.push(1).unwrap();
        assert!(second.was_woken() && !third.was_woken());
        drop(second); // after it was woken
        assert!(third.was_woken());
        assert_eq!(third.output(), Ok(1));
        assert_eq!(queue.stats().waiting, 0);
        assert_at_rest(queue, 0, 0);
    }
    each_order!(test);
}

#[test]
fn a_dropped_push_pushes_nothing_and_leaves_the_wait_queue() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        queue.push_batch([1, 2]).unwrap();
        let first = Task::waiting(queue.push_async(3));
        let second = Task::waiting(queue.push_batch_async([4, 5]));
        let mut third = Task::waiting(queue.push_async(6));
        drop(first);
        queue.pop().unwrap();
        assert!(second.was_woken() || third.was_woken());
        drop(second);
        assert!(third.was_woken());
        assert_eq!(third.output(), Ok(()));
        assert!(queue.is_full());
        let mut left: Vec<_> = queue.drain().collect();
        left.sort_unstable();
        assert_eq!(left, [2, 6]);
        assert_at_rest(queue, 0, 0);
    }
    each_order!(test);
}

#[test]
fn a_batch_gathers_room() {
    let queue = Queue::bounded(2);
    queue.push_batch([1, 2]).unwrap();
    let mut batch = Task::waiting(queue.push_batch_async([3, 4]));
    queue.pop().unwrap();
    batch.assert_waits();
    assert!(queue.push(9).is_err(), "that room is the batch's");
    queue.pop().unwrap();
    assert_eq!(batch.output(), Ok(2));
    assert_eq!(queue.drain().collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_batch_that_gives_up_returns_its_gathered_permits() {
    let queue = Queue::bounded(2);
    queue.push_batch([1, 2]).unwrap();
    let mut batch = Task::waiting(queue.push_batch_async([3, 4]));
    queue.pop().unwrap();
    batch.assert_waits();
    drop(batch);
    queue.push(9).unwrap();
    let mut left: Vec<_> = queue.drain().collect();
    left.sort_unstable();
    assert_eq!(left, [2, 9]);
}

#[test]
fn futures_outlive_the_queue_they_came_from() {
    let queue = Queue::bounded(1);
    let mut handle = queue.handle();
    let (pop, batch) = (queue.pop_async(), queue.push_batch_async([1]));
    let push = queue.push_async(2);
    drop(queue);
    assert_eq!(block_on(batch), Ok(1));
    assert_eq!(block_on(pop), Ok(1));
    assert_eq!(block_on(push), Ok(()));
    assert_eq!(handle.pop(), Ok(2));
}

#[test]
fn the_close_wakes_all() {
    let queue = Queue::<u32>::bounded(1);
    let mut pop = Task::waiting(queue.pop_async());
    queue.close();
    assert_eq!(pop.output(), Err(PopError::Closed));
    let queue = Queue::bounded(1);
    queue.push(1).unwrap();
    let mut push = Task::waiting(queue.push_async(2));
    let mut batch = Task::waiting(queue.push_batch_async([3]));
    queue.close();
    assert_eq!(push.output(), Err(PushError::Closed(2)));
    assert_eq!(batch.output(), Err(PushError::Closed(vec![3])));
}

#[test]
fn a_due_item_wakes_a_task_without_a_handle() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    queue.push(1).unwrap();
    let (mut handle, second) = (queue.handle(), Duration::from_secs(1));
    let tx = handle.begin();
    tx.retry_after(tx.pop().unwrap(), second).unwrap();
    tx.commit();
    let mut pop = Task::waiting(queue.pop_async());
    clock.advance(second);
    assert!(pop.was_woken());
    assert_eq!(pop.output(), Ok(1));
}
