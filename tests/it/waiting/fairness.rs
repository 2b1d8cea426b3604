//! Fairness: waiters are served in FIFO order, and newcomers overtake them within bounds.

use crate::common::futures::{all_rings, woken, Task};
use crate::common::waits::{async_pops, poppers, pushers, ASYNC_PUSHES};
use requeue::{Handle, PopError, PushError, Queue};

const WAITERS: usize = 12;

fn handles(queue: &Queue<u32>, count: usize) -> Vec<Handle<u32>> {
    (0..count).map(|_| queue.handle()).collect()
}

/// A queue of capacity 1 with one item.
fn full() -> Queue<u32> {
    let queue = Queue::bounded(1);
    queue.push(0).unwrap();
    queue
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_registered() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, WAITERS);
    let mut tasks = poppers(&mut handles);
    for (item, task) in (0..).zip(&mut tasks) {
        assert!(!task.was_woken());
        queue.push(item).unwrap();
        assert_eq!((task.rings(), task.output()), (1, Ok(item)));
    }
    assert_eq!(all_rings(&tasks), WAITERS);
}

#[test]
fn pushers_are_served_in_the_order_in_which_they_registered() {
    let queue = full();
    let mut handles = handles(&queue, WAITERS);
    let mut tasks = pushers(&mut handles);
    for (item, task) in (0..).zip(&mut tasks) {
        queue.pop().unwrap();
        assert_eq!((task.was_woken(), task.output()), (true, Ok(())));
        let mut handle = queue.handle();
        assert_eq!(handle.begin().pop().as_deref(), Ok(&item));
    }
}

#[test]
fn a_batch_wakes_the_first_waiters() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, WAITERS);
    let tasks = poppers(&mut handles);
    queue.handle().push_batch(0..5).unwrap();
    assert_eq!(woken(&tasks), [0, 1, 2, 3, 4]);
    queue.handle().push_batch(0..3).unwrap();
    assert_eq!(woken(&tasks), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn returned_capacity_wakes_the_first_pushers() {
    let queue = Queue::bounded(WAITERS);
    let mut handle = queue.handle();
    handle.push_batch(0..12).unwrap();
    let mut handles = handles(&queue, WAITERS);
    let tasks = pushers(&mut handles);
    assert_eq!(handle.pop_batch(5, &mut Vec::new()), 5);
    assert_eq!(woken(&tasks), [0, 1, 2, 3, 4]);
    assert_eq!(handle.pop_batch(3, &mut Vec::new()), 3);
    assert_eq!(woken(&tasks), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Removes waiters from the wait queue: the first, the last and some in the middle.
fn thin_out<F>(tasks: &mut Vec<F>) {
    for place in [11, 7, 6, 3, 0] {
        tasks.remove(place);
    }
}

#[test]
fn cancelled_waiters_do_not_change_the_order_of_the_others() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, WAITERS);
    let mut tasks = poppers(&mut handles);
    thin_out(&mut tasks);
    assert_eq!(all_rings(&tasks), 0);
    for (item, task) in (0..).zip(&mut tasks) {
        queue.push(item).unwrap();
        assert_eq!((task.rings(), task.output()), (1, Ok(item)));
    }
}

#[test]
fn cancelled_pushers_do_not_change_the_order_of_the_others() {
    let queue = full();
    let mut handles = handles(&queue, WAITERS);
    let mut tasks = pushers(&mut handles);
    thin_out(&mut tasks);
    for task in &mut tasks {
        queue.pop().unwrap();
        assert_eq!((task.was_woken(), task.output()), (true, Ok(())));
    }
    assert_eq!(queue.pop(), Ok(10));
}

#[test]
fn a_cancelled_waiter_that_was_woken_passes_it_to_the_next_in_the_order() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 4);
    let mut tasks = poppers(&mut handles);
    queue.handle().push_batch([1, 2]).unwrap();
    assert_eq!(woken(&tasks), [0, 1]);
    tasks.remove(1);
    assert_eq!(woken(&tasks), [0, 1]);
    tasks.remove(0);
    assert_eq!(woken(&tasks), [0, 1]);
    assert_eq!(all_rings(&tasks), 2);
}

