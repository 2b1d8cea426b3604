//! Several queues that share one capacity.

use crate::bounded::weights::weight;
use crate::common::failing::SECOND;
use crate::common::futures::Task;
use requeue::{Budget, ManualClock, Order, Queue};
use std::task::Poll;

fn assert_free<O: Order<u64>>(budget: &Budget, free: usize, queue: &Queue<u64, O>) {
    assert_eq!(budget.free(), free);
    assert_eq!(queue.is_full(), free == 0);
}

#[test]
fn queues_share_the_room_of_their_budget() {
    let budget = Budget::new(10);
    let heavy = Queue::builder().weigh(weight).budget(&budget).build();
    let counted = Queue::builder().by_priority().budget(&budget).build();
    assert_eq!((heavy.capacity(), counted.capacity()), (Some(10), Some(10)));
    heavy.push_batch([5, 3]).unwrap();
    counted.push("one").unwrap();
    counted.push("two").unwrap();
    assert!(counted.push("three").unwrap_err().is_full());
    assert_free(&budget, 0, &heavy);

    let mut worker = heavy.handle();
    let tx = worker.begin();
    assert_eq!(*tx.pop().unwrap(), 5);
    assert!(counted.push("three").unwrap_err().is_full());
    tx.push(4).unwrap();
    tx.commit();
    counted.push("three").unwrap();
    assert_free(&budget, 0, &heavy);
    // They keep a budget of their own only if they were given one.
    let own = Queue::builder().budget(&budget).capacity(1).build();
    own.push(1).unwrap();
    let clones = Queue::<u64>::builder().budget(&budget);
    assert!(clones.clone().build().push(1).is_err() && clones.build().push(1).is_err());
}

#[test]
fn room_that_one_queue_frees_wakes_a_push_to_another() {
    let budget = Budget::new(4);
    let (left, right) = (
        Queue::builder().weigh(weight).budget(&budget).build(),
        Queue::builder().lifo().budget(&budget).build(),
    );
    left.push_batch([2, 18]).unwrap();
    let mut handle = left.handle();
    let mut heavy = Task::waiting(handle.push_async(35));
    let mut light = Task::waiting(right.push_async('a'));
    assert_eq!(left.pop(), Ok(2));
    heavy.assert_waits();
    light.assert_waits();
    assert_eq!(left.pop(), Ok(18));
    assert_eq!(heavy.poll(), Poll::Ready(Ok(())));
    assert_eq!(light.poll(), Poll::Ready(Ok(())));
    assert_free(&budget, 0, &left);
}

/// What is left in a queue, wherever it is, and what waits for it.
#[test]
fn a_queue_that_is_dropped_gives_its_room_back() {
    let budget = Budget::new(20);
    let other = Queue::<u64>::builder().budget(&budget).build();
    let fill = |queue: &Queue<u64>| {
        let mut worker = queue.handle();
        worker.push_batch([1, 2, 3]).unwrap();
        queue.after(SECOND).push(1).unwrap();
        let tx = worker.begin();
        tx.pop().unwrap();
        tx.push_batch([17, 18]).unwrap();
    };
    let clock = ManualClock::new();
    let builder = || Queue::builder().clock(clock.clone()).budget(&budget);
    let (weighed, counted) = (builder().weigh(weight).build(), builder().build());
    fill(&weighed);
    assert_free(&budget, 13, &other);
    fill(&counted);
    assert_free(&budget, 9, &other);
    other.handle().push_batch(0..9).unwrap();
    let mut waits = Task::waiting(other.push_async(9));
    drop(weighed);
    assert_eq!(waits.poll(), Poll::Ready(Ok(())));
    assert_free(&budget, 6, &other);
    drop(counted);
    assert_free(&budget, 10, &other);
    drop(other);
    assert_eq!(budget.free(), budget.limit());
}

/// The plan is taken up by a waiter of its own queue, although others wait before it.
#[test]
fn a_waiter_behind_those_of_another_queue_notices_what_is_over() {
    let clock = ManualClock::new();
    let budget = Budget::new(1);
    let living = Queue::builder().ttl(SECOND).clock(clock.clone());
    let living = living.budget(&budget).build();
    let other = Queue::<u64>::builder().budget(&budget).build();
    let mut handle = living.handle();
    other.push(1).unwrap();
    let mut before = Task::waiting(other.push_async(2));
    let mut behind = Task::waiting(handle.push_async(3));
    assert_eq!(other.pop(), Ok(1));
    assert_eq!(before.poll(), Poll::Ready(Ok(())));
    assert_eq!(other.pop(), Ok(2));
    assert_eq!(behind.poll(), Poll::Ready(Ok(())));
    let mut third = Task::waiting(other.push_async(4));
    let mut fourth = Task::waiting(living.push_async(5));
    clock.advance(SECOND);
    assert_eq!(fourth.poll(), Poll::Pending); // it has freed the room, which the other one gets
    assert_eq!(third.poll(), Poll::Ready(Ok(())));
    assert_eq!(other.pop(), Ok(4));
    assert_eq!(fourth.poll(), Poll::Ready(Ok(())));
}

/// Of those that wait for room, one of its own queue has to take up a plan.
#[test]
fn a_plan_wakes_waiters_of_its_own_queue() {
    let clock = ManualClock::new();
    let budget = Budget::new(1);
    let living = Queue::builder().ttl(SECOND).clock(clock.clone());
    let living = living.budget(&budget).build();
    let other = Queue::<u64>::builder().budget(&budget).build();
    let (mut worker, mut handle) = (living.handle(), living.handle());
    worker.push(1).unwrap();
    let tx = worker.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    clock.advance(SECOND);
    assert_eq!(living.len(), 0); // nothing is planned
    let mut before = Task::waiting(other.push_async(2));
    let mut behind = Task::waiting(handle.push_async(3));
    tx.abort();
    assert!(behind.was_woken());
    assert_eq!(behind.poll(), Poll::Ready(Ok(()))); // it has found what is over
    before.assert_waits();
    assert_eq!(living.pop(), Ok(3));
    assert_eq!(before.poll(), Poll::Ready(Ok(())));
}
