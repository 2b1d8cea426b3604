//! Workers that exceeded their lease: the lost items, and the use of the handle afterwards.

use std::mem;

use crate::common::failing::{assert_room, clocked, leased, SECOND};
use crate::common::{drain, panics};
use requeue::{try_commit_all, Expired, Fifo, Handle, Leased, PopError, PushError, Queue};

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

/// A way to end a late transaction without a commit.
type End = fn(&mut Handle<u32, Leased<Fifo>>, &dyn Fn());

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
        assert_eq!(tx.try_commit().err(), Some(Expired));
    }),
    ("transact", |handle, expire| {
        let committed = handle.try_transact(|tx| {
            assert_eq!(tx.pop_batch(3).len(), 3);
            expire();
            Ok(())
        });
        assert_eq!(committed, Err(Expired));
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
        // The handle can be used as before.
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
    // It may have the address of the lost one.
    assert_eq!(*tx.pop().unwrap(), 2);
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert_eq!(drain(&queue), [2]);
    let stats = queue.stats();
    assert_eq!((stats.expired, stats.aborted, stats.delayed), (1, 1, 0));
    stats.check().unwrap();
}

#[test]
fn a_late_transaction_cannot_commit_with_others() {
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
    assert!(try_commit_all((tx_a, tx_b)).is_err());
    assert_eq!(drain(&queue), [1]);
    assert_eq!(drain(&plain), ['a']);
}

/// Two transactions of queues with leases; the second is late, after the leases of the first were closed.
#[test]
fn a_refused_joint_commit_reopens_the_leases_of_the_others() {
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
fn a_lost_item_that_fails_takes_no_place_among_the_letters() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).max_dead_letters(1).build();
    queue.push(1).unwrap();
    let (mut late, mut next) = (queue.handle(), queue.handle());
    let tx = late.begin();
    let item = tx.pop().unwrap();
    clock.advance(SECOND);
    let other = next.begin();
    let again = other.pop().unwrap();
    tx.fail(item, "too late").unwrap();
    drop(tx);
    assert!(queue.dead_letters().is_empty());
    other.fail(again, "broken").unwrap();
    other.try_commit().unwrap();
    assert_eq!(queue.dead_letters().len(), 1);
}

/// It held no item when it was forgotten, but it was late.
#[test]
fn losses_of_a_forgotten_transaction_do_not_affect_the_next_one() {
    let (clock, queue) = leased([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    tx.retry(item).unwrap();
    mem::forget(tx);
    queue.push(2).unwrap();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    assert!(tx.try_commit().is_ok());
    assert!(queue.is_empty());
    queue.stats().check().unwrap();
}

/// The lost items of a transaction do not allow a push after the end.
#[test]
fn a_transaction_that_lost_all_pushes_nothing_after_the_end() {
    let (clock, queue) = leased([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    queue.close();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert_eq!(tx.push(2), Err(PushError::Closed(2)));
    assert!(tx.try_commit().is_err());
    assert_eq!(queue.pop(), Err(PopError::Closed));
}