#[test]
fn a_waiter_that_is_polled_by_another_task_keeps_its_place() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut first = Task::waiting(a.pop_async());
    let second = Task::waiting(b.pop_async());
    let old = first.renew_waker();
    first.assert_waits();
    queue.push(1).unwrap();
    let rings = (old.rings(), first.rings(), second.rings());
    assert_eq!(rings, (0, 1, 0));
    assert_eq!(first.output(), Ok(1));
}

/// Wakes the task for an item that is gone when the task is polled.
#[track_caller]
fn wake_in_vain<F>(queue: &Queue<u32>, task: &mut Task<F>)
where
    F: std::future::Future<Output = Result<u32, PopError>> + Unpin,
{
    let rings = task.rings();
    queue.push(0).unwrap();
    assert_eq!(task.rings(), rings + 1);
    assert_eq!(queue.pop(), Ok(0), "a plain pop does not wait");
    task.assert_waits();
}

#[test]
fn a_waiter_that_was_woken_in_vain_keeps_its_place() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        let mut second = Task::waiting(pop(&mut b));
        for _ in 0..5 {
            wake_in_vain(&queue, &mut first);
        }
        assert!(!second.was_woken());
        queue.push(1).unwrap();
        assert_eq!(first.output(), Ok(1));
        assert!(!second.was_woken());
        queue.push(2).unwrap();
        assert_eq!((second.rings(), second.output()), (1, Ok(2)));
    }
}

#[test]
fn newcomers_queue_up_behind_a_served_waiter() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b, mut c) = (queue.handle(), queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        wake_in_vain(&queue, &mut first);
        queue.push(1).unwrap();
        let mut newcomer = Task::waiting(pop(&mut b));
        let mut later = Task::waiting(pop(&mut c));
        assert_eq!(first.output(), Ok(1));
        queue.push(2).unwrap();
        assert_eq!((newcomer.was_woken(), newcomer.output()), (true, Ok(2)));
        queue.push(3).unwrap();
        assert_eq!((later.was_woken(), later.output()), (true, Ok(3)));
    }
}

/// There are more items than the waiter takes: newcomers get the others, but not the one it was woken for.
#[test]
fn newcomers_do_not_sleep_beside_items() {
    let queue = Queue::unbounded();
    let (mut a, mut b, mut c) = (queue.handle(), queue.handle(), queue.handle());
    let mut first = Task::waiting(a.pop_async());
    wake_in_vain(&queue, &mut first);
    queue.handle().push_batch([1, 2]).unwrap();
    let mut second = Task::new(b.pop_async());
    assert!(second.output().is_ok());
    let mut third = Task::waiting(c.pop_async());
    assert!(first.output().is_ok());
    third.assert_waits();
}

#[test]
fn a_cancelled_served_waiter_lets_newcomers_pass() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        wake_in_vain(&queue, &mut first);
        queue.push(1).unwrap();
        let mut newcomer = Task::waiting(pop(&mut b));
        drop(first);
        assert_eq!((newcomer.was_woken(), newcomer.output()), (true, Ok(1)));
    }
}

/// Once the waiter has been served or has found no item, newcomers pop at once again.
#[test]
fn newcomers_do_not_queue_up_behind_waiters_that_are_not_served() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        wake_in_vain(&queue, &mut first);
        wake_in_vain(&queue, &mut first);
        queue.push(1).unwrap();
        assert_eq!(first.output(), Ok(1));
        queue.push(2).unwrap();
        assert_eq!(Task::new(pop(&mut b)).output(), Ok(2));
    }
}

/// Two calls that do not wait give way to a served waiter in vain. From then on newcomers do not leave it anything.
#[test]
fn newcomers_do_not_queue_up_behind_a_waiter_that_never_reacts() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let mut handles = handles(&queue, 4);
        let [a, b, c, d] = &mut handles[..] else {
            unreachable!()
        };
        let mut first = Task::waiting(pop(a));
        wake_in_vain(&queue, &mut first);
        queue.push(1).unwrap();
        let mut newcomer = Task::waiting(pop(b));
        assert_eq!(queue.pop(), Ok(1));
        queue.push(2).unwrap();
        assert_eq!((newcomer.rings(), newcomer.output()), (1, Ok(2)));
        queue.push(3).unwrap();
        let mut newcomer = Task::waiting(pop(c));
        assert_eq!(queue.pop(), Ok(3));
        assert_eq!(newcomer.rings(), 1, "it has not looked yet");
        newcomer.assert_waits();
        queue.push(4).unwrap();
        assert_eq!((newcomer.rings(), newcomer.output()), (2, Ok(4)));
        queue.push(5).unwrap();
        assert_eq!(Task::new(pop(d)).output(), Ok(5));
        queue.push(6).unwrap();
        assert_eq!(first.output(), Ok(6), "its wake-up is still its own");
    }
}

