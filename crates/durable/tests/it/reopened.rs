//! What was recovered: before what is pushed later, and as it was.

use super::{directory, options};
use requeue::ManualClock;
use requeue_durable::{DurableQueue, Store};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

/// A store whose wall clock stands still.
fn open(directory: &TempDir) -> Store {
    let now: SystemTime = UNIX_EPOCH + 1_000 * HOUR;
    let options = options().wall_clock(move || now);
    options.open(directory.path()).unwrap()
}

#[test]
fn delayed_items_beyond_max_held_keep_their_delays_and_deliveries() {
    let (directory, clock) = (directory(), ManualClock::new());
    let build = |store: &Store| -> DurableQueue<u32> {
        let builder = store.builder("jobs").clock(clock.clone());
        builder.max_attempts(9).max_held(10).build().unwrap()
    };
    let jobs = build(&open(&directory));
    jobs.push_batch(0..100).unwrap();
    for _ in 0..10 {
        let mut tx = jobs.begin_owned();
        assert_eq!(tx.pop_batch(10).unwrap().len(), 10);
        tx.retry_all_after(HOUR).unwrap();
        tx.commit().unwrap();
    }
    drop(jobs);

    let jobs = build(&open(&directory));
    let stats = jobs.stats();
    assert_eq!((stats.ready, stats.delayed), (0, 100));
    stats.check().unwrap();
    clock.advance(HOUR);
    let mut tx = jobs.begin_owned();
    tx.pop_batch(100).unwrap();
    let items = tx.items().map(|item| (*item, item.attempts()));
    assert!(items.eq((0..10).map(|item| (item, 2))));
}

#[test]
fn scheduled_items_keep_their_deliveries() {
    let (directory, clock) = (directory(), ManualClock::new());
    let build = |store: &Store| {
        let builder = store.builder::<u32>("alarms").by_priority();
        let builder = builder.clock(clock.clone()).max_attempts(9);
        builder.max_held(1).build().unwrap()
    };
    let alarms = build(&open(&directory));
    let ticket = alarms.priority(3).push(7).unwrap();
    alarms.begin_owned().pop().unwrap();
    assert!(alarms.reschedule(ticket, alarms.now() + HOUR).unwrap());
    alarms.priority(3).push(8).unwrap();
    drop(alarms);

    let alarms = build(&open(&directory));
    assert_eq!(alarms.pop().unwrap(), 8);
    assert!(alarms.pop().unwrap_err().is_empty());
    clock.advance(HOUR);
    let tx = alarms.begin_owned();
    let alarm = tx.pop().unwrap();
    assert_eq!((*alarm, alarm.attempts()), (7, 2));
    tx.abort();
    assert!(alarms.reprioritize(ticket, 1).unwrap());
}

#[test]
fn one_thread_pops_in_order_after_a_restart() {
    for backlog in [1, 10, 300] {
        let directory = directory();
        let queue = |store: &Store| store.queue::<u32>("numbers").unwrap();
        let numbers = queue(&open(&directory));
        numbers.push_batch(0..backlog).unwrap();
        drop(numbers);
        let numbers = queue(&open(&directory));
        for number in 0..20 {
            numbers.push(backlog + number).unwrap();
            assert_eq!(numbers.pop().unwrap(), number);
        }
    }
}

#[test]
fn recovered_items_come_before_later_pushes() {
    let directory = directory();
    let queue = |store: &Store| store.queue::<u32>("numbers").unwrap();
    let numbers = queue(&open(&directory));
    numbers.push_batch(0..300).unwrap();
    drop(numbers);

    let store = open(&directory);
    let numbers = queue(&store);
    numbers.push(300).unwrap();
    let mut handle = numbers.handle();
    handle.push(301).unwrap();
    let popped: Vec<_> = (0..100).map(|_| numbers.pop().unwrap()).collect();
    assert!(popped.into_iter().eq(0..100));
    let tx = handle.begin();
    tx.pop_batch(50).unwrap();
    tx.push(302).unwrap();
    tx.abort();
    assert!(handle.pop_batch(100).unwrap().into_iter().eq(100..200));
    // And again: one thread, and two restarts.
    drop((handle, numbers, store));
    let numbers = queue(&open(&directory));
    let popped = numbers.pop_batch(1_000).unwrap();
    assert!(popped.into_iter().eq(200..302));
}

#[test]
fn in_other_orders_too() {
    let directory = directory();
    let fair = |store: &Store| store.builder("fair").fair_by(|n: &u32| n % 2).build();
    let urgent = |store: &Store| store.builder("urgent").by_priority().build();
    let store = open(&directory);
    fair(&store).unwrap().push_batch([0, 1, 2, 3]).unwrap();
    urgent(&store).unwrap().priority(2).push(1).unwrap();
    drop(store);

    let store = open(&directory);
    let (fair, urgent) = (fair(&store).unwrap(), urgent(&store).unwrap());
    fair.push_batch([4, 5]).unwrap();
    urgent.priority(2).push(2).unwrap();
    urgent.priority(1).push(0).unwrap();
    assert_eq!(fair.pop_batch(9).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(urgent.pop_batch(9).unwrap(), [0, 1, 2]);
}
