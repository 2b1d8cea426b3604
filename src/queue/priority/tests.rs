//! The time of a scheduled item is removed with the item, however the item is removed.

use crate::order::priority::{sizes, ByPriority};
use crate::order::Source;
use crate::{pop_any, try_commit_all, Expired, Handle, Leased, ManualClock, Queue, Transaction};
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The order of a queue on which an item can be removed in all ways.
type Order = Leased<ByPriority>;
type Worker = Handle<u32, Order>;
type End = fn(&Queue<u32, Order>, &mut Worker, &ManualClock);

/// The number of items whose time the queue stores.
fn times(queue: &Queue<u32, Order>) -> usize {
    sizes(queue.shared().source.registry()).0
}

/// The ways in which a ready item can be removed.
const ENDS: [(&str, End); 13] = [
    ("pop without a handle", |queue, _, _| _ = queue.pop()),
    ("pop", |_, worker, _| _ = worker.pop()),
    ("pop_batch", |_, worker, _| {
        worker.pop_batch(5, &mut Vec::new());
    }),
    ("pop_blocking", |_, worker, _| _ = worker.pop_blocking()),
    ("pop_any", |_, worker, _| {
        pop_any(std::slice::from_mut(worker)).unwrap();
    }),
    ("commit", |_, worker, _| {
        let tx = worker.begin();
        tx.pop().unwrap();
        tx.try_commit().unwrap();
    }),
    ("commit, its items forgotten", |_, worker, _| {
        let tx = worker.begin();
        tx.pop().unwrap();
        mem::forget(tx.try_commit());
        worker.pop().unwrap_err();
    }),
    ("try_commit_all", |queue, worker, _| {
        let mut other = queue.handle();
        let (other, tx) = (other.begin(), worker.begin());
        tx.pop().unwrap();
        assert!(try_commit_all((other, tx)).is_ok());
    }),
    ("transact", |_, worker, _| {
        let item = worker.try_transact(|tx| Ok::<_, Expired>(*tx.pop().unwrap()));
        assert_eq!(item, Ok(7));
    }),
    ("a peek that takes", |_, worker, _| {
        let tx = worker.begin();
        tx.peek().unwrap().take();
        tx.try_commit().unwrap();
    }),
    ("a dead letter", |queue, worker, _| {
        for _ in 0..2 {
            let tx = worker.begin();
            tx.pop().unwrap();
            tx.abort();
        }
        assert_eq!(queue.dead_letters().len(), 1);
    }),
    ("a dead letter after a retry", |queue, worker, clock| {
        for _ in 0..2 {
            let tx = worker.begin();
            tx.retry_after(tx.pop().unwrap(), SECOND).unwrap();
            tx.try_commit().unwrap();
            clock.advance(SECOND);
        }
        assert_eq!(queue.dead_letters().requeue_all(), 1);
    }),
    ("an expired lease", |queue, worker, clock| {
        let tx = worker.begin();
        tx.pop().unwrap();
        clock.advance(SECOND);
        assert!(queue.pop().is_ok());
        assert!(tx.try_commit().is_err());
    }),
];

fn queue() -> (Queue<u32, Order>, ManualClock) {
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.timestamps().leased(SECOND).max_attempts(2).build();
    (queue, clock)
}

#[test]
fn times_are_removed_with_their_items() {
    for (name, end) in ENDS {
        let (queue, clock) = queue();
        let mut worker = queue.handle();
        worker.after(SECOND).push(7).unwrap();
        assert_eq!((times(&queue), queue.len()), (1, 0));
        clock.advance(SECOND);
        assert_eq!((times(&queue), queue.len()), (1, 1));
        end(&queue, &mut worker, &clock);
        assert_eq!(times(&queue), 0, "{name}");
        queue.stats().check().unwrap();
    }
}

