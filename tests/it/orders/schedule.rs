//! Scheduled items, in each order.

use std::time::Duration;

use crate::common::failing::{assert_room, put_off, INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops};
use crate::common::{assert_at_rest, drain, ends};
use requeue::{commit_all, Handle, ManualClock, Order, PopError, Queue, Ticket, Unleased};

/// Calls a check with a queue of each order, whose items are pushed in the order in which they would be popped.
macro_rules! in_each_order {
    ($check:ident) => {
        let clock = ManualClock::new();
        let builder = || Queue::builder().clock(clock.clone());
        $check(&clock, || builder().build());
        $check(&clock, || builder().timestamps().capacity(64).build());
        $check(&clock, || builder().by_priority().build());
        $check(&clock, || builder().fair_by(|item| item % 3).build());
    };
}

type Push<O> = fn(&Queue<u32, O>, &mut Handle<u32, O>, Duration, u32) -> Ticket;

/// The pushes with a delay.
fn pushes<O: Order<u32>>() -> [Push<O>; 6] {
    [
        |queue, _, delay, item| queue.after(delay).push(item).unwrap(),
        |queue, _, delay, item| queue.at(queue.now() + delay).push_blocking(item).unwrap(),
        |queue, _, delay, item| queue.after(delay).push_batch([item]).unwrap()[0],
        |_, handle, delay, item| handle.after(delay).push_timeout(item, SECOND).unwrap(),
        |_, handle, delay, item| {
            let tx = handle.begin();
            let ticket = tx.after(delay).push(item).unwrap();
            assert!(tx.try_commit().is_ok());
            ticket
        },
        |_, handle, delay, item| {
            let tx = handle.begin();
            let tickets = tx.after(delay).push_batch_blocking([item]).unwrap();
            assert!(tx.try_commit().is_ok());
            tickets[0]
        },
    ]
}

#[track_caller]
fn assert_delayed<O: Order<u32>>(queue: &Queue<u32, O>, delayed: u64) {
    let stats = queue.stats();
    assert_eq!(stats.delayed, delayed);
    stats.check().unwrap();
}

fn assert_no_permit_lost<O: Order<u32>>(queue: &Queue<u32, O>) {
    queue.stats().check().unwrap();
    if queue.capacity().is_some() {
        assert_room(queue);
    }
}

fn is_ready_at_its_time<O: Order<u32>>(clock: &ManualClock, make: impl Fn() -> Queue<u32, O>) {
    for push in pushes() {
        let queue = make();
        let mut handle = queue.handle();
        push(&queue, &mut handle, SECOND, 7);
        assert_eq!(queue.next_scheduled(), Some(clock.now() + SECOND));
        assert_delayed(&queue, 1);
        clock.advance(NEARLY);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_at_rest(&queue, 0, 0);
        clock.advance(INSTANT);
        assert_at_rest(&queue, 1, 0);
        assert_delayed(&queue, 0);
        assert_eq!(queue.next_scheduled(), None);
        let tx = handle.begin();
        let item = tx.pop().unwrap();
        assert_eq!((*item, item.attempts()), (7, 1));
        drop(tx);
        let tx = handle.begin();
        assert_eq!(tx.pop().unwrap().attempts(), 2);
        assert!(tx.try_commit().is_ok());
        assert_no_permit_lost(&queue);
    }
}

#[test]
fn an_item_is_ready_at_its_time_and_not_before() {
    in_each_order!(is_ready_at_its_time);
}

fn goes_by_time<O: Order<u32>>(clock: &ManualClock, make: impl Fn() -> Queue<u32, O>) {
    for push in pushes() {
        let queue = make();
        let mut handle = queue.handle();
        for (item, seconds) in [(6, 3), (0, 1), (3, 2), (9, 3)] {
            push(&queue, &mut handle, seconds * SECOND, item);
        }
        clock.advance(2 * SECOND);
        assert_eq!(drain(&queue), [0, 3]);
        clock.advance(SECOND);
        assert_eq!(drain(&queue), [6, 9]);
    }
}

#[test]
fn items_become_ready_in_the_order_of_their_times() {
    in_each_order!(goes_by_time);
}

