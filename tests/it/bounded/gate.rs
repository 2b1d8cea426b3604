//! Queues that are paused, or have a limit of held items.

use std::convert::Infallible;
use std::mem;
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::failing::{clocked, clocked_with, fail, failures, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops, poppers};
use crate::common::{assert_at_rest, drain, ends, filled};
use requeue::{commit_all, ManualClock, Order, Pace, PopError, Queue, Workers};

const NOT_NOW: Result<u32, PopError> = Err(PopError::Empty);

/// A queue with at most this many held items.
fn limited(most: usize, items: std::ops::Range<u32>) -> Queue<u32> {
    let queue = Queue::builder().max_held(most).build();
    queue.handle().push_batch(items).unwrap();
    queue
}

#[test]
fn a_paused_queue_gives_out_nothing_and_takes_all() {
    let queue = filled(0..2);
    let mut handle = queue.handle();
    let mut items = Vec::new();
    queue.pause();
    queue.pause();
    assert!(queue.is_paused());
    queue.push(2).unwrap();
    handle.push(3).unwrap();
    handle.transact(|tx| tx.push(4)).unwrap();
    assert_eq!((queue.pop(), handle.pop()), (NOT_NOW, NOT_NOW));
    assert_eq!(handle.pop_timeout(Duration::ZERO), NOT_NOW);
    assert_eq!(handle.pop_batch(9, &mut items), 0);
    assert_eq!(handle.peek_with(|item| *item), NOT_NOW);
    let tx = handle.begin();
    assert_eq!(tx.pop().unwrap_err(), PopError::Empty);
    assert_eq!(tx.pop_batch(9).len(), 0);
    drop(tx);
    assert_at_rest(&queue, 5, 0);
    queue.resume();
    assert!(!queue.is_paused());
    assert_eq!(handle.pop_batch(9, &mut items), 5);
}

#[test]
fn held_items_can_be_ended_while_the_queue_is_paused() {
    let queue = filled(0..2);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (first, second) = (a.begin(), b.begin());
    let _held = (first.pop().unwrap(), second.pop().unwrap());
    queue.pause();
    assert_eq!(first.commit().next(), Some(0));
    second.abort();
    assert_eq!(queue.pop(), NOT_NOW);
    queue.resume();
    assert_eq!(queue.pop(), Ok(1));
}

#[test]
fn a_resume_wakes_all_waiters() {
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..4).map(|_| queue.handle()).collect();
    let mut tasks = poppers(&mut handles);
    queue.pause();
    queue.handle().push_batch(0..4).unwrap();
    for task in &mut tasks {
        task.assert_waits();
    }
    let rings: Vec<_> = tasks.iter().map(Task::rings).collect();
    queue.resume();
    for ((task, rings), item) in tasks.iter_mut().zip(rings).zip(0..) {
        assert!(task.rings() > rings);
        assert_eq!(task.output(), Ok(item));
    }
}

#[test]
fn every_blocked_pop_is_woken_by_a_resume() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            for round in 0..4 {
                let queue = filled([7]);
                queue.pause();
                let start = Barrier::new(2);
                let popped = thread::scope(|scope| {
                    let waiter = scope.spawn(|| {
                        let mut handle = queue.handle();
                        start.wait();
                        pop(&mut handle)
                    });
                    start.wait();
                    (0..round * 40).for_each(|_| thread::yield_now());
                    queue.resume();
                    waiter.join().unwrap()
                });
                assert_eq!(popped, Ok(7), "{form}");
            }
        }
    });
}

#[test]
fn a_closed_and_paused_queue_is_not_closed_to_pops_while_something_is_left() {
    for pop in async_pops() {
        let queue = filled([1, 2]);
        let mut handles = [queue.handle(), queue.handle(), queue.handle()];
        queue.pause();
        queue.close();
        assert_eq!(queue.pop(), NOT_NOW);
        let [a, b, c] = &mut handles;
        let mut tasks = [a, b, c].map(|handle| Task::waiting(pop(handle)));
        tasks.iter_mut().for_each(Task::assert_waits);
        assert!(
            !tasks.iter().any(Task::was_woken),
            "a waiter wakes no other"
        );
        queue.resume();
        let outputs = tasks.each_mut().map(Task::output);
        assert_eq!(outputs, [Ok(1), Ok(2), Err(PopError::Closed)]);
    }
}