#[test]
fn times_are_kept_with_items_that_come_back() {
    let (queue, clock) = queue();
    let mut worker = queue.handle();
    worker.after(SECOND).push(7).unwrap();
    clock.advance(SECOND);
    let tx = worker.begin();
    tx.pop().unwrap();
    tx.abort();
    assert_eq!((times(&queue), queue.len()), (1, 1));
}

#[test]
fn times_are_removed_with_items_that_are_not_pushed() {
    let (queue, _) = queue();
    let mut worker = queue.handle();
    let stage = |tx: &Transaction<'_, u32, Order>| {
        tx.after(SECOND).push(7).unwrap();
        assert_eq!(times(&queue), 1);
    };
    let ends: [fn(Transaction<'_, u32, Order>); 3] =
        [|tx| tx.abort(), |tx| drop(tx), |tx| mem::forget(tx)];
    for end in ends {
        let tx = worker.begin();
        stage(&tx);
        end(tx);
        drop(worker.begin());
        assert_eq!(times(&queue), 0);
    }
    let tx = worker.begin();
    stage(&tx);
    mem::forget(tx);
    drop(worker);
    assert_eq!(times(&queue), 0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut worker = queue.handle();
        let tx = worker.begin();
        stage(&tx);
        panic!("the worker fails");
    }));
    assert!(panicked.is_err());
    assert_eq!(times(&queue), 0);
    let mut worker = queue.handle();
    let tx = worker.begin();
    queue.close();
    assert!(tx.after(SECOND).push(7).is_err());
    assert_eq!(times(&queue), 0);
    drop(tx);
    assert!(worker.after(SECOND).push(7).is_err());
    assert!(queue.after(SECOND).push(7).is_err());
    assert_eq!(times(&queue), 0);
}

#[test]
fn times_are_removed_with_cancelled_items() {
    let (queue, _) = queue();
    let ticket = queue.after(SECOND).push(7).unwrap();
    assert!(queue.reprioritize(ticket, 1));
    assert_eq!(times(&queue), 1);
    assert_eq!(queue.cancel(ticket), Some(7));
    assert_eq!(times(&queue), 0);
}

#[test]
fn times_are_removed_when_items_are_rescheduled() {
    let (queue, clock) = queue();
    let view = queue.priority(1);
    let tickets = [view.after(SECOND), view].map(|view| view.push(7).unwrap());
    for known in 1..3 {
        for seconds in [1, 5, 0] {
            let at = queue.now() + seconds * SECOND;
            assert!(queue.reschedule(tickets[known - 1], at));
            assert_eq!(times(&queue), known);
        }
    }
    clock.advance(SECOND);
    assert_eq!((queue.pop(), times(&queue)), (Ok(7), 1));
    assert_eq!((queue.pop(), times(&queue)), (Ok(7), 0));
}

/// How a transaction stages an item with a time.
type Stage = fn(&Transaction<'_, u32, Order>, Instant);

const STAGES: [Stage; 8] = [
    |tx, at| _ = tx.priority(1).at(at).push(1),
    |tx, at| _ = tx.at(at).push(1),
    |tx, _| _ = tx.after(SECOND).push(1),
    |tx, at| _ = tx.priority(1).at(at).push_blocking(1),
    |tx, at| _ = tx.priority(1).at(at).push_timeout(1, SECOND),
    |tx, at| _ = tx.priority(1).at(at).push_batch([1]),
    |tx, at| _ = tx.at(at).push_batch_blocking([1]),
    |tx, _| _ = tx.after(SECOND).push_batch_timeout([1], SECOND),
];

#[test]
fn a_refused_push_leaves_no_time() {
    for stage in STAGES {
        let (queue, _) = queue();
        let mut handle = queue.handle();
        let tx = handle.begin();
        let at = queue.now() + SECOND;
        let pop = tx.pop_async();
        assert!(catch_unwind(AssertUnwindSafe(|| stage(&tx, at))).is_err());
        assert_eq!(times(&queue), 0);
        drop(pop);
        stage(&tx, at);
        assert_eq!((tx.staged(), times(&queue)), (1, 1));
    }
}
