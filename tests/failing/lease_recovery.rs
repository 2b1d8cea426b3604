//! Items that are reclaimed from a worker: who gets them, and which waiter is woken.

use std::mem;
use std::task::Poll;
use std::thread;

use crate::common::failing::{assert_room, clocked, leased, letters, INSTANT, SECOND};
use crate::common::futures::Task;
use crate::common::{drain, ends};
use requeue::{PopError, Reason};

#[test]
fn waiters_are_woken_when_a_lease_is_over() {
    for waits_first in [true, false] {
        let (clock, queue) = leased([]);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let mut task = Task::new(b.pop_async());
        if waits_first {
            task.assert_waits();
        }
        queue.push(7).unwrap();
        let tx = a.begin();
        tx.pop().unwrap();
        task.assert_waits();
        clock.advance(SECOND);
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(7));
        assert!(tx.try_commit().is_err());
    }
}

/// One of two waiters gets the item and is stuck with it; the other one was not woken before.
#[test]
fn a_waiter_is_woken_when_a_lease_expires() {
    let (clock, queue) = leased([]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let mut first = Task::waiting(tx.pop_async());
    let mut second = Task::waiting(b.pop_async());
    queue.push(7).unwrap();
    assert_eq!(first.output().map(|item| *item), Ok(7));
    if second.was_woken() {
        second.assert_waits(); // it may have been woken to plan the end of the lease
    }
    clock.advance(SECOND);
    assert!(second.was_woken());
    assert_eq!(second.output(), Ok(7));
    drop(first);
    assert!(tx.try_commit().is_err());
}

#[test]
fn threads_that_wait_are_woken_when_a_lease_is_over() {
    ends(|| {
        let (clock, queue) = leased([]);
        thread::scope(|scope| {
            let mut stuck = queue.handle();
            let other = scope.spawn(|| queue.handle().pop_blocking());
            while queue.stats().waiting < 1 {
                thread::yield_now();
            }
            // Taken by another consumer before the waiter.
            let tx = stuck.begin();
            tx.push(7).unwrap();
            tx.try_commit().unwrap();
            let tx = stuck.begin();
            if tx.pop().is_ok() {
                while queue.stats().waiting < 1 {
                    thread::yield_now();
                }
                clock.advance(SECOND);
            }
            assert_eq!(other.join().unwrap(), Ok(7));
            drop(tx);
        });
        queue.stats().check().unwrap();
    });
}

#[test]
fn a_closed_queue_waits_for_leased_items() {
    let (clock, queue) = leased([7]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    tx.pop().unwrap();
    queue.close();
    let mut tasks = [Task::waiting(b.pop_async())];
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    assert!(tasks[0].was_woken());
    assert_eq!(tasks[0].output(), Ok(7));
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert!(tx.try_commit().is_err());
    assert_eq!(queue.pop(), Err(PopError::Closed));
    queue.stats().check().unwrap();
}

#[test]
fn all_waiters_at_a_closed_queue_see_its_end() {
    for recovers in [true, false] {
        let (clock, queue) = leased([7]);
        let mut a = queue.named_handle("stuck");
        let mut handles = [queue.handle(), queue.handle(), queue.handle()];
        let tx = a.begin();
        tx.pop().unwrap();
        queue.close();
        let mut tasks: Vec<_> = handles
            .iter_mut()
            .map(|handle| Task::waiting(handle.pop_async()))
            .collect();
        if recovers {
            clock.advance(INSTANT);
            assert_eq!(queue.recover("stuck", queue.now()), 1);
        } else {
            clock.advance(SECOND);
        }
        let mut outputs = Vec::new();
        for _ in 0..3 {
            for task in crate::common::futures::woken(&tasks).into_iter().rev() {
                if let Poll::Ready(output) = tasks[task].poll() {
                    outputs.push(output);
                    drop(tasks.remove(task));
                }
            }
        }
        assert_eq!(outputs.len(), 3, "a waiter waits forever");
        outputs.sort_unstable_by_key(Result::is_err);
        assert_eq!(outputs[0], Ok(7));
        drop(tx);
    }
}

#[test]
fn a_bounded_queue_with_leases_keeps_its_bound() {
    for (staged, capacity) in [(0, 2), (1, 2), (2, 2), (3, 4)] {
        let (clock, builder) = clocked();
        let queue = builder.leased(SECOND).capacity(capacity).build();
        queue.handle().push_batch([1, 2]).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        (0..staged).for_each(|item| tx.push(item).unwrap());
        clock.advance(SECOND);
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop(), Ok(1));
        drop(tx);
        assert_eq!(queue.stats().ready, 1);
        queue.stats().check().unwrap();
        assert_room(&queue);
        assert_eq!(drain(&queue)[0], 2);
        assert_room(&queue);
    }
}

#[test]
fn a_lease_that_kills_makes_room() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).capacity(1).max_attempts(1).build();
    queue.push(1).unwrap();
    let (mut stuck, mut pusher) = (queue.handle(), queue.handle());
    let tx = stuck.begin();
    tx.pop().unwrap();
    let mut task = Task::waiting(pusher.push_async(2));
    clock.advance(SECOND);
    assert!(queue.is_empty());
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(()));
    drop(task);
    tx.abort();
    assert_eq!(letters(&queue), [(1, 1, Reason::Expired)]);
    assert_room(&queue);
    queue.stats().check().unwrap();
}

