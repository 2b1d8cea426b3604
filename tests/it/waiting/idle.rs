//! Waiting until a queue is idle.

use crate::common::futures::{block_on, Task};
use requeue::{
    commit_all, pop_any, Backoff, FairQueue, Handle, ManualClock, Order, PriorityQueue, Queue,
};
use std::mem;
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A task that waits for the queue to be idle.
fn waiting<T, O: Order<T>>(queue: &Queue<T, O>) -> Task<requeue::future::WaitIdle<T, O>> {
    Task::waiting(queue.wait_idle_async())
}

fn is_idle<T, O: Order<T>>(queue: &Queue<T, O>) -> bool {
    queue.wait_idle_timeout(Duration::ZERO)
}

/// A queue of one item, and a task that waits until it is gone.
fn with_one() -> (Queue<u32>, Task<requeue::future::WaitIdle<u32>>) {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let task = waiting(&queue);
    (queue, task)
}

#[test]
fn an_empty_queue_is_idle() {
    let queue = Queue::<u32>::unbounded();
    queue.wait_idle();
    assert!(is_idle(&queue));
    block_on(queue.wait_idle_async());
    queue.close();
    queue.wait_idle();
}

#[test]
fn every_pop_for_good_may_be_the_last() {
    type Pop = fn(&Queue<u32>);
    let pops: [Pop; 9] = [
        |queue| assert_eq!(queue.pop(), Ok(1)),
        |queue| assert_eq!(queue.handle().pop(), Ok(1)),
        |queue| assert_eq!(queue.pop_blocking(), Ok(1)),
        |queue| assert_eq!(queue.handle().pop_blocking(), Ok(1)),
        |queue| assert_eq!(queue.pop_batch(2, &mut Vec::new()), 1),
        |queue| assert_eq!(block_on(queue.pop_async()), Ok(1)),
        |queue| assert_eq!(block_on(queue.handle().pop_async()), Ok(1)),
        |queue| assert_eq!(queue.clear(), 1),
        |queue| assert_eq!(pop_any(&mut [queue.handle()]), Ok((0, 1))),
    ];
    let queues = [
        Queue::unbounded,
        || Queue::bounded(3),
        || Queue::builder().timestamps().max_held(4).build(),
    ];
    for queue in queues {
        for pop in pops {
            let queue: Queue<u32> = queue();
            queue.push(1).unwrap();
            let mut task = waiting(&queue);
            pop(&queue);
            assert!(task.was_woken());
            task.output();
        }
    }
}

#[test]
fn held_and_staged_items_keep_a_queue_from_being_idle() {
    let (queue, mut task) = with_one();
    let (mut handle, mut other) = (queue.handle(), queue.handle());
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    assert!(!is_idle(&queue));
    let staging = other.begin();
    staging.push(2).unwrap();
    drop(tx.commit());
    assert!(!is_idle(&queue) && !task.was_woken());
    staging.abort();
    assert!(task.was_woken());
    task.output();
}

#[test]
fn a_commit_wakes_if_nothing_follows() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    for number in 1..4 {
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), number);
        if number < 3 {
            tx.push(number + 1).unwrap();
        }
        assert!(!task.was_woken());
        tx.commit();
    }
    assert_eq!(task.rings(), 1);
    task.output();
}

#[test]
fn an_abort_gives_the_work_back() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _ = tx.pop().unwrap();
    tx.abort();
    assert!(!task.was_woken());
    task.assert_waits();
    handle.pop().unwrap();
    task.output();
}

#[test]
fn a_forgotten_transaction_counts_until_its_handle_goes() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _ = tx.pop().unwrap();
    mem::forget(tx);
    assert!(!is_idle(&queue));
    drop(handle);
    assert!(!is_idle(&queue));
    queue.pop().unwrap();
    task.output();
}

#[test]
fn a_dead_letter_does_not_count() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.fail(tx.pop().unwrap(), "broken").unwrap();
    assert!(task.was_woken());
    task.output();
    tx.commit();
    assert_eq!(queue.dead_letters().len(), 1);
    assert!(is_idle(&queue));
}

#[test]
fn an_item_that_dies_by_an_abort_may_be_the_last() {
    let queue = Queue::builder().max_attempts(1).build();
    queue.push(1).unwrap();
    let mut task = waiting(&queue);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _ = tx.pop().unwrap();
    tx.abort();
    assert!(task.was_woken());
    task.output();
}