#[test]
fn a_closed_and_paused_queue_without_items_is_closed() {
    let queue = Queue::<u32>::unbounded();
    queue.pause();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    queue.close();
    assert_eq!(task.output(), Err(PopError::Closed));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn items_due_during_a_pause_are_delivered_after_it() {
    let (clock, builder) = clocked();
    let queue = builder.build();
    queue.push(1).unwrap();
    put_off(&queue, SECOND);
    queue.pause();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    clock.advance(SECOND);
    task.assert_waits();
    assert_eq!(queue.len(), 1);
    queue.resume();
    assert_eq!(task.output(), Ok(1));
}

/// A queue of these items, paused for a second.
fn paused_for_a_second(items: std::ops::Range<u32>) -> (ManualClock, Queue<u32>) {
    let (clock, queue) = clocked_with(items);
    queue.pause_for(SECOND);
    (clock, queue)
}

#[test]
fn a_pause_for_a_time_ends_by_itself() {
    let (clock, queue) = paused_for_a_second(0..1);
    clock.advance(SECOND / 2);
    assert_eq!((queue.pop(), queue.is_paused()), (NOT_NOW, true));
    clock.advance(SECOND / 2);
    assert!(!queue.is_paused());
    assert_eq!((queue.pop(), queue.next_due()), (Ok(0), None));
    queue.pause_for(Duration::ZERO);
    assert!(!queue.is_paused());
    queue.pause_for(Duration::MAX);
    clock.advance(SECOND);
    assert!(queue.is_paused());
}

#[test]
fn the_end_of_a_pause_wakes_all_waiters() {
    for pop in async_pops() {
        let (clock, queue) = paused_for_a_second(0..3);
        let mut handles = [queue.handle(), queue.handle(), queue.handle()];
        let mut tasks = handles.each_mut().map(|handle| Task::waiting(pop(handle)));
        clock.advance(SECOND);
        let leader = tasks.iter().position(Task::was_woken).unwrap();
        assert!(tasks[leader].output().is_ok());
        let mut others = tasks.iter_mut().enumerate();
        assert!(others.all(|(index, task)| index == leader || task.output().is_ok()));
    }
}

#[test]
fn blocked_pops_are_woken_by_the_end_of_a_pause() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            let (clock, queue) = clocked_with([7]);
            queue.pause();
            let popped = thread::scope(|scope| {
                let waiter = scope.spawn(|| pop(&mut queue.handle()));
                queue.pause_for(SECOND);
                clock.advance(SECOND);
                waiter.join().unwrap()
            });
            assert_eq!(popped, Ok(7), "{form}");
        }
    });
}

#[test]
fn a_waiter_learns_of_the_end_of_a_pause() {
    let (clock, queue) = clocked_with([7]);
    queue.pause();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    queue.pause_for(SECOND);
    task.assert_waits();
    clock.advance(SECOND);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(7));
}

/// The first waiter is the one that sleeps until the end, and is not polled.
#[test]
fn the_end_of_a_pause_depends_on_no_waiter() {
    let (clock, queue) = paused_for_a_second(0..1);
    let mut handles = [queue.handle(), queue.handle()];
    let mut tasks = poppers(&mut handles);
    tasks.iter_mut().for_each(Task::assert_waits);
    clock.advance(SECOND);
    assert!(!tasks[1].was_woken());
    clock.advance(SECOND);
    assert_eq!(tasks[1].output(), Ok(0));
}

/// A call that looks for due items ends it for all, though the waiter that was woken is not polled.
#[test]
fn a_look_at_the_end_of_a_pause_ends_it() {
    let (clock, queue) = paused_for_a_second(0..2);
    let mut handles = [queue.handle(), queue.handle()];
    let mut tasks = poppers(&mut handles);
    tasks.iter_mut().for_each(Task::assert_waits);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    assert!(tasks.iter().all(Task::was_woken));
}

/// What becomes due earlier plans the end of the pause again; a call that only inspects leaves it to a waiter.
#[test]
fn others_who_release_due_items_leave_the_end_of_a_pause_to_a_waiter() {
    let (clock, queue) = clocked_with([1, 2]);
    put_off(&queue, SECOND);
    queue.pause_for(2 * SECOND);
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    task.assert_waits();
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(1));
}

#[test]
fn the_last_call_says_until_when_a_queue_is_paused() {
    let (clock, queue) = paused_for_a_second(0..1);
    queue.resume();
    assert!(!queue.is_paused());
    queue.pause_for(SECOND);
    queue.pause();
    clock.advance(SECOND);
    assert_eq!((queue.pop(), queue.is_paused()), (NOT_NOW, true));
    queue.pause_for(2 * SECOND);
    queue.pause_for(SECOND);
    clock.advance(SECOND);
    assert!(!queue.is_paused());
    queue.pause_for(SECOND);
    queue.pause_for(2 * SECOND);
    clock.advance(SECOND);
    assert_eq!((queue.pop(), queue.is_paused()), (NOT_NOW, true));
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(0));
}