#[test]
fn recover_reclaims_earlier_items_of_handles_with_the_name() {
    let (clock, queue) = leased(0..4);
    let mut handles = ["a", "b", "a", "a"].map(|name| queue.named_handle(name));
    let mut txs = Vec::new();
    let mut begins = Vec::new();
    for handle in &mut handles {
        begins.push(queue.now());
        let tx = handle.begin();
        tx.pop().unwrap();
        txs.push(tx);
        clock.advance(SECOND / 10);
    }
    assert_eq!(queue.recover("nobody", queue.now()), 0);
    assert_eq!(queue.recover("a", begins[0]), 0); // taken at that time, not before
    assert_eq!(queue.recover("a", begins[3]), 2);
    assert_eq!(queue.recover("a", begins[3]), 0);
    let stats = queue.stats();
    assert_eq!((stats.ready, stats.held, stats.expired), (2, 2, 2));
    stats.check().unwrap();
    let late: Vec<_> = txs.into_iter().map(|tx| tx.try_commit().is_err()).collect();
    assert_eq!(late, [true, false, true, false]);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [0, 2]);
    queue.stats().check().unwrap();
}

#[test]
fn recover_reclaims_from_forgotten_transactions_and_makes_dead_letters() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).max_attempts(2).build();
    queue.handle().push_batch([1, 2]).unwrap();
    queue.handle().begin().pop().unwrap();
    let mut stuck = queue.named_handle("stuck");
    let tx = stuck.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    mem::forget(tx);
    clock.advance(INSTANT);
    assert_eq!(queue.recover("stuck", queue.now()), 1);
    assert_eq!(letters(&queue), [(1, 2, Reason::Expired)]);
    assert_eq!(drain(&queue), [2]);
    drop(stuck);
    queue.stats().check().unwrap();
}

#[test]
fn recover_wakes_as_many_as_it_has_items_for() {
    let (clock, queue) = leased([1, 2]);
    let mut stuck = queue.named_handle("stuck");
    let mut handles = [queue.handle(), queue.handle()];
    let tx = stuck.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    let mut tasks: Vec<_> = handles
        .iter_mut()
        .map(|handle| Task::waiting(handle.pop_async()))
        .collect();
    clock.advance(INSTANT);
    assert_eq!(queue.recover("stuck", queue.now()), 2);
    for task in &mut tasks {
        assert!(task.was_woken());
        assert!(task.output().is_ok());
    }
    drop(tx);
}
