//! Waiters that leave the wait queue and come back: their place is a new one.

use crate::common::futures::{all_rings, Task};
use crate::common::waits::{async_pops, ASYNC_PUSHES};
use requeue::Queue;

#[test]
fn a_waiter_that_comes_back_is_the_last() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        let mut second = Task::waiting(pop(&mut b));
        queue.push(1).unwrap();
        assert_eq!(first.output(), Ok(1));
        drop(first);
        let mut again = Task::waiting(pop(&mut a));
        queue.push(2).unwrap();
        assert_eq!((second.rings(), again.rings()), (1, 0));
        assert_eq!(second.output(), Ok(2));
        queue.push(3).unwrap();
        assert_eq!((again.rings(), again.output()), (1, Ok(3)));
    }
}

#[test]
fn a_pusher_that_comes_back_is_the_last() {
    // A batch that gathers is also woken when it becomes the first.
    for push in [ASYNC_PUSHES[0], ASYNC_PUSHES[2]] {
        let queue = Queue::bounded(1);
        queue.push(0).unwrap();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(push(&mut a, 1));
        let mut second = Task::waiting(push(&mut b, 2));
        queue.pop().unwrap();
        assert_eq!(first.output(), Ok(()));
        drop(first);
        let mut again = Task::waiting(push(&mut a, 3));
        queue.pop().unwrap();
        assert_eq!((second.rings(), again.rings()), (1, 0));
        assert_eq!(second.output(), Ok(()));
        queue.pop().unwrap();
        assert_eq!((again.rings(), again.output()), (1, Ok(())));
    }
}

#[test]
fn frequent_returns_keep_nobody_waiting() {
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..8).map(|_| queue.handle()).collect();
    for round in 0..100 {
        let mut tasks: Vec<_> = handles
            .iter_mut()
            .map(|handle| Task::waiting(handle.pop_async()))
            .collect();
        // Some leave in vain, the others with an item; the order of both changes from round to round.
        tasks.rotate_left(round % 8);
        tasks.truncate(8 - round % 3);
        queue.handle().push_batch(0..tasks.len()).unwrap();
        assert_eq!(all_rings(&tasks), tasks.len());
        for task in &mut tasks {
            task.output().unwrap();
        }
        assert!(queue.is_empty());
    }
}

#[test]
fn a_batch_is_told_when_the_woken_push_before_it_has_left() {
    let queue = Queue::bounded(2);
    queue.handle().push_batch([1, 2]).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut single = Task::waiting(a.push_async(3));
    queue.pop().unwrap();
    let mut batch = Task::waiting(b.push_batch_async([4, 5]));
    assert_eq!((single.rings(), batch.rings()), (1, 0));
    assert_eq!(single.output(), Ok(()));
    assert_eq!(batch.rings(), 1);
    batch.assert_waits();
    queue.pop().unwrap();
    batch.assert_waits();
    queue.pop().unwrap();
    assert_eq!(batch.output(), Ok(2));
}

#[test]
fn a_pop_after_a_sleep_finds_a_ready_item_without_sleeping() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let [mut a, mut b, mut c] = [(); 3].map(|()| queue.handle());
        for _ in 0..2 {
            let mut task = Task::waiting(pop(&mut a));
            b.push(1).unwrap();
            assert_eq!(task.output(), Ok(1));
        }
        // In another shard, which the pop has to find.
        c.push(2).unwrap();
        let mut again = Task::new(pop(&mut a));
        assert_eq!((again.output(), again.rings()), (Ok(2), 0));
        // It does not wait any more: others are woken.
        let mut other = Task::waiting(pop(&mut b));
        c.push(3).unwrap();
        assert_eq!((other.rings(), other.output()), (1, Ok(3)));
    }
}
