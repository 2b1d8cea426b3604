//! Aborts, by a restart and by a commit that failed.

use super::{directory, open};
use requeue::ManualClock;
use requeue_durable::{commit_all, ReturnTo, Store, StoreError};
use std::time::Duration;

#[test]
fn items_that_were_delivered_are_in_their_order_however_often_it_was() {
    let directory = directory();
    let open_queue = |store: &Store| store.builder("jobs").max_attempts(9).build().unwrap();
    let store = open(&directory);
    let jobs = open_queue(&store);
    jobs.push_batch(0..6).unwrap();
    let held = jobs.begin_owned();
    held.pop_batch(3).unwrap();
    for _ in 0..2 {
        let again = jobs.begin_owned();
        again.pop_batch(2).unwrap();
        again.abort();
    }
    drop((held, jobs, store));

    let jobs = open_queue(&open(&directory));
    assert_eq!(jobs.pop_batch(9).unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn leases_expire_after_a_commit_that_failed_in_another_queue() {
    let directory = directory();
    let (store, clock) = (open(&directory), ManualClock::new());
    let term = Duration::from_secs(1);
    let [one, other] = ["one", "other"].map(|name| {
        let builder = store.builder(name).leased(term);
        builder.clock(clock.clone()).build().unwrap()
    });
    one.push_batch([1, 2]).unwrap();
    other.push(3).unwrap();
    let mut worker = one.handle();
    let (empty, late) = (worker.begin(), other.begin_owned());
    late.pop().unwrap();
    clock.advance(term);
    assert_eq!(other.len(), 1);
    let failed = commit_all((empty, late)).unwrap_err();
    assert!(matches!(failed, StoreError::Expired));

    let tx = worker.begin();
    tx.pop().unwrap();
    assert_eq!(one.len(), 1);
    clock.advance(term);
    assert_eq!(one.len(), 2);
}

#[test]
fn failed_deliveries_go_to_the_tail_until_the_queue_is_opened_again() {
    let directory = directory();
    let open_queue = |store: &Store| {
        let builder = store.builder("jobs").on_failure(ReturnTo::Tail);
        builder.max_attempts(3).build().unwrap()
    };
    let store = open(&directory);
    let jobs = open_queue(&store);
    jobs.push_batch(0..3).unwrap();
    let mut first = jobs.begin_owned();
    assert_eq!(*first.pop().unwrap(), 0);
    first.abort();
    first = jobs.begin_owned();
    assert_eq!(*first.pop().unwrap(), 1);
    first.commit().unwrap();
    drop((jobs, store));

    let jobs = open_queue(&open(&directory));
    let again = jobs.begin_owned();
    let item = again.pop().unwrap();
    assert_eq!((*item, item.attempts()), (0, 2));
    again.abort();
    assert_eq!(jobs.pop_batch(9).unwrap(), [2, 0]);
}
