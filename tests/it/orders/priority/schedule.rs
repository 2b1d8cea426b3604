//! Scheduled items.

use std::time::{Duration, Instant};

use super::{clocked, pushes};
use crate::common::failing::{assert_room, INSTANT, NEARLY, SECOND};
use crate::common::{assert_at_rest, drain};
use requeue::{PopError, PriorityQueue, Queue};

/// Checks the number of scheduled items, and the time of the first.
#[track_caller]
fn assert_scheduled(queue: &PriorityQueue<u32>, count: u64, next: Option<Instant>) {
    let stats = queue.stats();
    assert_eq!(stats.delayed, count);
    assert_eq!(queue.next_scheduled(), next);
    stats.check().unwrap();
}

#[test]
fn an_item_is_ready_when_its_time_has_come_and_not_before() {
    for push in pushes() {
        let (clock, queue) = clocked();
        let mut handle = queue.handle();
        let due = clock.now() + SECOND;
        push(&queue, &mut handle, 1, Some(due), 7).unwrap();
        assert_at_rest(&queue, 0, 0);
        assert_scheduled(&queue, 1, Some(due));
        clock.advance(NEARLY);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(handle.pop(), Err(PopError::Empty));
        assert_at_rest(&queue, 0, 0);
        clock.advance(INSTANT);
        assert_at_rest(&queue, 1, 0);
        assert_scheduled(&queue, 0, None);
        assert_eq!(handle.pop(), Ok(7));
    }
}