#[test]
fn a_closed_queue_ends_after_its_pause() {
    let (clock, queue) = paused_for_a_second(0..1);
    queue.close();
    let (mut popper, mut other) = (queue.handle(), queue.handle());
    let mut tasks = [&mut popper, &mut other].map(|handle| Task::waiting(handle.pop_async()));
    let mut idle = Task::waiting(queue.wait_idle_async());
    assert_eq!(queue.drain().count(), 0);
    clock.advance(SECOND);
    let outputs = tasks.each_mut().map(Task::output);
    assert_eq!(outputs, [Ok(0), Err(PopError::Closed)]);
    idle.output();
}

#[test]
fn orders_and_leases_can_be_paused_for_a_time() {
    fn ends_its_pause<O: Order<u32>>(queue: &Queue<u32, O>, clock: &ManualClock) {
        queue.push(1).unwrap();
        queue.pause_for(SECOND);
        let mut handle = queue.handle();
        let mut task = Task::waiting(handle.pop_async());
        clock.advance(SECOND);
        assert_eq!(task.output(), Ok(1));
    }
    let (clock, builder) = clocked();
    ends_its_pause(&builder.clone().lifo().build(), &clock);
    ends_its_pause(&builder.clone().by_priority().build(), &clock);
    ends_its_pause(&builder.clone().fair_by(|item| *item).build(), &clock);
    ends_its_pause(&builder.clone().leased(SECOND).build(), &clock);
    ends_its_pause(
        &builder.max_held(1).pace(Pace::every(SECOND)).build(),
        &clock,
    );
}

#[test]
fn no_more_are_held_than_may_be() {
    let queue = limited(2, 0..5);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    assert_eq!(tx.pop_batch(9).len(), 2);
    assert!(tx.pop().is_err() && tx.peek().is_err());
    assert_eq!((queue.pop(), b.pop()), (NOT_NOW, NOT_NOW));
    assert_eq!(b.pop_batch(9, &mut Vec::new()), 0);
    assert_eq!(b.begin().pop_batch(9).len(), 0);
    drop(tx.commit());
    let mut items = Vec::new();
    assert_eq!(
        b.pop_batch(9, &mut items),
        3,
        "what is committed at once is not held"
    );
}

#[test]
fn each_end_releases_its_places_under_the_limit() {
    for failure in failures() {
        let queue = limited(1, 0..2);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        for _ in 0..3 {
            fail(&mut a, failure);
            let tx = b.begin();
            assert_eq!(*tx.pop().unwrap(), 0, "{:?}", failure.0);
            assert_eq!(a.pop(), NOT_NOW);
        }
        assert_eq!(drain(&queue), [0, 1]);
    }
}

#[test]
fn a_peek_counts_as_held() {
    let queue = limited(1, 0..2);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let peek = tx.peek().unwrap();
    assert_eq!(b.pop(), NOT_NOW);
    drop(peek);
    let item = tx.peek().unwrap().take();
    assert_eq!((*item, b.pop()), (0, NOT_NOW));
    mem::forget(tx);
    mem::forget(a.begin().peek().unwrap());
    drop(a.begin());
    assert_eq!(drain(&queue), [0, 1]);
}

#[test]
fn a_waiter_is_woken_when_items_are_released() {
    for pop in async_pops() {
        let queue = limited(2, 0..4);
        let mut holder = queue.handle();
        let tx = holder.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        let mut handles = [queue.handle(), queue.handle()];
        let mut tasks = handles.each_mut().map(|handle| Task::waiting(pop(handle)));
        drop(tx.commit());
        assert!(tasks.iter().all(Task::was_woken));
        let outputs = tasks.each_mut().map(Task::output);
        assert_eq!(outputs, [Ok(2), Ok(3)]);
    }
}

#[test]
fn a_pop_without_a_hold_wakes_the_next_waiter() {
    let queue = limited(1, 0..3);
    let mut holder = queue.handle();
    let tx = holder.begin();
    let _held = tx.pop().unwrap();
    let mut handles = [queue.handle(), queue.handle()];
    let mut tasks = handles
        .each_mut()
        .map(|handle| Task::waiting(handle.pop_async()));
    drop(tx.commit());
    assert_eq!(tasks[0].output(), Ok(1));
    assert!(
        tasks[1].was_woken(),
        "none is held, so another may be taken"
    );
    assert_eq!(tasks[1].output(), Ok(2));
}

#[test]
fn a_reclaimed_item_no_longer_counts_as_held() {
    let (clock, builder) = clocked();
    let queue = builder.max_held(1).leased(SECOND).build();
    queue.handle().push_batch([1, 2]).unwrap();
    let (mut stuck, mut other) = (queue.handle(), queue.handle());
    let late = stuck.begin();
    let _held = late.pop().unwrap();
    let mut task = Task::waiting(other.pop_async());
    clock.advance(SECOND);
    assert_eq!(task.output(), Ok(1));
    drop(task);
    let tx = other.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    assert!(late.try_commit().is_err());
    assert!(stuck.begin().pop().is_err());
    queue.push(3).unwrap();
    assert!(stuck.begin().pop().is_err(), "another holds the one item");
    drop(tx.try_commit());
    assert_eq!(queue.pop(), Ok(3));
}

