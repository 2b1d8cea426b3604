//! Waiters that wait again and again, with entries that they keep, and the pooled handles of futures without a handle.

use crate::common::futures::Task;
use requeue::Queue;

#[test]
fn a_waiter_that_waits_again_goes_to_the_end() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    for round in 0..3 {
        // The second time its entry is still linked at the end, the third time before another one.
        for _ in 0..2 {
            let mut alone = Task::waiting(a.pop_async());
            queue.push(round).unwrap();
            assert_eq!((alone.rings(), alone.output()), (1, Ok(round)));
        }
        let mut first = Task::waiting(b.pop_async());
        let mut second = Task::waiting(a.pop_async());
        queue.push(10).unwrap();
        assert_eq!((first.rings(), second.rings()), (1, 0));
        queue.push(20).unwrap();
        assert_eq!((first.rings(), second.rings()), (1, 1));
        assert_eq!((first.output(), second.output()), (Ok(10), Ok(20)));
    }
}

#[test]
fn a_future_that_is_dropped_leaves_no_waiter_in_the_pool() {
    let queue = Queue::bounded(1);
    let first = Task::waiting(queue.pop_async());
    let mut second = Task::waiting(queue.pop_async());
    drop(first);
    queue.push(1).unwrap();
    assert_eq!((second.rings(), second.output()), (1, Ok(1)));

    queue.push(2).unwrap();
    let first = Task::waiting(queue.push_async(3));
    let mut second = Task::waiting(queue.push_async(4));
    drop(first);
    assert_eq!(queue.pop(), Ok(2));
    assert_eq!((second.rings(), second.output()), (1, Ok(())));
    assert_eq!(queue.pop(), Ok(4));
}

#[test]
fn a_push_wakes_the_next_waiter_if_a_waker_panics() {
    let queue = Queue::unbounded();
    let bomb = Task::waiting_with_bomb(queue.pop_async());
    let mut next = Task::waiting(queue.pop_async());
    let last = Task::waiting(queue.pop_async());
    queue.push(1).unwrap();
    assert_eq!((bomb.rings(), next.rings(), last.rings()), (1, 1, 0));
    assert_eq!(next.output(), Ok(1));
}