/// A waiter whose service has ended keeps its place, and is served again when it is woken in vain once more.
#[test]
fn a_waiter_that_reacts_late_is_served_again() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(pop(&mut a));
        wake_in_vain(&queue, &mut first);
        for item in 0..2 {
            queue.push(item).unwrap();
            assert_eq!(queue.pop(), Ok(item));
        }
        first.assert_waits();
        queue.push(7).unwrap();
        let mut newcomer = Task::waiting(pop(&mut b));
        assert_eq!(first.output(), Ok(7));
        queue.push(8).unwrap();
        assert_eq!(newcomer.output(), Ok(8));
    }
}

/// Any number of newcomers overtakes a waiter at most once.
#[test]
fn a_waiter_is_overtaken_by_newcomers_that_wait_once_at_most() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let mut waiter = Task::waiting(pop(&mut handle));
        let mut overtaken = 0;
        for item in 0..10 {
            queue.push(item).unwrap();
            let mut handle = queue.handle();
            let mut newcomer = Task::new(pop(&mut handle));
            overtaken += usize::from(newcomer.poll().is_ready());
            if waiter.poll().is_ready() {
                break;
            }
        }
        assert!(overtaken <= 1, "overtaken {overtaken} times");
    }
}

/// Wakes the task for room that is taken when the task is polled.
#[track_caller]
fn wake_pusher_in_vain<F>(queue: &Queue<u32>, task: &mut Task<F>)
where
    F: std::future::Future<Output = Result<(), PushError<u32>>> + Unpin,
{
    let rings = task.rings();
    queue.pop().unwrap();
    assert_eq!(task.rings(), rings + 1);
    assert_eq!(queue.push(0), Ok(()), "a plain push does not wait");
    task.assert_waits();
}

#[test]
fn a_pusher_that_was_woken_in_vain_keeps_its_place() {
    for push in ASYNC_PUSHES {
        let queue = full();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(push(&mut a, 1));
        let mut second = Task::waiting(push(&mut b, 2));
        for _ in 0..5 {
            wake_pusher_in_vain(&queue, &mut first);
        }
        assert!(!second.was_woken());
        queue.pop().unwrap();
        assert_eq!(first.output(), Ok(()));
        assert_eq!(queue.pop(), Ok(1));
        assert_eq!((second.was_woken(), second.output()), (true, Ok(())));
    }
}

#[test]
fn newcomers_queue_up_behind_a_served_pusher() {
    for push in ASYNC_PUSHES {
        let queue = full();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut first = Task::waiting(push(&mut a, 1));
        wake_pusher_in_vain(&queue, &mut first);
        queue.pop().unwrap();
        let mut newcomer = Task::waiting(push(&mut b, 2));
        assert_eq!(first.output(), Ok(()));
        assert_eq!(queue.pop(), Ok(1));
        assert_eq!((newcomer.was_woken(), newcomer.output()), (true, Ok(())));
        assert_eq!(queue.pop(), Ok(2));
    }
}

#[test]
fn a_pusher_is_overtaken_by_newcomers_that_wait_once_at_most() {
    for push in ASYNC_PUSHES {
        let queue = full();
        let mut handle = queue.handle();
        let mut waiter = Task::waiting(push(&mut handle, 1));
        let mut overtaken = 0;
        for _ in 0..10 {
            queue.pop().unwrap();
            let mut handle = queue.handle();
            let mut newcomer = Task::new(push(&mut handle, 2));
            overtaken += usize::from(newcomer.poll().is_ready());
            drop(newcomer);
            if waiter.poll().is_ready() {
                break;
            }
        }
        assert!(overtaken <= 1, "overtaken {overtaken} times");
    }
}
