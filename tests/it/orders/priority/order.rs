//! The next item, also after aborts.

use std::time::Duration;

use super::{clocked, filled, pushes, TRYING};
use crate::common::failing::{fail, failures, letters, put_off, SECOND};
use crate::common::{assert_at_rest, drain, panics};
use requeue::{ManualClock, PriorityQueue, PushError, Queue, Reason};

#[test]
fn the_least_priority_goes_first_and_of_equals_the_first_that_came() {
    for push in pushes() {
        let queue = PriorityQueue::by_priority();
        let mut handle = queue.handle();
        for (item, priority) in (0..).zip([3, 1, 2, 3, 1, u16::MAX, 2]) {
            push(&queue, &mut handle, priority, None, item).unwrap();
        }
        assert_at_rest(&queue, 7, 0);
        assert_eq!(drain(&queue), [1, 4, 2, 6, 0, 3, 5]);
        assert_at_rest(&queue, 0, 0);
    }
}

/// Whichever consumer took the items in, a single consumer finds them in their order afterwards.
#[test]
fn equal_priorities_are_popped_in_push_order_per_handle() {
    let queue = PriorityQueue::by_priority();
    let mut pusher = queue.handle();
    let mut consumers = [(); 4].map(|()| queue.handle());
    let mut popped = Vec::new();
    for item in (0..128).step_by(8) {
        for consumer in &mut consumers {
            pusher
                .priority(3)
                .push(item + popped.len() % 4 * 2)
                .unwrap();
            pusher
                .priority(3)
                .push(item + popped.len() % 4 * 2 + 1)
                .unwrap();
            popped.push(consumer.pop().unwrap());
        }
    }
    drop(consumers);
    popped.extend(drain(&queue));
    assert!(popped.into_iter().eq(0..128));
}

#[test]
fn a_push_without_a_priority_has_the_default_one() {
    let queue = PriorityQueue::by_priority();
    let default = PriorityQueue::<u32>::DEFAULT_PRIORITY;
    queue.priority(default + 1).push(4).unwrap();
    queue.push(1).unwrap();
    queue.handle().push(2).unwrap();
    let plain = &queue;
    plain.handle().push(3).unwrap();
    queue.priority(default - 1).push(0).unwrap();
    assert_eq!(queue.pop(), Ok(0));
    let mut defaults: Vec<_> = (0..3).map(|_| queue.pop().unwrap()).collect();
    defaults.sort_unstable(); // from several shards
    assert_eq!(defaults, [1, 2, 3]);
    assert_eq!(queue.pop(), Ok(4));
}

