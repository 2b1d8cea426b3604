//! Queues whose backlog is larger than their memory: pages of few items.

use crate::{directory, open, options};
use futures::FutureExt;
use requeue_durable::{Budget, Durability, DurableQueue, PushError, Store, StoreError, Workers};
use std::collections::HashSet;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

/// A queue whose pages have the fewest items, and that has no item in memory before it is read.
fn paged(store: &Store) -> DurableQueue<u64> {
    store.builder("numbers").memory(0).build().unwrap()
}

fn check(queue: &DurableQueue<u64>) {
    queue.stats().check().unwrap();
}

#[test]
fn a_backlog_is_popped_in_its_order() {
    let files = directory();
    let store = open(&files);
    let numbers = paged(&store);
    for number in 0..100 {
        numbers.push(number).unwrap();
        assert_eq!(numbers.len() as u64, number + 1);
        check(&numbers);
    }
    for number in 0..40 {
        assert_eq!(numbers.pop().unwrap(), number);
        check(&numbers);
    }
    numbers.push_batch(100..150).unwrap();
    drop((numbers, store));
    let store = open(&files);
    let numbers = paged(&store);
    assert_eq!((numbers.len(), numbers.weight()), (110, 110));
    check(&numbers);
    assert!(numbers.pop_batch(60).unwrap().into_iter().eq(40..100));
    numbers.push_batch(150..155).unwrap();
    let mut handle = numbers.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(30).unwrap().len(), 30);
    tx.push(155).unwrap();
    assert_eq!((tx.staged(), numbers.len()), (1, 25));
    drop(tx);
    assert_eq!(numbers.len(), 55);
    numbers.close().unwrap();
    assert!(numbers.push(0).unwrap_err().is_closed());
    assert!(numbers.iter().map(Result::unwrap).eq(100..155));
    assert!(numbers.pop().unwrap_err().is_closed());
    check(&numbers);
}

#[test]
fn what_was_delivered_before_is_the_first() {
    let files = directory();
    let build = || {
        let builder = open(&files).builder("numbers").memory(0);
        builder.max_attempts(3).build().unwrap()
    };
    let numbers = build();
    numbers.push_batch(0..60_u64).unwrap();
    let tx = numbers.begin_owned();
    tx.pop_batch(40).unwrap();
    let second = Duration::from_secs(3600);
    tx.abort();
    let tx = numbers.begin_owned();
    let first = tx.pop().unwrap();
    tx.retry_after(first, second).unwrap();
    tx.commit().unwrap();
    drop(numbers);
    let numbers = build();
    assert_eq!((numbers.len(), numbers.stats().delayed), (59, 1));
    check(&numbers);
    let tx = numbers.begin_owned();
    let items: Vec<_> = tx
        .pop_batch(59)
        .unwrap()
        .map(|it| (*it, it.attempts()))
        .collect();
    let expected = (1..60).map(|number| (number, if number < 40 { 2 } else { 1 }));
    assert!(items.into_iter().eq(expected));
    tx.commit().unwrap();
    assert!(numbers.pop().unwrap_err().is_empty());
}

#[test]
fn items_that_are_on_the_disk_only_are_removed_there() {
    let files = directory();
    let store = open(&files);
    let numbers = paged(&store);
    numbers.push_batch(0..100).unwrap();
    let tx = numbers.begin_owned();
    tx.pop_batch(3).unwrap();
    let mut seen = Vec::new();
    let count = numbers.peek_each(|number| seen.push(*number)).unwrap();
    assert_eq!(count, 97);
    seen.sort_unstable();
    assert!(seen.into_iter().eq(3..100));
    let mut calls = 0;
    let removed = numbers.retain(|number, _| {
        calls += 1;
        number % 3 == 0
    });
    assert_eq!((removed.unwrap(), calls, numbers.len()), (64, 97, 33));
    check(&numbers);
    tx.abort();
    let popped = numbers.pop_batch(10).unwrap();
    assert_eq!(popped, [0, 1, 2, 3, 6, 9, 12, 15, 18, 21]);
    assert_eq!(numbers.clear().unwrap(), 26);
    assert_eq!((numbers.len(), numbers.is_empty()), (0, true));
    numbers.push_batch(0..50).unwrap();
    assert_eq!(numbers.clear_all().unwrap(), 50);
    check(&numbers);
    numbers.push(7).unwrap();
    drop((numbers, store));
    let numbers = paged(&open(&files));
    assert_eq!((numbers.pop().unwrap(), numbers.len()), (7, 0));
}