fn many_keep_their_order<O: Order<u32>>(clock: &ManualClock, make: impl Fn() -> Queue<u32, O>) {
    let queue = make();
    let many: Vec<u32> = (0..60).map(|item| 3 * item).collect();
    for &item in &many {
        queue.after(SECOND).push(item).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(drain(&queue), many);
}

#[test]
fn items_of_one_time_keep_their_order() {
    in_each_order!(many_keep_their_order);
    // Beyond what arrives at once.
    let (clock, queue) = clocked();
    queue.after(SECOND).push_batch(0..1_000).unwrap();
    for item in 1_000..2_000 {
        queue.after(SECOND).push(item).unwrap();
    }
    clock.advance(SECOND);
    assert!(drain(&queue).into_iter().eq(0..2_000));
}

fn clocked() -> (ManualClock, Queue<u32>) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    (clock, queue)
}

#[test]
fn a_push_whose_time_has_come_is_a_plain_push() {
    let (clock, queue) = clocked();
    let start = clock.now();
    clock.advance(SECOND);
    let mut handle = queue.handle();
    handle.push(1).unwrap();
    handle.at(start).push(2).unwrap();
    handle.after(Duration::ZERO).push(3).unwrap();
    handle.at(clock.now()).push_batch([4, 5]).unwrap();
    let tx = handle.begin();
    tx.at(start).push(6).unwrap();
    tx.commit();
    handle.push(7).unwrap();
    assert_eq!(queue.next_due(), None);
    assert_eq!(drain(&queue), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn due_items_and_due_retries_go_to_the_head_in_the_order_of_their_times() {
    let (clock, queue) = clocked();
    queue.push(2).unwrap();
    put_off(&queue, 2 * SECOND);
    queue.after(3 * SECOND).push(3).unwrap();
    queue.after(SECOND).push(1).unwrap();
    queue.push(4).unwrap();
    clock.advance(3 * SECOND);
    assert_eq!(drain(&queue), [1, 2, 3, 4]);
}

#[test]
fn of_a_transaction_only_scheduled_items_wait() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    tx.after(SECOND).push_batch([10, 11]).unwrap();
    tx.push(2).unwrap();
    tx.after(2 * SECOND).push(12).unwrap();
    tx.push_batch([3, 4]).unwrap();
    assert_eq!(tx.staged(), 7);
    assert_delayed(&queue, 0);
    tx.commit();
    assert_delayed(&queue, 3);
    assert_eq!(drain(&queue), [1, 2, 3, 4]);
    clock.advance(2 * SECOND);
    assert_eq!(drain(&queue), [10, 11, 12]);
}

#[test]
fn an_abort_drops_what_was_to_be_scheduled() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    for forgets in [false, true] {
        let tx = handle.begin();
        tx.after(SECOND).push(1).unwrap();
        if forgets {
            std::mem::forget(tx);
        } else {
            tx.abort();
        }
        let tx = handle.begin();
        tx.push(2).unwrap();
        tx.after(SECOND).push(3).unwrap();
        tx.commit();
        assert_eq!(drain(&queue), [2]);
        clock.advance(SECOND);
        assert_eq!(drain(&queue), [3]);
    }
}

#[test]
fn a_joint_commit_schedules() {
    let (clock, queue) = clocked();
    let (one, other) = (
        &queue,
        Queue::builder().clock(clock.clone()).capacity(2).build(),
    );
    let (mut from, mut to) = (one.handle(), other.handle());
    let (a, b) = (from.begin(), to.begin());
    a.after(SECOND).push(1).unwrap();
    b.push(2).unwrap();
    b.after(SECOND).push(3).unwrap();
    commit_all((a, b));
    assert_eq!((drain(one), drain(&other)), (vec![], vec![2]));
    assert!(one.next_scheduled().is_some() && other.stats().delayed == 1);
    clock.advance(SECOND);
    assert_eq!((drain(one), drain(&other)), (vec![1], vec![3]));
    assert_room(&other);
}

/// A worker that takes an item may schedule its successor, although the queue is full or closed.
#[test]
fn a_follow_up_has_the_room_of_what_it_follows() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).capacity(1).build();
    let mut handle = queue.handle();
    queue.push(0).unwrap();
    for item in 1..4 {
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.after(SECOND).push(item).unwrap();
        assert!(tx.after(SECOND).push(9).unwrap_err().is_full());
        tx.commit();
        assert!(queue.push(9).is_err());
        assert!(queue.after(SECOND).push(9).is_err());
        clock.advance(SECOND);
        if item == 2 {
            queue.close();
        }
    }
    assert_eq!(queue.pop(), Ok(3));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

