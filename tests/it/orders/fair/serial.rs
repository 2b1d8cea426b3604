//! Queues that deliver one item of a key at a time.

use super::{abort_one, filled, names, pull, pull_all, push};
use crate::common::failing::{fail, failures, letters, SECOND};
use crate::common::futures::{Eager, Task};
use crate::common::{assert_at_rest, drain};
use requeue::{commit_all, Backoff, ManualClock, Order, PopError, Queue, Reason};

/// The numbers of ready items, and of those that wait for another one of their key.
#[track_caller]
fn assert_counts<O: Order<&'static str>>(
    queue: &Queue<&'static str, O>,
    ready: usize,
    waiting: u64,
) {
    let stats = queue.stats();
    assert_eq!((queue.len(), stats.delayed), (ready, waiting));
    assert_eq!(queue.is_empty(), ready == 0);
    stats.check().unwrap();
}

#[test]
fn while_an_item_is_held_no_other_of_its_key_is_delivered() {
    let queue = filled(names().serial(), "a1 a2 b1 a3");
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let first = a.begin();
    assert_eq!(*first.pop().unwrap(), "a1");
    let second = b.begin();
    assert_eq!(*second.pop().unwrap(), "b1");
    assert_eq!(first.pop().unwrap_err(), PopError::Empty);
    push(&queue, "b2");
    assert_counts(&queue, 0, 3);
    second.commit();
    assert_counts(&queue, 1, 2);
    first.commit();
    pull_all(&queue, "b2 a2 a3");
}

#[test]
fn a_transaction_takes_one_item_of_each_key() {
    let queue = filled(names().serial(), "a1 a2 b1 b2 c1");
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert!(tx.pop_batch(9).map(|item| *item).eq(["a1", "b1", "c1"]));
    assert_counts(&queue, 0, 2);
    tx.commit();
    let tx = worker.begin();
    assert!(tx.pop_batch(9).map(|item| *item).eq(["a2", "b2"]));
    tx.commit();
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_returned_item_is_the_next_of_its_key_after_any_failure() {
    for (reason, failure) in failures() {
        let queue = filled(names().serial(), "a1 a2 b1 b2");
        fail(&mut queue.handle(), (reason, failure));
        assert_counts(&queue, 2, 2);
        pull_all(&queue, "a1 b1 a2 b2");
    }
}

#[test]
fn a_retry_stops_its_key_until_it_is_done() {
    let clock = ManualClock::new();
    let queue = filled(names().serial().clock(clock.clone()), "a1 a2 b1");
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.retry_after(tx.pop().unwrap(), SECOND).unwrap();
    tx.commit();
    pull(&queue, "b1");
    assert_counts(&queue, 0, 2);
    clock.advance(SECOND);
    pull_all(&queue, "a1 a2");
}

#[test]
fn a_backoff_stops_its_key_and_a_death_does_not() {
    let clock = ManualClock::new();
    let builder = names().serial().clock(clock.clone());
    let builder = builder.backoff(Backoff::fixed(SECOND)).max_attempts(2);
    let queue = filled(builder, "a1 a2");
    abort_one(&queue);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    abort_one(&queue);
    assert_counts(&queue, 1, 0);
    pull_all(&queue, "a2");
    assert_eq!(letters(&queue), [("a1", 2, Reason::Aborted)]);
}

#[test]
fn a_lease_that_is_over_stops_its_key_no_more() {
    let clock = ManualClock::new();
    let builder = names().serial().clock(clock.clone()).leased(SECOND);
    let queue = filled(builder, "a1 a2");
    let mut slow = queue.handle();
    let tx = slow.begin();
    tx.pop().unwrap();
    assert_counts(&queue, 0, 1);
    clock.advance(SECOND);
    let mut worker = queue.handle();
    let other = worker.begin();
    assert_eq!(*other.pop().unwrap(), "a1");
    assert!(tx.try_commit().is_err());
    // The late transaction does not release the key of the other one.
    assert_counts(&queue, 0, 1);
    other.try_commit().unwrap();
    pull_all(&queue, "a2");
}

#[test]
fn dropping_a_staged_item_does_not_release_the_key_of_a_held_one() {
    let queue = filled(names().serial(), "a1 a2");
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    tx.pop().unwrap();
    let other = b.begin();
    other.push("a3").unwrap();
    other.abort();
    assert_counts(&queue, 0, 1);
    tx.push("a4").unwrap();
    tx.commit();
    pull_all(&queue, "a2 a4");
}

#[test]
fn a_waiter_is_woken_by_the_end_of_a_held_item() {
    let queue = filled(names().serial(), "a1 a2 a3");
    let [mut a, mut b, mut c] = [(); 3].map(|()| queue.handle());
    let tx = a.begin();
    tx.pop().unwrap();
    let mut first = Task::waiting(b.pop_async());
    let mut second = Task::waiting(c.pop_async());
    tx.commit();
    assert!(first.was_woken());
    assert_eq!(first.output(), Ok("a2"));
    // That pop was committed at once.
    assert!(second.was_woken());
    assert_eq!(second.output(), Ok("a3"));
}

#[test]
fn a_weighted_key_continues_its_visit() {
    let weigh = |key: &char| if *key == 'a' { 2 } else { 1 };
    let queue = filled(names().serial().weight(weigh), "a1 a2 a3 b1 b2");
    pull_all(&queue, "a1 a2 b1 a3 b2");
}

#[test]
fn a_batch_that_is_committed_at_once_takes_all() {
    let queue = filled(names().serial(), "a1 a2 b1");
    let mut items = Vec::new();
    assert_eq!(queue.handle().pop_batch(9, &mut items), 3);
    assert_eq!(items, ["a1", "b1", "a2"]);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_closed_queue_is_drained_after_those_that_wait() {
    let queue = filled(names().serial(), "a1 a2");
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.pop().unwrap();
    queue.close();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    tx.commit();
    assert!(queue.iter().eq(["a2"]));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn keys_of_several_queues_are_free_after_a_common_commit() {
    let queue = filled(names().serial(), "a1 a2");
    let plain = Queue::unbounded();
    let (mut worker, mut other) = (queue.handle(), plain.handle());
    let (tx, other_tx) = (worker.begin(), other.begin());
    tx.pop().unwrap();
    other_tx.push(1).unwrap();
    drop(commit_all((tx, other_tx)));
    assert_eq!(drain(&plain), [1]);
    pull_all(&queue, "a2");
}

#[test]
fn a_snapshot_shows_keys_that_are_held_up_last() {
    let queue = filled(names().serial(), "a1 a2 b1 c1");
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.pop().unwrap();
    let snapshot = queue.keys();
    assert!(snapshot.round().eq(&['b', 'c']));
    assert!(snapshot.iter().eq([(&'b', 1), (&'c', 1), (&'a', 1)]));
}

#[test]
fn an_early_waiter_at_a_closed_queue_is_woken_again() {
    let queue = filled(names().serial(), "a1 a2");
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert_eq!(*tx.pop().unwrap(), "a1");
    queue.close();
    let pop = || {
        let mut handle = queue.handle();
        Eager::new(async move { handle.pop_async().await })
    };
    let waiting = [pop(), pop()];
    assert!(waiting.iter().all(|eager| eager.output().is_none()));
    tx.commit();
    let popped = waiting.map(|eager| eager.output());
    assert_eq!(popped, [Some(Ok("a2")), Some(Err(PopError::Closed))]);
}