#[test]
fn removed_items_may_come_into_memory_meanwhile() {
    let files = directory();
    let store = open(&files);
    let numbers = paged(&store);
    numbers.push_batch(0..100).unwrap();
    let mut popped = Vec::new();
    let removed = numbers.retain(|number, _| {
        if *number == 60 {
            popped = numbers.pop_batch(80).unwrap();
        }
        *number < 20
    });
    popped.extend(numbers.pop_batch(100).unwrap());
    let removed = removed.unwrap();
    assert_eq!(popped.len() + removed, 100);
    check(&numbers);
    drop((numbers, store));
    assert_eq!(paged(&open(&files)).len(), 0);
}

#[test]
fn a_queue_with_a_backlog_is_not_idle() {
    let files = directory();
    let numbers = paged(&open(&files));
    let tx = numbers.begin_owned();
    tx.push(1).unwrap();
    assert!(!numbers.wait_idle_timeout(Duration::ZERO));
    drop(tx);
    assert!(numbers.wait_idle_timeout(Duration::ZERO));
    numbers.push_batch(0..50).unwrap();
    while numbers.pop().is_ok() {
        assert_eq!(
            numbers.wait_idle_timeout(Duration::ZERO),
            numbers.is_empty()
        );
    }
    numbers.wait_idle();
}

#[test]
fn a_closed_queue_gives_what_an_open_transaction_pushes() {
    let files = directory();
    let numbers = paged(&open(&files));
    let tx = numbers.begin_owned();
    tx.push_batch(0..20).unwrap();
    numbers.close().unwrap();
    // What it has staged itself keeps it not waiting.
    assert!(tx.pop_blocking().unwrap_err().is_empty());
    thread::scope(|scope| {
        let popper = scope.spawn(|| numbers.iter().map(Result::unwrap).eq(0..20));
        tx.commit().unwrap();
        assert!(popper.join().unwrap());
    });
}

#[test]
fn a_transaction_that_waits_has_its_pushes_in_memory() {
    let files = directory();
    let numbers = paged(&open(&files));
    let tx = numbers.begin_owned();
    tx.push_batch(0..3).unwrap();
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            ready.wait();
            assert!(tx.pop_blocking().unwrap_err().is_empty());
            assert_eq!(tx.staged(), 3);
            tx.commit().unwrap();
        });
        ready.wait();
        numbers.close().unwrap();
        waiter.join().unwrap();
    });
    let mut left = numbers.pop_batch(9).unwrap();
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2]);
    check(&numbers);
}

/// Pushes the numbers of a producer, some of them after an abort.
fn produce(numbers: &DurableQueue<u64>, of: impl Iterator<Item = u64>) {
    let mut handle = numbers.handle();
    for number in of {
        let tx = handle.begin();
        tx.push_blocking(number).unwrap();
        if number % 7 == 0 {
            drop(tx);
            handle.push_blocking(number).unwrap();
        } else {
            tx.commit().unwrap();
        }
    }
}

/// Pops until the queue is closed and drained; aborts some deliveries.
fn consume(numbers: &DurableQueue<u64>) -> Vec<u64> {
    let (mut handle, mut popped) = (numbers.handle(), Vec::new());
    loop {
        let tx = handle.begin();
        let Ok((number, attempts)) = tx.pop_blocking().map(|item| (*item, item.attempts())) else {
            return popped;
        };
        if number % 5 == 0 && attempts == 1 {
            drop(tx);
        } else {
            popped.push(number);
            tx.commit().unwrap();
        }
    }
}

#[test]
fn commits_and_aborts_of_many_threads() {
    let most = 2_000;
    for (memory, capacity) in [(0, usize::MAX), (10_000, usize::MAX), (0, 30)] {
        let files = directory();
        let at_most = Duration::from_millis(10);
        let options = options().durability(Durability::Buffered { at_most });
        let store = options.open(files.path()).unwrap();
        let numbers = store.builder("numbers").memory(memory);
        let numbers = numbers.capacity(capacity).build().unwrap();
        let mut popped = thread::scope(|scope| {
            let numbers = &numbers;
            let consumers = [0; 2].map(|_| scope.spawn(|| consume(numbers)));
            let producers =
                [0, 1].map(|first| scope.spawn(move || produce(numbers, (first..most).step_by(2))));
            for producer in producers {
                producer.join().unwrap();
            }
            numbers.close().unwrap();
            consumers.map(|it| it.join().unwrap()).concat()
        });
        popped.sort_unstable();
        assert!(popped.into_iter().eq(0..most));
        assert!(numbers.is_empty());
        check(&numbers);
        drop((numbers, store));
        assert_eq!(paged(&open(&files)).len(), 0);
    }
}