fn waits_for_scheduled<O: Order<u32>>(clock: &ManualClock, make: impl Fn() -> Queue<u32, O>) {
    for push in pushes() {
        let queue = make();
        let mut handle = queue.handle();
        push(&queue, &mut handle, SECOND, 7);
        queue.close();
        assert!(queue.after(SECOND).push(8).unwrap_err().is_closed());
        assert!(handle
            .after(SECOND)
            .push_batch([8])
            .unwrap_err()
            .is_closed());
        assert_eq!(queue.pop(), Err(PopError::Empty));
        let mut idle = Task::new(Box::pin(queue.wait_idle_async()));
        idle.assert_waits();
        clock.advance(SECOND);
        assert_eq!(handle.pop(), Ok(7));
        assert_eq!(queue.pop(), Err(PopError::Closed));
        assert!(idle.was_woken());
        idle.output();
    }
}

#[test]
fn a_closed_queue_is_not_drained_and_none_is_idle_before_the_last_time() {
    in_each_order!(waits_for_scheduled);
}

fn can_be_cancelled<O: Order<u32>>(clock: &ManualClock, make: impl Fn() -> Queue<u32, O>) {
    for push in pushes() {
        let queue = make();
        let mut handle = queue.handle();
        let ticket = push(&queue, &mut handle, SECOND, 7);
        let other = push(&queue, &mut handle, 2 * SECOND, 8);
        assert_eq!(queue.cancel(ticket), Some(7));
        assert_eq!(queue.cancel(ticket), None);
        assert_eq!(queue.next_scheduled(), Some(clock.now() + 2 * SECOND));
        assert!(queue.reschedule(other, clock.now() + 5 * SECOND));
        assert!(!queue.reschedule(ticket, clock.now() + 5 * SECOND));
        clock.advance(4 * SECOND);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert!(queue.reschedule(other, clock.now()));
        assert_eq!(queue.pop(), Ok(8));
        assert_eq!(queue.cancel(other), None);
        queue.close();
        assert_eq!(queue.pop(), Err(PopError::Closed));
        queue.stats().check().unwrap();
        assert!(queue.capacity().map_or(true, |capacity| capacity == 64));
    }
}

#[test]
fn a_scheduled_item_can_be_cancelled_and_rescheduled() {
    in_each_order!(can_be_cancelled);
}

#[test]
fn a_ready_item_of_a_fifo_queue_cannot_be_cancelled() {
    let (clock, queue) = clocked();
    let now = queue.at(clock.now()).push(1).unwrap();
    let ticket = queue.after(SECOND).push(2).unwrap();
    clock.advance(SECOND);
    for ticket in [now, ticket] {
        assert_eq!(queue.cancel(ticket), None);
        assert!(!queue.reschedule(ticket, clock.now()));
    }
    assert_eq!(drain(&queue), [2, 1]);
}

#[test]
fn the_last_cancelled_item_drains_a_closed_queue() {
    let (_, queue) = clocked();
    let ticket = queue.after(SECOND).push(7).unwrap();
    queue.close();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    assert_eq!(queue.cancel(ticket), Some(7));
    assert!(task.was_woken());
    assert_eq!(task.output(), Err(PopError::Closed));
}

fn wakes_at_its_time<O: Order<u32> + Unleased>(
    clock: &ManualClock,
    make: impl Fn() -> Queue<u32, O>,
) {
    for push in pushes() {
        let queue = make();
        let (mut handle, mut popper) = (queue.handle(), queue.handle());
        let mut task = Task::waiting(popper.pop_async());
        push(&queue, &mut handle, 9 * SECOND, 3);
        assert_eq!(task.rings(), 1); // to plan the time
        task.assert_waits();
        push(&queue, &mut handle, 9 * SECOND, 6);
        assert_eq!(task.rings(), 1);
        push(&queue, &mut handle, SECOND, 0);
        assert_eq!(task.rings(), 2);
        task.assert_waits();
        clock.advance(SECOND);
        assert!(task.rings() > 2);
        assert_eq!(task.output(), Ok(0));
        clock.advance(8 * SECOND);
        assert_eq!(drain(&queue), [3, 6]);
    }
}

#[test]
fn a_waiter_is_woken_at_the_earliest_time() {
    in_each_order!(wakes_at_its_time);
}

#[test]
fn all_forms_of_a_pop_wait_for_a_time() {
    for pop in async_pops() {
        let (clock, queue) = clocked();
        queue.after(SECOND).push(7).unwrap();
        let mut handle = queue.handle();
        let mut task = Task::waiting(pop(&mut handle));
        clock.advance(SECOND);
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(7));
    }
    ends(|| {
        for (form, pop) in blocking_pops() {
            let queue = Queue::unbounded();
            queue.after(INSTANT).push(7).unwrap();
            assert_eq!(pop(&mut queue.handle()), Ok(7), "{form}");
        }
    });
}