#[test]
fn a_delayed_item_is_still_to_be_done() {
    let clock = ManualClock::new();
    let queue = Queue::builder()
        .clock(clock.clone())
        .backoff(Backoff::fixed(SECOND))
        .build();
    queue.push(1).unwrap();
    let mut task = waiting(&queue);
    let mut handle = queue.handle();
    assert!(handle.begin().pop().is_ok());
    assert_eq!((queue.len(), queue.stats().delayed), (0, 1));
    assert!(!is_idle(&queue) && !task.was_woken());
    clock.advance(SECOND);
    assert!(!is_idle(&queue));
    assert_eq!(handle.pop(), Ok(1));
    task.output();
}

#[test]
fn a_scheduled_item_is_still_to_be_done() {
    let clock = ManualClock::new();
    let queue: PriorityQueue<u32> = Queue::builder().clock(clock.clone()).by_priority().build();
    let later = queue.now() + SECOND;
    queue.at(later).push(1).unwrap();
    assert!(queue.is_empty() && !is_idle(&queue));
    let mut task = waiting(&queue);
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    assert!(task.was_woken());
    task.output();
}

#[test]
fn a_scheduled_item_that_is_removed_may_be_the_last() {
    let clock = ManualClock::new();
    let queue: PriorityQueue<u32> = Queue::builder().clock(clock.clone()).by_priority().build();
    let ticket = queue.at(queue.now() + SECOND).push(1).unwrap();
    let mut task = waiting(&queue);
    queue.cancel(ticket).unwrap();
    assert!(task.was_woken());
    task.output();
}

#[test]
fn a_paused_queue_with_items_is_not_idle() {
    let (queue, mut task) = with_one();
    queue.pause();
    assert!(queue.pop().is_err() && !is_idle(&queue));
    queue.resume();
    assert_eq!(queue.pop(), Ok(1));
    task.output();
    queue.pause();
    assert!(is_idle(&queue));
}

#[test]
fn every_order_can_wait() {
    let fair: FairQueue<u32, u32> = Queue::builder()
        .fair_by(|item: &u32| item % 2)
        .serial()
        .build();
    fair.push_batch(1..=4).unwrap();
    let mut task = waiting(&fair);
    let mut handle = fair.handle();
    for left in (0..4).rev() {
        let tx = handle.begin();
        let _ = tx.pop().unwrap();
        assert!(!is_idle(&fair));
        tx.commit();
        assert_eq!(task.was_woken(), left == 0);
    }
    task.output();

    let queue = PriorityQueue::by_priority();
    queue.priority(1).push(1).unwrap();
    let mut task = waiting(&queue);
    queue.handle().pop().unwrap();
    task.output();
}

#[test]
fn a_commit_over_several_queues_may_be_the_end_of_one() {
    let (from, to) = (Queue::unbounded(), Queue::unbounded());
    from.push(1).unwrap();
    let mut task = waiting(&from);
    let (mut popper, mut pusher) = (from.handle(), to.handle());
    let (pop, push) = (popper.begin(), pusher.begin());
    push.push(*pop.pop().unwrap()).unwrap();
    assert!(!is_idle(&to));
    commit_all((pop, push));
    assert!(task.was_woken());
    task.output();
    assert!(!is_idle(&to));
}

#[test]
fn an_expired_delivery_goes_back_and_is_still_to_be_done() {
    let clock = ManualClock::new();
    let queue = Queue::builder().leased(SECOND).clock(clock.clone()).build();
    queue.push(1).unwrap();
    let mut task = waiting(&queue);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _ = tx.pop().unwrap();
    clock.advance(SECOND);
    assert!(!is_idle(&queue));
    task.assert_waits();
    assert_eq!(queue.pop(), Ok(1));
    assert!(task.was_woken());
    task.output();
    drop(tx);
}

/// Without any pop, the wait for an idle queue itself notices that the last lease has expired.
#[test]
fn the_last_delivery_may_expire_and_die() {
    let clock = ManualClock::new();
    let queue = Queue::builder()
        .leased(SECOND)
        .max_attempts(1)
        .clock(clock.clone())
        .build();
    queue.push(1).unwrap();
    let mut task = waiting(&queue);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _ = tx.pop().unwrap();
    assert!(task.was_woken(), "a lease is planned");
    task.assert_waits();
    let woken = task.rings();
    clock.advance(SECOND);
    assert!(task.rings() > woken);
    task.output();
    assert_eq!(queue.dead_letters().len(), 1);
    assert!(tx.try_commit().is_err());
}

#[test]
fn a_visit_of_the_items_ends() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    assert!(!is_idle(&queue));
    drop(peek);
    queue.peek_each(|_| assert!(!is_idle(&queue)));
    tx.abort();
    assert_eq!(queue.pop(), Ok(1));
    task.output();
}

