//! Tests that the cost of a call does not grow with the number of items that were returned, or that its transaction holds, nor
//! with the number of handles.

use crate::order::Order;
use crate::sync::visits_of;
use crate::{Fifo, Leased, ManualClock, OwnedTransaction, Pace, PopError, Queue, Transaction};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// How many items, runs and handles there are.
const COUNT: usize = 1_000;
const SECOND: Duration = Duration::from_secs(1);

fn paced() -> Queue<usize> {
    let pace = Pace::rate(1_000_000, SECOND).burst(u32::MAX);
    let clock = ManualClock::new();
    Queue::builder().pace(pace).clock(clock).build()
}

fn leased() -> Queue<usize, Leased<Fifo>> {
    let clock = ManualClock::new();
    Queue::builder().leased(SECOND).clock(clock).build()
}

/// A queue in which each of many items was returned by a transaction of its own.
fn returned_one_by_one(queue: &Queue<usize>) {
    queue.handle().push_batch(0..COUNT).unwrap();
    let mut handles: Vec<_> = (0..COUNT).map(|_| queue.handle()).collect();
    let open: Vec<Transaction<'_, usize>> =
        handles.iter_mut().map(|handle| handle.begin()).collect();
    for tx in &open {
        tx.pop().unwrap();
    }
}

/// A pop of a closed queue, of one with a rate limit, and of one that limits the held items asks whether it is empty.
#[test]
fn a_pop_does_not_visit_all_returned_runs() {
    let closed = Queue::unbounded();
    returned_one_by_one(&closed);
    closed.close();
    let paced = paced();
    returned_one_by_one(&paced);
    let limited = Queue::builder().max_held(COUNT).build();
    returned_one_by_one(&limited);
    for queue in [closed, paced, limited] {
        let mut handle = queue.handle();
        let visits = visits_of(|| {
            for _ in 0..COUNT {
                let tx = handle.begin();
                tx.pop().unwrap();
                tx.commit();
            }
            assert!(matches!(
                queue.pop(),
                Err(PopError::Empty | PopError::Closed)
            ));
        });
        assert!(visits <= 4 * COUNT, "{visits} visits of {COUNT} runs");
    }
}

struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(self: Arc<Self>) {}
}

/// A queue is closed, a task waits, and many transactions end: each asks whether that was the last one.
#[test]
fn an_end_does_not_read_the_counters_of_all_handles() {
    let queue = Queue::unbounded();
    queue.handle().push_batch(0..COUNT).unwrap();
    let mut handles: Vec<_> = (0..COUNT).map(|_| queue.handle()).collect();
    let open = handles.iter_mut().map(|handle| handle.begin());
    let open: Vec<Transaction<'_, usize>> = open.collect();
    for tx in &open {
        tx.pop().unwrap();
    }
    queue.close();
    let mut waiting = queue.handle();
    let mut wait = waiting.pop_async();
    let waker = Waker::from(Arc::new(NoopWaker));
    let mut poll = || Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    let visits = visits_of(|| open.into_iter().for_each(|tx| drop(tx.commit())));
    assert!(visits <= 4 * COUNT, "{visits} visits of {COUNT} handles");
    assert!(poll().is_ready());
}

type Return<O> = fn(&mut OwnedTransaction<usize, O>);

/// Bounds the searches for the leases, tokens and places of many held items, which leave their transaction.
fn assert_returns_are_cheap<O: Order<usize>>(queue: impl Fn() -> Queue<usize, O>) {
    let log = COUNT.ilog2() as usize;
    let returns: [Return<O>; 4] = [
        |tx| tx.retry_all_after(Duration::ZERO).unwrap(),
        |tx| tx.retry_all_after(SECOND).unwrap(),
        |tx| tx.fail_all("no").unwrap(),
        |tx| {
            let mut items: Vec<_> = (0..COUNT).map(|_| tx.pop().unwrap()).collect();
            while let Some(item) = items.pop() {
                tx.retry(item).unwrap();
            }
        },
    ];
    for (number, return_all) in returns.into_iter().enumerate() {
        let queue = queue();
        queue.handle().push_batch(0..2 * COUNT).unwrap();
        let mut tx = queue.begin_owned();
        assert_eq!(tx.pop_batch(COUNT).len(), COUNT);
        let visits = visits_of(|| return_all(&mut tx));
        assert!(visits <= 4 * log * COUNT, "{visits} visits, {number}");
        drop(tx);
        queue.stats().check().unwrap();
    }
}

#[test]
fn items_are_returned_without_a_search_for_each() {
    assert_returns_are_cheap(Queue::<usize>::unbounded);
    assert_returns_are_cheap(leased);
    assert_returns_are_cheap(paced);
    assert_returns_are_cheap(|| Queue::builder().max_held(2 * COUNT).build());
}
