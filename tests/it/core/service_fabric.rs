//! The code cases of Service Fabric's `ReliableConcurrentQueue` documentation.
//!
//! Where that documentation leaves an order open and `requeue` guarantees one, the guarantee is checked.

use std::sync::Barrier;
use std::thread;

use crate::common::{drain, filled, panics};
use requeue::{Handle, PopError, Queue};

/// The documented content of the queue before a dequeue.
const SIX: [u32; 6] = [10, 20, 30, 40, 50, 60];

/// `EnqueueAsync`, case 1: a single task enqueues 10 and 20 in one transaction.
#[test]
fn single_enqueue_task() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(10).unwrap();
    tx.push(20).unwrap();
    assert!(queue.is_empty());
    tx.commit();
    assert_eq!(drain(&queue), [10, 20]);
}

/// `EnqueueAsync`, case 2: two tasks in parallel enqueue 10, 20 and 30, 40.
#[test]
fn parallel_enqueue_tasks() {
    let queue = Queue::unbounded();
    let both_staged = Barrier::new(2);
    let enqueue = |items: [u32; 2]| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        for item in items {
            tx.push(item).unwrap();
        }
        both_staged.wait();
        tx.commit();
    };
    thread::scope(|scope| {
        scope.spawn(|| enqueue([10, 20]));
        scope.spawn(|| enqueue([30, 40]));
    });
    let left = drain(&queue);
    let (low, high): (Vec<_>, Vec<_>) = left.into_iter().partition(|&item| item < 30);
    assert_eq!(low, [10, 20]);
    assert_eq!(high, [30, 40]);
}

/// `TryDequeueAsync`, case 1: a single task dequeues three of six items.
#[test]
fn single_dequeue_task() {
    let queue = filled(SIX);
    let mut handle = queue.handle();
    let tx = handle.begin();
    for _ in 0..3 {
        tx.pop().unwrap();
    }
    assert_eq!(tx.commit().collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(drain(&queue), [40, 50, 60]);
}

/// `TryDequeueAsync`, case 2: two tasks in parallel dequeue two items each, none of them twice.
#[test]
fn parallel_dequeue_tasks() {
    let queue = filled(SIX);
    let both_hold = Barrier::new(2);
    let dequeue = || {
        let mut handle = queue.handle();
        let tx = handle.begin();
        let items = [*tx.pop().unwrap(), *tx.pop().unwrap()];
        both_hold.wait();
        tx.commit();
        items
    };
    let [mine, other] = thread::scope(|scope| {
        let other = scope.spawn(dequeue);
        [dequeue(), other.join().unwrap()]
    });
    assert!(mine.is_sorted() && other.is_sorted());
    let mut taken = [mine, other].concat();
    taken.sort_unstable();
    assert_eq!(taken, [10, 20, 30, 40]);
    assert_eq!(drain(&queue), [50, 60]);
}

/// `TryDequeueAsync`, case 3: an aborted transaction puts 10 and 20 back at the head.
#[test]
fn dequeue_then_abort() {
    let queue = filled(SIX);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!([*tx.pop().unwrap(), *tx.pop().unwrap()], [10, 20]);
    tx.abort();
    assert_eq!(drain(&queue), SIX);
}

/// `TryDequeueAsync`, case 3 at its smallest: 10 and 20 of three items are aborted, 30 follows them.
#[test]
fn abort_of_two_of_three() {
    let queue = filled([10, 20, 30]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.abort();
    assert_eq!(handle.pop(), Ok(10));
    assert_eq!(handle.pop(), Ok(20));
    assert_eq!(handle.pop(), Ok(30));
    assert_eq!(handle.pop(), Err(PopError::Empty));
}

/// `TryDequeueAsync`, the last remark: the same holds for every transaction that is not committed.
#[test]
fn dequeue_without_commit() {
    let dropped = |handle: &mut Handle<u32>| assert_eq!(handle.begin().pop_batch(2).len(), 2);
    let failed = |handle: &mut Handle<u32>| {
        let outcome: Result<(), ()> = handle.transact(|tx| {
            assert_eq!(tx.pop_batch(2).len(), 2);
            Err(())
        });
        assert!(outcome.is_err());
    };
    let panicked = |handle: &mut Handle<u32>| {
        assert!(panics(|| {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(2).len(), 2);
            panic!("the task fails");
        }));
    };
    for end in [dropped, failed, panicked] {
        let queue = filled(SIX);
        end(&mut queue.handle());
        assert_eq!(drain(&queue), SIX);
    }
}

/// Usage guideline: the queue does not read its own writes.
#[test]
fn own_writes_are_not_read() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(10).unwrap();
    assert_eq!(tx.pop().err(), Some(PopError::Empty));
    tx.commit();
    assert_eq!(handle.pop(), Ok(10));
}

