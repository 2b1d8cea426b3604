//! Leases: when they begin, and when they end.

use crate::common::drain;
use crate::common::failing::{clocked, leased, INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use requeue::{try_commit_all, Backoff, Expired, Fifo, Handle, Leased, PopError, Queue};

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

/// Until the expiry is noticed, the item is still the worker's.
#[test]
fn a_late_commit_succeeds_if_the_item_was_not_reclaimed() {
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
fn without_leases_a_renewal_does_nothing_and_a_commit_does_not_fail() {
    let (clock, builder) = clocked();
    let queue = builder.build();
    queue.push(7).unwrap();
    let mut handle = queue.named_handle("worker");
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(1_000 * SECOND);
    assert_eq!(tx.renew(), Ok(()));
    assert_eq!(tx.try_commit().unwrap().next(), Some(7));
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
fn reclaimed_items_are_ready_without_a_delay() {
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
fn a_peek_is_no_lease() {
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

type Lessee = Handle<u32, Leased<Fifo>>;

/// Transactions that end without items, and whether the end succeeded.
const BARREN: [fn(&mut Lessee) -> bool; 4] = [
    |handle| handle.begin().try_commit().is_ok(),
    |handle| {
        let tx = handle.begin();
        tx.push(7).unwrap();
        tx.try_commit().is_ok()
    },
    |handle| {
        let other = Queue::<()>::unbounded();
        let mut other = other.handle();
        let committed = try_commit_all((handle.begin(), other.begin()));
        committed.is_ok()
    },
    |handle| handle.try_transact(|_| Ok::<_, Expired>(())).is_ok(),
];

#[test]
fn a_commit_without_items_changes_nothing_for_the_next_transaction() {
    for commit in BARREN {
        let (clock, queue) = leased([]);
        let (mut handle, mut other) = (queue.handle(), queue.handle());
        assert!(commit(&mut handle));
        if queue.is_empty() {
            queue.push(7).unwrap();
        }
        let tx = handle.begin();
        tx.pop().unwrap();
        let mut task = Task::waiting(other.pop_async());
        clock.advance(SECOND);
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(7));
        assert!(tx.try_commit().is_err());
        queue.stats().check().unwrap();
    }
}
