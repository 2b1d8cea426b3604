//! Pushed items can be rescheduled, unless they are held.

use std::thread;

use super::{clocked, filled};
use crate::common::failing::{put_off, SECOND};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops};
use crate::common::{assert_at_rest, drain, ends};
use requeue::{ManualClock, PopError, Queue};

#[test]
fn rescheduled_items_are_due_at_the_new_time() {
    let (clock, queue) = clocked();
    let start = clock.now();
    let tickets = [1, 2, 3].map(|item| queue.after(item * SECOND).push(item).unwrap());
    assert!(queue.reschedule(tickets[0], start + 5 * SECOND));
    assert_eq!(queue.next_scheduled(), Some(start + 2 * SECOND));
    assert!(queue.reschedule(tickets[2], start + SECOND));
    assert_eq!(queue.next_scheduled(), Some(start + SECOND));
    assert_eq!(queue.stats().delayed, 3);
    for due in [vec![3], vec![2], vec![], vec![], vec![1]] {
        clock.advance(SECOND);
        assert_eq!(drain(&queue), due);
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_time_may_change_again_and_again() {
    let (clock, queue) = clocked();
    let ticket = queue.after(SECOND).push(7).unwrap();
    for round in 0..2000 {
        assert!(queue.reschedule(ticket, clock.now() + (round % 9 + 1) * SECOND));
        assert_eq!(queue.pop(), Err(PopError::Empty));
    }
    assert!(queue.reschedule(ticket, clock.now() + 3 * SECOND));
    clock.advance(2 * SECOND);
    assert!(queue.is_empty());
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [7]);
}

#[test]
fn ready_items_wait_for_their_new_time() {
    let (clock, queue) = clocked();
    let plain = queue.priority(1).push(1).unwrap();
    let due = queue.priority(2).at(clock.now()).push(2).unwrap();
    queue.priority(3).push(3).unwrap();
    assert_at_rest(&queue, 3, 0);
    for ticket in [plain, due] {
        assert!(queue.reschedule(ticket, clock.now() + SECOND));
    }
    assert_at_rest(&queue, 1, 0);
    assert_eq!(queue.stats().delayed, 2);
    assert_eq!(drain(&queue), [3]);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn items_not_taken_in_yet_get_their_new_time() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let now = handle.after(SECOND).push(1).unwrap();
    let later = handle.priority(1).push(2).unwrap();
    assert!(queue.reschedule(now, clock.now()));
    assert!(queue.reschedule(later, clock.now() + SECOND));
    assert_eq!(drain(&queue), [1]);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn a_time_that_has_passed_makes_ready_at_once_behind_its_equals() {
    let (clock, queue) = clocked();
    let start = clock.now();
    clock.advance(SECOND);
    let first = queue.priority(5).push(1).unwrap();
    queue.priority(5).push(2).unwrap();
    let late = queue.priority(5).at(start + 9 * SECOND).push(3).unwrap();
    queue.priority(6).push(4).unwrap();
    assert!(queue.reschedule(late, start));
    assert!(queue.reschedule(first, start));
    assert_at_rest(&queue, 4, 0);
    assert_eq!(drain(&queue), [2, 3, 1, 4]);
}

#[test]
fn an_item_keeps_its_priority_and_ages_from_its_new_time_on() {
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.age_after(SECOND).build();
    let ticket = queue.priority(5).push(1).unwrap();
    assert!(queue.reschedule(ticket, clock.now() + 4 * SECOND));
    queue.priority(7).push(2).unwrap();
    clock.advance(4 * SECOND);
    // By now the other one is equivalent to priority 3, and the first has just become ready.
    assert_eq!(drain(&queue), [2, 1]);
}

#[test]
fn items_outside_of_the_queue_cannot_be_rescheduled() {
    let (clock, queue) = clocked();
    let later = clock.now() + SECOND;
    let tickets: Vec<_> = (1..=3)
        .map(|item| queue.priority(1).push(item).unwrap())
        .collect();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    let staged = tx.priority(1).push(4).unwrap();
    assert!(!queue.reschedule(tickets[0], later)); // held
    assert!(!queue.reschedule(staged, later));
    tx.abort();
    assert!(queue.reschedule(tickets[0], clock.now())); // it was given back, and is the last now
    assert_eq!(queue.pop(), Ok(2));
    assert!(!queue.reschedule(tickets[1], later)); // gone
    put_off(&queue, SECOND);
    assert!(!queue.reschedule(tickets[2], later)); // delayed
    assert_eq!(queue.cancel(tickets[0]), Some(1));
    assert!(!queue.reschedule(tickets[0], later)); // cancelled
    let (other, _) = filled(&[1]);
    assert!(!other.reschedule(tickets[2], later));
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn a_task_that_waits_is_woken_at_the_earlier_time() {
    for pop in async_pops() {
        for delay in [0, 1] {
            let (clock, queue) = clocked();
            let ticket = queue.after(9 * SECOND).push(7).unwrap();
            let mut handle = queue.handle();
            let mut task = Task::waiting(pop(&mut handle));
            assert!(queue.reschedule(ticket, clock.now() + delay * SECOND));
            if delay > 0 {
                // The waiter is woken to plan the new time.
                assert!(task.was_woken());
                task.assert_waits();
                let woken = task.rings();
                clock.advance(SECOND);
                assert!(task.rings() > woken);
            }
            assert!(task.was_woken());
            assert_eq!(task.output(), Ok(7));
        }
    }
}

#[test]
fn a_thread_that_waits_is_woken_at_the_earlier_time() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            for round in 0..4 {
                let (clock, queue) = clocked();
                let ticket = queue.after(9 * SECOND).push(7).unwrap();
                let popped = thread::scope(|scope| {
                    let waiter = scope.spawn(|| pop(&mut queue.handle()));
                    (0..round * 40).for_each(|_| thread::yield_now());
                    assert!(queue.reschedule(ticket, clock.now() + SECOND));
                    clock.advance(SECOND);
                    waiter.join().unwrap()
                });
                assert_eq!(popped, Ok(7), "{form}");
            }
        }
    });
}

#[test]
fn a_closed_queue_waits_for_the_new_time() {
    let (clock, queue) = clocked();
    let ticket = queue.priority(1).push(7).unwrap();
    queue.close();
    assert!(queue.reschedule(ticket, clock.now() + SECOND));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(7));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}