/// Usage guideline: an item dequeued by one transaction is hidden from another until it aborts.
#[test]
fn dequeued_items_are_hidden() {
    let queue = filled([10]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!(tx_a.pop().as_deref(), Ok(&10));
    assert_eq!(tx_b.pop().err(), Some(PopError::Empty));
    tx_a.abort();
    assert_eq!(tx_b.pop().as_deref(), Ok(&10));
}

/// Usage guideline: the count is not transactional; it includes only the ready items.
#[test]
fn count_is_not_transactional() {
    let queue = filled(SIX);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(70).unwrap();
    assert_eq!(queue.len(), 6);
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_eq!(queue.len(), 4);
    tx.commit();
    assert_eq!(queue.len(), 5);
}

/// Takes up to `size` items in one transaction, as all documented patterns do.
fn dequeue_batch(handle: &mut Handle<u32>, size: usize) -> Vec<u32> {
    let tx = handle.begin();
    while tx.held() < size && tx.pop().is_ok() {}
    tx.commit().collect()
}

/// Pattern "batch dequeues": a consumer takes up to five items per transaction.
#[test]
fn batch_dequeues() {
    let queue = filled(0..12);
    let mut handle = queue.handle();
    assert_eq!(dequeue_batch(&mut handle, 5), [0, 1, 2, 3, 4]);
    assert_eq!(dequeue_batch(&mut handle, 5), [5, 6, 7, 8, 9]);
    assert_eq!(dequeue_batch(&mut handle, 5), [10, 11]);
    assert!(dequeue_batch(&mut handle, 5).is_empty());
}

/// Pattern "notification-based processing": a consumer waits until the count reaches a threshold.
#[test]
fn threshold_on_the_count() {
    const THRESHOLD: usize = 5;
    let queue = Queue::unbounded();
    let mut processed = Vec::new();
    thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let mut handle = queue.handle();
            (0..23).for_each(|item| handle.push(item).unwrap());
        });
        let mut consumer = queue.handle();
        while queue.len() >= THRESHOLD || !producer.is_finished() {
            if queue.len() < THRESHOLD {
                thread::yield_now();
                continue;
            }
            processed.extend(dequeue_batch(&mut consumer, THRESHOLD));
        }
    });
    assert!(queue.len() < THRESHOLD);
    processed.extend(drain(&queue));
    assert_eq!(processed, (0..23).collect::<Vec<_>>());
}

/// The same pattern without polling: the consumer sleeps until a batch of that size is ready. Only `close` marks the
/// end of the items.
#[test]
fn threshold_by_waiting() {
    const THRESHOLD: usize = 5;
    let queue = Queue::unbounded();
    let batches = thread::scope(|scope| {
        let mut consumer = queue.handle();
        let consumer = scope.spawn(move || {
            let mut batches = Vec::new();
            loop {
                let mut batch = Vec::new();
                consumer.pop_batch_blocking(THRESHOLD, 8, &mut batch);
                if batch.is_empty() {
                    return batches;
                }
                batches.push(batch);
            }
        });
        let mut producer = queue.handle();
        for item in 0..23 {
            producer.push(item).unwrap();
            thread::yield_now(); // a consumer with a shorter timeout may take it now
        }
        assert!(queue.close());
        consumer.join().unwrap()
    });
    let (last, full) = batches.split_last().unwrap();
    assert!(full
        .iter()
        .all(|batch| (THRESHOLD..=8).contains(&batch.len())));
    assert!(last.len() <= 8);
    assert_eq!(batches.concat(), (0..23).collect::<Vec<_>>());
}

/// The documentation asks for a limit of the items in memory: a producer that is faster than its consumer waits.
#[test]
fn memory_is_limited_by_the_capacity() {
    const CAPACITY: usize = 4;
    let queue = Queue::bounded(CAPACITY);
    thread::scope(|scope| {
        let mut producer = queue.handle();
        scope.spawn(move || (0..100).for_each(|item| producer.push_blocking(item).unwrap()));
        let mut consumer = queue.handle();
        for item in 0..100 {
            assert!(queue.stats().pushed <= item + CAPACITY as u64);
            let tx = consumer.begin();
            assert_eq!(tx.pop_blocking().as_deref(), Ok(&item));
            tx.commit();
        }
    });
    assert_eq!(queue.push(0), Ok(()));
}

/// Pattern "best-effort drain": batches until a dequeue finds no item, while all other tasks are stopped.
#[test]
fn best_effort_drain() {
    let queue = Queue::unbounded();
    thread::scope(|scope| {
        for producer in 0..3 {
            let mut handle = queue.handle();
            scope.spawn(move || handle.push_batch(producer * 7..(producer + 1) * 7).unwrap());
        }
    });
    let mut consumer = queue.handle();
    let mut drained = Vec::new();
    loop {
        let batch = dequeue_batch(&mut consumer, 5);
        drained.extend_from_slice(&batch);
        if batch.len() < 5 {
            break;
        }
    }
    drained.sort_unstable();
    assert_eq!(drained, (0..21).collect::<Vec<_>>());
    assert!(queue.is_empty());
}

/// Pattern "peek": an item is processed only if it is greater than 10, else its dequeue is aborted.
#[test]
fn peek_by_abort() {
    let process = |handle: &mut Handle<u32>| {
        let tx = handle.begin();
        let wanted = tx.pop().is_ok_and(|item| *item > 10);
        if !wanted {
            tx.abort();
            return None;
        }
        tx.commit().next()
    };
    let small = filled([10, 20]);
    assert_eq!(process(&mut small.handle()), None);
    assert_eq!(drain(&small), [10, 20]);

    let large = filled([20, 10]);
    assert_eq!(process(&mut large.handle()), Some(20));
    assert_eq!(drain(&large), [10]);
}