#[test]
fn a_handle_and_its_transactions_take_the_next_item_too() {
    let (queue, _) = filled(&[2, 1, 4, 3]);
    let mut handle = queue.handle();
    assert_eq!(handle.pop(), Ok(1));
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 0);
    let rest: Vec<_> = tx.pop_batch(5).map(|item| *item).collect();
    assert_eq!(rest, [3, 2]);
    tx.commit();
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn every_number_is_a_priority() {
    for push in pushes() {
        let queue = Queue::builder().by_priority().capacity(3).build();
        let mut handle = queue.handle();
        for (item, priority) in [(2, u16::MAX), (1, 10_000), (0, 0)] {
            push(&queue, &mut handle, priority, None, item).unwrap();
        }
        for push in TRYING {
            let refused = push(&queue, &mut handle, 0, None, 8);
            assert_eq!(refused, Err(PushError::Full(8)));
        }
        assert_eq!(drain(&queue), [0, 1, 2]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn all_priorities_come_in_their_order() {
    let queue = PriorityQueue::by_priority();
    for round in 0..2 {
        let step = 40_503; // odd: each priority once
        for push in 0..=u16::MAX {
            let priority = push.wrapping_mul(step);
            queue.priority(priority).push((priority, round)).unwrap();
        }
    }
    for priority in 0..=u16::MAX {
        for round in 0..2 {
            assert_eq!(queue.pop(), Ok((priority, round)));
        }
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn refused_items_are_returned() {
    let refusals = [
        (
            PushError::Full(7),
            "no room: the queue or the item's key is at its limit, or a batch exceeds it",
        ),
        (PushError::Closed(7), "the queue is closed"),
    ];
    for (refused, message) in refusals {
        assert_eq!(refused.to_string(), message);
        assert_eq!(refused.into_inner(), 7);
    }
    let queue = Queue::builder().by_priority().capacity(1).build();
    queue.close();
    for push in pushes() {
        let refused = push(&queue, &mut queue.handle(), 1, None, 7);
        assert_eq!(refused, Err(PushError::Closed(7)));
    }
    assert!(queue.at(queue.now()).push(7).unwrap_err().is_closed());
    assert!(queue.after(SECOND).push(7).unwrap_err().is_closed());
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn failed_items_come_first_within_their_priority() {
    for failure in failures() {
        let (queue, _) = filled(&[2, 2, 3]);
        let mut handle = queue.handle();
        let plain = &queue;
        fail(&mut plain.handle(), failure);
        queue.priority(1).push(3).unwrap();
        assert_at_rest(&queue, 4, 0);
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), 3);
        let again = tx.pop().unwrap();
        assert_eq!((*again, again.attempts()), (0, 2));
        tx.commit();
        assert_eq!(drain(&queue), [1, 2]);
        queue.stats().check().unwrap();
    }
}

#[test]
fn items_that_come_back_together_keep_their_order() {
    let (queue, _) = filled(&[2, 1, 2, 1, 3]);
    let mut handle = queue.handle();
    for round in 0..3 {
        let tx = handle.begin();
        let order: Vec<_> = tx.pop_batch(3 + round).map(|item| *item).collect();
        assert_eq!(order, [1, 3, 0, 2, 4][..3 + round]);
        tx.abort();
    }
    queue.priority(1).push(5).unwrap();
    queue.priority(2).push(6).unwrap();
    assert_eq!(drain(&queue), [1, 3, 5, 0, 2, 6, 4]);
}

#[test]
fn of_two_transactions_each_gives_back_to_its_priorities() {
    let (queue, _) = filled(&[1, 2, 1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!(tx_a.pop_batch(3).len(), 3);
    assert_eq!(*tx_b.pop().unwrap(), 3);
    tx_a.abort();
    tx_b.abort();
    drop((a, b));
    let order = drain(&queue);
    assert_eq!(order[..2], [0, 2]);
}

#[test]
fn delayed_items_keep_their_priority() {
    let (clock, queue) = clocked();
    queue.priority(3).push(1).unwrap();
    put_off(&queue, SECOND);
    queue.priority(4).push(2).unwrap();
    queue.priority(3).push(3).unwrap();
    clock.advance(SECOND);
    queue.priority(2).push(0).unwrap();
    assert_eq!(drain(&queue), [0, 1, 3, 2]);
}

fn fail_once(queue: &PriorityQueue<u32>) {
    let [failure, ..] = failures();
    fail(&mut queue.handle(), failure);
}

#[test]
fn dead_letters_are_pushed_again_with_their_priority() {
    let queue = Queue::builder().by_priority().max_attempts(1).build();
    let ticket = queue.priority(3).push(1).unwrap();
    fail_once(&queue);
    assert_at_rest(&queue, 0, 0);
    assert_eq!(queue.cancel(ticket), None);
    queue.priority(4).push(2).unwrap();
    queue.priority(2).push(0).unwrap();
    assert_eq!(queue.dead_letters().requeue_all(), 1);
    assert_eq!(queue.cancel(ticket), None);
    assert_eq!(drain(&queue), [0, 1, 2]);
    queue.priority(3).push(1).unwrap();
    fail_once(&queue);
    assert_eq!(letters(&queue), [(1, 1, Reason::Aborted)]);
}

#[test]
fn those_that_wait_for_long_get_preferred() {
    let clock = requeue::ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.age_after(SECOND).build();
    let push = |priority, item| queue.priority(priority).push(item).unwrap();
    push(10, 0);
    clock.advance(8 * SECOND);
    push(1, 1); // equivalent to priority 9 at the beginning
    clock.advance(2 * SECOND);
    push(1, 2); // to 11
    push(5, 3);
    assert_eq!(drain(&queue), [1, 0, 2, 3]);
}

#[test]
fn scheduled_items_age_from_their_due_time() {
    let clock = requeue::ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.age_after(SECOND).build();
    let later = clock.now() + 8 * SECOND;
    queue.priority(5).at(later).push(0).unwrap(); // equivalent to priority 13 at the beginning
    clock.advance(8 * SECOND);
    queue.priority(4).push(1).unwrap(); // to 12
    queue.priority(6).push(2).unwrap();
    assert_eq!(drain(&queue), [1, 0, 2]);
}

#[test]
fn ageing_in_no_time_is_refused() {
    let builder = || Queue::<u32>::builder().by_priority();
    assert!(panics(|| builder().age_after(Duration::ZERO)));
    assert!(!panics(|| builder().age_after(Duration::MAX)));
}

#[test]
fn an_item_that_is_older_than_time_itself_is_there() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().age_after(DAY);
    let queue = builder.clock(clock.clone()).build();
    clock.advance(410 * 366 * DAY);
    queue.priority(u16::MAX).push(1).unwrap();
    assert_eq!(queue.next_scheduled(), None); // takes the item in
    assert!(!queue.is_empty());
    assert_eq!(queue.pop(), Ok(1));
}