#[test]
fn a_push_at_or_after_a_time_has_the_default_priority() {
    let (clock, queue) = clocked();
    let default = PriorityQueue::<u32>::DEFAULT_PRIORITY;
    let mut handle = queue.handle();
    let due = clock.now() + SECOND;
    queue.after(SECOND).push(1).unwrap();
    queue.at(due).push(2).unwrap();
    handle.after(SECOND).push(3).unwrap();
    handle.at(due).push(4).unwrap();
    let tx = handle.begin();
    tx.after(SECOND).push(5).unwrap();
    tx.at(due).push(6).unwrap();
    tx.commit();
    queue.priority(default - 1).at(due).push(0).unwrap();
    queue.priority(default + 1).at(due).push(7).unwrap();
    assert_scheduled(&queue, 8, Some(due));
    clock.advance(SECOND);
    let mut items = drain(&queue);
    assert_eq!((items[0], items[7]), (0, 7));
    items.sort_unstable(); // from two shards
    assert_eq!(items, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn of_one_priority_the_earlier_time_goes_first() {
    for push in pushes() {
        let (clock, queue) = clocked();
        let mut handle = queue.handle();
        let after = |seconds: u32| Some(clock.now() + seconds * SECOND);
        let pushes = [
            (5, after(2)),
            (5, after(1)),
            (5, None),
            (5, after(1)),
            (4, after(3)),
            (6, None),
        ];
        for (item, (priority, due)) in (0..).zip(pushes) {
            push(&queue, &mut handle, priority, due, item).unwrap();
        }
        assert_at_rest(&queue, 2, 0);
        assert_scheduled(&queue, 4, after(1));
        clock.advance(3 * SECOND);
        assert_eq!(drain(&queue), [4, 2, 1, 3, 0, 5]);
    }
}

#[test]
fn due_items_are_counted_as_ready() {
    let (clock, queue) = clocked();
    for seconds in [3, 1, 2] {
        queue.after(seconds * SECOND).push(seconds).unwrap();
    }
    queue.push(0).unwrap();
    for ready in 1..=4 {
        assert_at_rest(&queue, ready, 0);
        assert_eq!(queue.stats().delayed, 4 - ready as u64);
        clock.advance(SECOND);
    }
    assert_eq!(drain(&queue), [0, 1, 2, 3]);
}

#[test]
fn overdue_items_are_ready_at_once() {
    for push in pushes() {
        let (clock, queue) = clocked();
        let mut handle = queue.handle();
        let start = clock.now();
        let long_ago =
            (0..63).map_while(|power| start.checked_sub(Duration::from_secs(1 << power)));
        let long_ago = long_ago.last().unwrap_or(start);
        clock.advance(10 * SECOND);
        push(&queue, &mut handle, 5, Some(start + 8 * SECOND), 3).unwrap();
        push(&queue, &mut handle, 5, Some(start + 5 * SECOND), 2).unwrap();
        push(&queue, &mut handle, 5, None, 0).unwrap();
        push(&queue, &mut handle, 5, Some(long_ago), 1).unwrap();
        assert_at_rest(&queue, 4, 0);
        assert_scheduled(&queue, 0, None);
        // Due since their pushes.
        assert_eq!(drain(&queue), [3, 2, 0, 1]);
    }
}

#[test]
fn due_items_are_not_overtaken_by_later_pushes() {
    for push in pushes() {
        for looks in [false, true] {
            let (clock, queue) = clocked();
            let mut handle = queue.handle();
            push(&queue, &mut handle, 5, Some(clock.now() + SECOND), 100).unwrap();
            if looks {
                assert_at_rest(&queue, 0, 0);
            }
            clock.advance(SECOND);
            let mut order = Vec::new();
            for item in 0..20 {
                push(&queue, &mut handle, 5, None, 2 * item).unwrap();
                push(&queue, &mut handle, 5, None, 2 * item + 1).unwrap();
                order.push(handle.pop().unwrap());
                clock.advance(SECOND);
            }
            order.extend(drain(&queue));
            let expected: Vec<_> = [100].into_iter().chain(0..40).collect();
            assert_eq!(order, expected);
        }
    }
}

#[test]
fn pushed_items_are_not_overtaken_by_items_due_later() {
    for push in pushes() {
        for timed in [false, true] {
            let clock = requeue::ManualClock::new();
            let builder = Queue::builder().by_priority().clock(clock.clone());
            let builder = if timed { builder.timestamps() } else { builder };
            let queue = builder.build();
            let mut handle = queue.handle();
            push(&queue, &mut handle, 5, Some(clock.now() + 2 * SECOND), 1).unwrap();
            clock.advance(SECOND);
            push(&queue, &mut handle, 5, None, 0).unwrap();
            if !timed {
                assert_at_rest(&queue, 1, 0); // otherwise its push time is unknown
            }
            clock.advance(SECOND);
            push(&queue, &mut handle, 5, None, 2).unwrap();
            assert_eq!(drain(&queue), [0, 1, 2]);
        }
    }
}

#[test]
fn returned_due_items_keep_their_order() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    queue.after(2 * SECOND).push(1).unwrap();
    queue.push(0).unwrap();
    assert_at_rest(&queue, 1, 0);
    clock.advance(2 * SECOND);
    queue.push(2).unwrap();
    for held in [[0, 1].as_slice(), &[0, 1, 2]] {
        let tx = handle.begin();
        let items: Vec<_> = tx.pop_batch(held.len()).map(|item| *item).collect();
        assert_eq!(items, held);
        tx.abort();
    }
    queue.push(3).unwrap();
    assert_eq!(drain(&queue), [0, 1, 2, 3]);
}

/// The latest possible time.
fn end_of_time(now: Instant) -> Instant {
    let steps = (0..64).rev().map(|power| Duration::from_secs(1 << power));
    steps.fold(now, |time, step| time.checked_add(step).unwrap_or(time))
}

#[test]
fn times_beyond_the_range_of_the_clock_are_clamped() {
    let (clock, queue) = clocked();
    let at = end_of_time(clock.now());
    let tickets = [
        queue.after(Duration::MAX).push(0).unwrap(),
        queue.at(at).push(1).unwrap(),
        queue.priority(1).at(at).push(2).unwrap(),
    ];
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(Duration::from_secs(60 * 60 * 24 * 365 * 100));
    assert_at_rest(&queue, 0, 0);
    assert_eq!(queue.stats().delayed, 3);
    queue.after(SECOND).push(3).unwrap();
    assert_eq!(queue.next_scheduled(), Some(clock.now() + SECOND));
    for (item, ticket) in (0..).zip(tickets) {
        assert_eq!(queue.cancel(ticket), Some(item));
    }
    assert_scheduled(&queue, 1, Some(clock.now() + SECOND));
}

#[test]
fn the_next_time_ignores_removed_items() {
    let (clock, queue) = clocked();
    assert_eq!(queue.next_scheduled(), None);
    queue.push(0).unwrap();
    assert_eq!(queue.next_scheduled(), None);
    let due = |seconds: u32| clock.now() + seconds * SECOND;
    let tickets = [3, 1, 2].map(|seconds| queue.at(due(seconds)).push(seconds).unwrap());
    assert_scheduled(&queue, 3, Some(due(1)));
    assert_eq!(queue.cancel(tickets[1]), Some(1));
    assert_scheduled(&queue, 2, Some(due(2)));
    assert!(queue.reprioritize(tickets[2], 9));
    assert_scheduled(&queue, 2, Some(due(2)));
    clock.advance(2 * SECOND);
    assert_scheduled(&queue, 1, Some(due(1)));
}

#[test]
fn a_clock_that_goes_backwards_makes_them_later() {
    let (clock, queue) = clocked();
    let start = clock.now();
    clock.advance(10 * SECOND);
    queue.after(SECOND).push(7).unwrap();
    clock.set(start);
    clock.advance(10 * SECOND);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    let tx_from = |queue: &PriorityQueue<u32>| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), 7);
        tx.abort();
    };
    tx_from(&queue);
    clock.set(start);
    // It was ready once, so it is not withdrawn again.
    assert_eq!(queue.pop(), Ok(7));
}

#[test]
fn scheduled_items_keep_their_permit_in_a_bounded_queue() {
    let clock = requeue::ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.capacity(4).build();
    let ticket = queue.after(SECOND).push(1).unwrap();
    queue.after(2 * SECOND).push(2).unwrap();
    queue.push(0).unwrap();
    queue.push(0).unwrap();
    assert!(queue.push(0).unwrap_err().is_full());
    assert!(queue.after(SECOND).push(3).unwrap_err().is_full());
    assert_eq!(queue.cancel(ticket), Some(1));
    assert_room(&queue);
    assert_eq!(drain(&queue), [0, 0, 0]);
    clock.advance(2 * SECOND);
    assert_eq!(drain(&queue), [2]);
    assert_room(&queue);
}

#[test]
fn a_closed_queue_waits_for_scheduled_items() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    queue.after(SECOND).push(7).unwrap();
    queue.close();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_eq!(handle.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    assert_eq!(handle.pop(), Ok(7));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn a_closed_queue_is_drained_when_the_last_is_cancelled() {
    let (_, queue) = clocked();
    let ticket = queue.after(SECOND).push(7).unwrap();
    queue.close();
    assert_eq!(queue.cancel(ticket), Some(7));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}