#[test]
fn a_commit_over_several_queues_lets_go_in_all() {
    let queues = [limited(1, 0..2), limited(1, 0..2)];
    let [mut a, mut b] = queues.each_ref().map(Queue::handle);
    let (tx_a, tx_b) = (a.begin(), b.begin());
    let _held = (tx_a.pop().unwrap(), tx_b.pop().unwrap());
    drop(commit_all((tx_a, tx_b)));
    assert!(queues.iter().all(|queue| queue.pop() == Ok(1)));
}

#[test]
fn no_more_workers_run_than_items_may_be_held() {
    ends(|| {
        let queue = limited(2, 0..20);
        queue.close();
        let (report, reports) = channel();
        let running = Mutex::new(0);
        let workers = Workers::builder(&queue).threads(4).run(move |_, _| {
            *running.lock().unwrap() += 1;
            thread::yield_now();
            report.send(*running.lock().unwrap()).unwrap();
            *running.lock().unwrap() -= 1;
            Ok::<(), Infallible>(())
        });
        workers.join();
        let counts: Vec<usize> = reports.iter().collect();
        assert_eq!(counts.len(), 20);
        assert!(counts.into_iter().all(|running| running <= 2));
    });
}

#[test]
fn many_threads_hold_and_release_and_no_waiter_is_forgotten() {
    ends(|| {
        let queue = limited(2, 0..400);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut handle = queue.handle();
                    loop {
                        let tx = handle.begin();
                        let Ok(item) = tx.pop_blocking().map(|item| *item) else {
                            break;
                        };
                        if item % 3 == 0 && queue.is_closed() {
                            tx.commit();
                        } else if item % 2 == 0 {
                            drop(tx);
                            let _ = handle.pop();
                        } else {
                            tx.commit();
                        }
                    }
                });
            }
            while queue.len() > 200 {
                queue.pause();
                queue.resume();
                thread::yield_now();
            }
            queue.close();
        });
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn every_order_has_its_gate() {
    let clock = ManualClock::new();
    let pace = || Pace::every(SECOND);
    let fair = Queue::builder()
        .fair_by(|item| item % 2)
        .clock(clock.clone());
    let fair = fair.pace(pace()).max_held(1).build();
    let urgent = Queue::builder().by_priority().clock(clock.clone());
    let urgent = urgent.pace(pace()).max_held(1).build();
    has_a_gate(&clock, &fair);
    has_a_gate(&clock, &urgent);
}

fn has_a_gate<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
    queue.handle().push_batch(0..4).unwrap();
    let mut handles = [queue.handle(), queue.handle()];
    let [holder, waiter] = &mut handles;
    queue.pause();
    assert_eq!(queue.pop(), NOT_NOW);
    queue.resume();
    let tx = holder.begin();
    assert_eq!(*tx.pop().unwrap(), 0);
    let mut task = Task::waiting(waiter.pop_async());
    clock.advance(SECOND);
    task.assert_waits();
    tx.abort();
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(0));
    assert_eq!(queue.pop(), NOT_NOW);
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    assert_at_rest(queue, 2, 0);
}

#[test]
fn scheduled_items_of_a_rate_limited_queue_are_delivered_when_due() {
    let (clock, pace) = (ManualClock::new(), Pace::every(SECOND));
    let queue = Queue::builder()
        .by_priority()
        .clock(clock.clone())
        .pace(pace);
    let queue = queue.build();
    queue.push(1).unwrap();
    assert_eq!(queue.pop(), Ok(1));
    queue.after(SECOND / 2).push(2).unwrap();
    queue.after(SECOND * 3).push(3).unwrap();
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    clock.advance(SECOND / 2);
    task.assert_waits();
    clock.advance(SECOND / 2);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(2));
    drop(task);
    let mut task = Task::waiting(handle.pop_async());
    clock.advance(SECOND);
    task.assert_waits();
    clock.advance(SECOND);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(3));
}

#[test]
#[should_panic(expected = "max_held is 0")]
fn none_may_be_held_is_refused() {
    let _ = Queue::<u32>::builder().max_held(0);
}

#[test]
fn a_wait_takes_no_item_of_a_paused_queue_from_where_the_last_one_came() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        handle.push_batch([1, 2, 3, 4]).unwrap();
        assert_eq!(handle.pop(), Ok(1));
        queue.pause();
        assert_eq!(handle.pop_timeout(Duration::ZERO), NOT_NOW);
        let mut task = Task::waiting(pop(&mut handle));
        task.assert_waits();
        queue.resume();
        assert_eq!(task.output(), Ok(2));
    }
}