#[test]
fn items_on_the_disk_only_take_room() {
    let files = directory();
    let open = |capacity| {
        let numbers = open(&files).builder("numbers").memory(0);
        numbers.capacity(capacity).build().unwrap()
    };
    let numbers: DurableQueue<u64> = open(20);
    numbers.push_batch(0..19).unwrap();
    let refused = numbers.push_batch([19, 20]).unwrap_err();
    assert!(refused.is_full());
    assert_eq!(refused.into_inner(), Some(vec![19, 20]));
    let tx = numbers.begin_owned();
    tx.push(19).unwrap();
    assert!(numbers.push(20).unwrap_err().is_full());
    drop(tx);
    numbers.push(19).unwrap();
    let tx = numbers.begin_owned();
    tx.pop().unwrap();
    tx.push(20).unwrap();
    assert!(tx.push(21).unwrap_err().is_full());
    tx.commit().unwrap();
    assert!(numbers.is_full());
    let mut waiting = Box::pin(numbers.push_async(21));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(waiting);
    thread::scope(|scope| {
        let push = scope.spawn(|| numbers.push_blocking(21));
        assert_eq!(numbers.pop().unwrap(), 1);
        push.join().unwrap().unwrap();
    });
    assert_eq!((numbers.len(), numbers.weight()), (20, 20));
    assert_eq!(numbers.retain(|number, _| number % 2 == 0).unwrap(), 10);
    numbers.push_batch(22..32).unwrap();
    assert!(numbers.is_full());
    check(&numbers);
    drop(numbers);
    let numbers = open(9);
    assert!(numbers.is_full());
    assert_eq!(numbers.pop_batch(11).unwrap().len(), 11);
    numbers.push_batch(32..43).unwrap(); // it has as much room as it had items
    assert!(numbers.push(43).unwrap_err().is_full());
    numbers.close().unwrap();
    assert_eq!(numbers.iter().map(Result::unwrap).count(), 20);
    check(&numbers);
}

#[test]
fn items_on_the_disk_only_take_room_of_a_shared_budget() {
    let files = directory();
    let store = open(&files);
    let open = |name, budget: &Budget| {
        let numbers = store.builder::<u64>(name).memory(0);
        numbers.budget(budget).build()
    };
    let budget = Budget::new(30);
    let (one, other) = (
        open("one", &budget).unwrap(),
        open("other", &budget).unwrap(),
    );
    one.push_batch(0..25).unwrap();
    other.push_batch(0..5).unwrap();
    assert!(other.push(5).unwrap_err().is_full());
    assert_eq!((one.pop_batch(10).unwrap().len(), budget.free()), (10, 10));
    drop(one);
    assert_eq!(budget.free(), 25);
    assert!(matches!(
        open("one", &Budget::new(14)),
        Err(StoreError::NoRoom)
    ));
    let one = open("one", &budget).unwrap();
    assert_eq!((one.len(), budget.free()), (15, 10));
    assert_eq!((one.clear_all().unwrap(), budget.free()), (15, 25));
}

#[test]
fn a_pool_works_a_backlog_off() {
    let files = directory();
    let numbers = paged(&open(&files));
    numbers.push_batch(0..500).unwrap();
    let done = Arc::new(Mutex::new(HashSet::new()));
    let by_workers = Arc::clone(&done);
    let workers = Workers::builder(&numbers)
        .threads(2)
        .run(move |number, tx| {
            if *number < 100 {
                tx.push(*number + 1_000)?;
            }
            assert!(by_workers.lock().unwrap().insert(*number));
            Ok::<_, PushError<u64>>(())
        });
    numbers.wait_idle();
    numbers.close().unwrap();
    assert_eq!(workers.join().done, 600);
    assert_eq!(done.lock().unwrap().len(), 600);
    check(&numbers);
}
