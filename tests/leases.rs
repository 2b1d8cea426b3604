//! Items that a worker has for a time only, and what becomes of them and of it when that is over.

mod common;

use std::mem;
use std::task::Poll;
use std::thread;

use common::failing::{assert_room, clocked, leased, letters, times, INSTANT, NEARLY, SECOND};
use common::futures::Task;
use common::{drain, ends, panics};
use requeue::{commit_all, try_commit_all, Backoff, Expired, Handle, PopError, Queue, Reason};

#[test]
fn an_item_is_available_when_its_lease_is_over_and_not_before() {
    let (clock, queue) = leased([7]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    assert_eq!(*tx.pop().unwrap(), 7);
    assert_eq!(queue.next_due(), Some(queue.now() + SECOND));
    clock.advance(NEARLY);
    assert_eq!(b.pop(), Err(PopError::Empty));
    assert_eq!(queue.stats().held, 1);
    clock.advance(INSTANT);
    let stats = queue.stats();
    assert_eq!((stats.held, stats.ready, stats.expired), (0, 1, 1));
    stats.check().unwrap();
    let other = b.begin();
    let item = other.pop().unwrap();
    assert_eq!((*item, item.attempts()), (7, 2));
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert!(other.try_commit().is_ok());
    let stats = queue.stats();
    assert_eq!((stats.committed, stats.aborted, stats.expired), (1, 0, 1));
    stats.check().unwrap();
}

#[test]
fn a_commit_in_time_wins() {
    let (clock, queue) = leased([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    clock.advance(NEARLY);
    assert!(queue.is_empty());
    let taken = tx.try_commit().unwrap();
    clock.advance(SECOND);
    assert!(queue.is_empty());
    assert!(taken.eq([1, 2]));
    assert_eq!(queue.stats().expired, 0);
    queue.stats().check().unwrap();
}

/// Nobody has noticed that the lease is over: then the item is still the worker's.
#[test]
fn a_late_commit_succeeds_if_nobody_took_the_item_back() {
    let (clock, queue) = leased([7]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(tx.try_commit().unwrap().next(), Some(7));
    assert!(queue.is_empty());
    queue.stats().check().unwrap();
}

#[test]
fn a_late_commit_publishes_nothing_and_the_rest_goes_back() {
    let (clock, queue) = leased([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(SECOND / 2);
    queue.push(2).unwrap();
    tx.pop().unwrap();
    tx.push(3).unwrap();
    clock.advance(SECOND / 2);
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(tx.renew(), Err(Expired));
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert_eq!(drain(&queue), [2]);
    let stats = queue.stats();
    assert_eq!((stats.expired, stats.aborted), (1, 1));
    stats.check().unwrap();
}

#[test]
fn changes_of_the_late_worker_are_lost_and_those_of_an_abort_are_not() {
    let (clock, queue) = leased([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    *tx.pop().unwrap() = 10;
    clock.advance(SECOND / 2);
    *tx.pop().unwrap() = 20;
    clock.advance(SECOND / 2);
    let copy = queue.pop();
    tx.abort();
    assert_eq!(copy, Ok(1));
    assert_eq!(drain(&queue), [20]);
    queue.stats().check().unwrap();
}

/// A way to end a late transaction that is no commit.
type End = fn(&mut Handle<u32>, &dyn Fn());

const ENDS: [(&str, End); 5] = [
    ("abort", |handle, expire| {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(3).len(), 3);
        expire();
        tx.abort();
    }),
    ("commit", |handle, expire| {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(3).len(), 3);
        expire();
        assert!(panics(|| tx.commit().count()));
    }),
    ("transact", |handle, expire| {
        let committed = panics(|| {
            handle.transact(|tx| {
                assert_eq!(tx.pop_batch(3).len(), 3);
                expire();
                Ok::<_, ()>(())
            })
        });
        assert!(committed);
    }),
    ("panic", |handle, expire| {
        assert!(panics(|| {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(3).len(), 3);
            expire();
            panic!("the worker fails");
        }));
    }),
    ("forget", |handle, expire| {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(3).len(), 3);
        mem::forget(tx);
        expire();
        drop(handle.begin());
    }),
];

#[test]
fn the_end_of_a_late_transaction_gives_nothing_back_twice() {
    for (name, end) in ENDS {
        let (clock, queue) = leased(0..5);
        let mut handle = queue.handle();
        end(&mut handle, &|| {
            clock.advance(SECOND);
            assert_eq!(queue.len(), 5, "{name}");
        });
        let stats = queue.stats();
        assert_eq!((stats.expired, stats.aborted), (3, 0), "{name}");
        stats.check().unwrap();
        assert_eq!(drain(&queue), [0, 1, 2, 3, 4], "{name}");
        // The handle is as good as new.
        handle.push(9).unwrap();
        let tx = handle.begin();
        tx.pop().unwrap();
        assert_eq!(tx.try_commit().unwrap().next(), Some(9));
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_dropped_handle_with_a_late_forgotten_transaction() {
    let (clock, queue) = leased([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    mem::forget(tx);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    drop(handle);
    assert_eq!(drain(&queue), [1, 2]);
    queue.stats().check().unwrap();
}

#[test]
fn every_item_has_a_lease_of_its_own_and_a_batch_one_together() {
    let (clock, queue) = leased(0..4);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(SECOND / 2);
    assert_eq!(tx.pop_batch(2).len(), 2);
    let _last = tx.peek().unwrap().take();
    assert_eq!(queue.len(), 0);
    clock.advance(SECOND / 2);
    assert_eq!(queue.len(), 1);
    clock.advance(SECOND / 2);
    assert_eq!(queue.len(), 4);
    tx.abort();
    queue.stats().check().unwrap();
    let mut all = drain(&queue);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
}

#[test]
fn a_renewal_starts_all_terms_anew() {
    let (clock, queue) = leased([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(SECOND / 2);
    tx.pop().unwrap();
    for _ in 0..5 {
        clock.advance(SECOND / 2);
        assert_eq!(tx.renew(), Ok(()));
        assert!(queue.is_empty());
    }
    clock.advance(NEARLY);
    assert!(queue.is_empty());
    clock.advance(INSTANT);
    assert_eq!(queue.len(), 2);
    assert_eq!(tx.renew(), Err(Expired));
    drop(tx);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn without_leases_a_renewal_does_nothing_and_a_commit_never_fails() {
    let (clock, builder) = clocked();
    let queue = builder.build();
    queue.push(7).unwrap();
    let mut handle = queue.named_handle("worker");
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(1_000 * SECOND);
    assert_eq!(queue.recover("worker", queue.now()), 0);
    assert_eq!(tx.renew(), Ok(()));
    assert_eq!(tx.try_commit().unwrap().next(), Some(7));
}

#[test]
fn a_worker_may_receive_what_it_lost() {
    let (clock, queue) = leased([7]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(SECOND);
    let again = tx.pop().unwrap();
    assert_eq!((*again, again.attempts()), (7, 2));
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert_eq!(drain(&queue), [7]);
    queue.stats().check().unwrap();
}

#[test]
fn a_lost_item_that_is_given_back_takes_no_other_with_it() {
    let (clock, queue) = leased([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    tx.retry(item).unwrap();
    queue.push(2).unwrap();
    // It may lie where the lost one lay.
    assert_eq!(*tx.pop().unwrap(), 2);
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert_eq!(drain(&queue), [2]);
    let stats = queue.stats();
    assert_eq!((stats.expired, stats.aborted, stats.delayed), (1, 1, 0));
    stats.check().unwrap();
}

#[test]
fn a_retried_item_is_on_lease_no_more() {
    let (clock, queue) = leased([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let (first, _second) = (tx.pop().unwrap(), tx.pop().unwrap());
    tx.retry_after(first, 10 * SECOND).unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
    clock.advance(9 * SECOND);
    let mut all = drain(&queue);
    all.sort_unstable();
    assert_eq!(all, [1, 2]);
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}

#[test]
fn a_commit_after_a_retry() {
    let (clock, queue) = leased([1, 2, 3]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut items = tx.pop_batch(3);
    let (_first, second) = (items.next(), items.next().unwrap());
    tx.retry_after(second, 10 * SECOND).unwrap();
    assert!(tx.try_commit().unwrap().eq([1, 3]));
    clock.advance(10 * SECOND);
    assert_eq!(drain(&queue), [2]);
    queue.stats().check().unwrap();
}

#[test]
fn a_late_transaction_may_not_commit_with_others() {
    let (clock, queue) = leased([1]);
    let plain = Queue::unbounded();
    plain.push('a').unwrap();
    for late_first in [true, false] {
        let (mut a, mut b) = (queue.handle(), plain.handle());
        let (tx_a, tx_b) = (a.begin(), b.begin());
        tx_a.pop().unwrap();
        tx_b.pop().unwrap();
        tx_b.push('b').unwrap();
        clock.advance(SECOND);
        assert_eq!(queue.len(), 1);
        let refused = if late_first {
            try_commit_all((tx_a, tx_b)).map(drop)
        } else {
            try_commit_all((tx_b, tx_a)).map(drop)
        };
        assert_eq!(refused, Err(Expired));
        assert_eq!((queue.len(), plain.len()), (1, 1));
        queue.stats().check().unwrap();
    }
    let (mut a, mut b) = (queue.handle(), plain.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    let item = tx_a.pop().unwrap();
    assert_eq!(item.attempts(), 3);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
    assert!(panics(|| commit_all((tx_a, tx_b))));
    assert_eq!(drain(&queue), [1]);
    assert_eq!(drain(&plain), ['a']);
}

/// Two transactions of queues with leases; the second is late, after the first was made safe.
#[test]
fn one_that_is_refused_with_others_has_its_leases_again() {
    let (clock, queue) = leased([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    tx_b.pop().unwrap();
    clock.advance(SECOND / 2);
    tx_a.pop().unwrap();
    clock.advance(SECOND / 2);
    assert_eq!(queue.pop(), Ok(1));
    assert!(try_commit_all((tx_a, tx_b)).is_err());
    let tx = a.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(2));
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}

#[test]
fn a_commit_over_queues_with_leases_ends_them() {
    let (clock, queue) = leased([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!((*tx_a.pop().unwrap(), *tx_b.pop().unwrap()), (1, 2));
    let (taken_a, taken_b) = try_commit_all((tx_a, tx_b)).unwrap();
    assert!(taken_a.eq([1]) && taken_b.eq([2]));
    clock.advance(SECOND);
    assert!(queue.is_empty());
    queue.stats().check().unwrap();
}

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

/// One of two waiters gets the item and is stuck with it; the other one was never woken meanwhile.
#[test]
fn one_who_went_on_waiting_is_woken_when_a_lease_is_over() {
    let (clock, queue) = leased([]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let mut first = Task::waiting(tx.pop_async());
    let mut second = Task::waiting(b.pop_async());
    queue.push(7).unwrap();
    assert_eq!(first.output().map(|item| *item), Ok(7));
    if second.was_woken() {
        second.assert_waits(); // it may have been told of the lease
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
            // Taken from under the eyes of the one who waits.
            let tx = stuck.begin();
            tx.push(7).unwrap();
            tx.commit();
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
fn a_closed_queue_waits_for_what_is_leased() {
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
fn all_who_wait_in_a_closed_queue_hear_of_its_end() {
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
            for task in common::futures::woken(&tasks).into_iter().rev() {
                if let Poll::Ready(output) = tasks[task].poll() {
                    outputs.push(output);
                    drop(tasks.remove(task));
                }
            }
        }
        assert_eq!(outputs.len(), 3, "somebody waits for ever");
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
    let queue = builder
        .leased(SECOND)
        .capacity(1)
        .max_attempts(times(1))
        .build();
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
fn a_retry_of_a_lost_item_in_a_full_queue() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).capacity(2).build();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    tx.push(2).unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
    assert!(tx.retry(item).is_ok());
    assert!(tx.try_commit().is_err());
    assert_eq!(queue.pop(), Ok(1));
    assert_room(&queue);
    queue.stats().check().unwrap();
}

#[test]
fn recover_takes_from_those_named_what_they_took_before() {
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
    assert_eq!(queue.recover("a", begins[0]), 0); // taken then, not before
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
fn recover_takes_what_a_forgotten_transaction_holds_and_kills_what_may_die() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).max_attempts(times(2)).build();
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

#[test]
fn what_is_taken_back_has_waited_enough() {
    let (clock, builder) = clocked();
    let backoff = Backoff::fixed(5 * SECOND);
    let queue = builder.leased(SECOND).backoff(backoff).build();
    queue.push(7).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.stats().delayed, 0);
    assert_eq!(queue.pop(), Ok(7));
    drop(tx);
    queue.stats().check().unwrap();
}

#[test]
fn items_that_are_popped_at_once_are_not_leased() {
    let (clock, queue) = leased([1, 2, 3]);
    let mut handle = queue.handle();
    assert_eq!(handle.pop(), Ok(1));
    assert_eq!(handle.pop_batch(1, &mut Vec::new()), 1);
    assert_eq!(queue.pop(), Ok(3));
    clock.advance(SECOND);
    assert!(queue.is_empty());
    assert_eq!(queue.stats().expired, 0);
}

#[test]
fn a_look_is_no_lease() {
    let (clock, queue) = leased([7]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    let item = peek.take();
    assert_eq!(item.attempts(), 1);
    clock.advance(NEARLY);
    assert!(queue.is_empty());
    clock.advance(INSTANT);
    assert_eq!(queue.pop(), Ok(7));
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}