#[test]
fn all_waiters_are_woken_once() {
    let (queue, task) = with_one();
    let mut tasks = [task, waiting(&queue), waiting(&queue)];
    queue.pop().unwrap();
    for task in &mut tasks {
        assert_eq!(task.rings(), 1);
        task.output();
    }
}

#[test]
fn a_woken_waiter_that_finds_new_work_waits_again() {
    let (queue, mut task) = with_one();
    queue.pop().unwrap();
    queue.push(2).unwrap();
    task.assert_waits();
    assert_eq!(task.rings(), 1);
    queue.pop().unwrap();
    assert_eq!(task.rings(), 2);
    task.output();
}

#[test]
fn a_dropped_or_forgotten_future_does_not_affect_other_waiters() {
    let (queue, task) = with_one();
    let mut other = waiting(&queue);
    drop(task);
    let bell = waiting(&queue).forget();
    queue.pop().unwrap();
    assert_eq!(bell.rings(), 1);
    other.output();
    assert!(is_idle(&queue));
}

#[test]
fn a_panicking_waker_does_not_affect_other_waiters() {
    let (queue, mut task) = with_one();
    let _bomb = Task::waiting_with_bomb(queue.wait_idle_async());
    let mut last = waiting(&queue);
    assert_eq!(queue.pop(), Ok(1));
    task.output();
    last.output();
}

#[test]
fn a_future_outlives_its_queue() {
    let (queue, mut task) = with_one();
    let mut handle = queue.handle();
    drop(queue);
    handle.pop().unwrap();
    task.output();
}

#[test]
fn a_deadline_by_the_clock_of_the_queue() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    queue.push(1).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.wait_idle_timeout(SECOND));
        while !waiter.is_finished() {
            clock.advance(SECOND);
            thread::yield_now();
        }
        assert!(!waiter.join().unwrap());
    });
}

/// Takes a job, and commits it together with two that are less deep, down to a depth; returns whether there was a job.
type Work = fn(&Queue<u32>, &mut Handle<u32>) -> bool;

/// The jobs that follow from one of this depth.
fn follow_ups(depth: u32) -> Vec<u32> {
    vec![depth.saturating_sub(1); depth.min(1) as usize * 2]
}

fn works_by_pop(_: &Queue<u32>, handle: &mut Handle<u32>) -> bool {
    let tx = handle.begin();
    let Ok(depth) = tx.pop_blocking().map(|depth| *depth) else {
        return false;
    };
    tx.push_batch(follow_ups(depth)).unwrap();
    tx.commit();
    true
}

fn works_by_batch(_: &Queue<u32>, handle: &mut Handle<u32>) -> bool {
    let tx = handle.begin();
    let depths: Vec<u32> = tx.pop_batch_blocking(1, 3).map(|depth| *depth).collect();
    for depth in &depths {
        tx.push_batch(follow_ups(*depth)).unwrap();
    }
    tx.commit();
    !depths.is_empty()
}

fn works_by_task(_: &Queue<u32>, handle: &mut Handle<u32>) -> bool {
    let tx = handle.begin();
    let Ok(depth) = block_on(tx.pop_async()).map(|depth| *depth) else {
        return false;
    };
    tx.push_batch(follow_ups(depth)).unwrap();
    tx.commit();
    true
}

fn works_by_delivery(queue: &Queue<u32>, _: &mut Handle<u32>) -> bool {
    let Ok(job) = queue.take_blocking() else {
        return false;
    };
    let depth = *job;
    let tx = job.into_transaction();
    tx.push_batch(follow_ups(depth)).unwrap();
    tx.commit();
    true
}

/// Each job pushes two, down to a depth; the wait misses none of them, and is woken after the last one.
#[test]
fn threads_wait_for_all_that_follows() {
    let works: [Work; 4] = [
        works_by_pop,
        works_by_batch,
        works_by_task,
        works_by_delivery,
    ];
    for work in works {
        let queue: Queue<u32> = Queue::unbounded();
        let committed: Vec<u64> = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut handle = queue.handle();
                    while work(&queue, &mut handle) {}
                });
            }
            let rounds = (0..200).map(|_| {
                queue.push(3).unwrap();
                queue.wait_idle();
                queue.stats().committed
            });
            let committed = rounds.collect();
            queue.close();
            committed
        });
        assert!(committed.into_iter().eq((1..=200).map(|round| round * 15)));
    }
}

/// Pops without a transaction, by handles that are created and dropped: the last one always wakes the wait.
#[test]
fn threads_that_pop_for_good_end_the_wait() {
    let queue = Queue::unbounded();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while queue.handle().pop_blocking().is_ok() {});
        }
        for _ in 0..300 {
            queue.push_batch([1, 2]).unwrap();
            queue.wait_idle();
        }
        queue.close();
    });
}
