//! All events that wake a waiter for one item or for room for one.

use std::mem;

use super::panics;
use requeue::{commit_all, Queue};

/// Makes an item ready or room free; calls `meanwhile` once right before the event.
pub(crate) type Event = fn(queue: &Queue<u32>, meanwhile: &mut dyn FnMut());

/// The item of each event.
pub(crate) const ITEM: u32 = 7;

/// The events that make one item ready in an empty queue.
pub(crate) const ARRIVALS: [(&str, Event); 14] = [
    ("a push without a handle", |queue, meanwhile| {
        meanwhile();
        queue.push(ITEM).unwrap();
    }),
    ("a push", |queue, meanwhile| {
        meanwhile();
        queue.handle().push(ITEM).unwrap();
    }),
    ("a blocking push", |queue, meanwhile| {
        meanwhile();
        queue.handle().push_blocking(ITEM).unwrap();
    }),
    ("a push future", |queue, meanwhile| {
        let mut handle = queue.handle();
        let future = handle.push_async(ITEM);
        meanwhile();
        assert!(super::futures::poll_once(future).is_ready());
    }),
    ("a batch", |queue, meanwhile| {
        meanwhile();
        queue.handle().push_batch([ITEM]).unwrap();
    }),
    ("a commit", |queue, meanwhile| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.push(ITEM).unwrap();
        meanwhile();
        tx.commit();
    }),
    ("a commit over several queues", |queue, meanwhile| {
        let other = Queue::unbounded();
        let (mut a, mut b) = (other.handle(), queue.handle());
        let (tx_a, tx_b) = (a.begin(), b.begin());
        tx_a.push('a').unwrap();
        tx_b.push(ITEM).unwrap();
        meanwhile();
        commit_all((tx_a, tx_b));
    }),
    ("a transact", |queue, meanwhile| {
        let mut handle = queue.handle();
        let pushed = handle.transact(|tx| {
            tx.push(ITEM).unwrap();
            meanwhile();
            Ok::<_, ()>(())
        });
        pushed.unwrap();
    }),
    ("an abort", |queue, meanwhile| {
        let mut handle = queue.handle();
        handle.push(ITEM).unwrap();
        let tx = handle.begin();
        tx.pop().unwrap();
        meanwhile();
        tx.abort();
    }),
    ("an abort of a batch", |queue, meanwhile| {
        let mut handle = queue.handle();
        handle.push(ITEM).unwrap();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(3).len(), 1);
        meanwhile();
        drop(tx);
    }),
    ("a panic in a transaction", |queue, meanwhile| {
        let mut handle = queue.handle();
        handle.push(ITEM).unwrap();
        assert!(panics(|| {
            let tx = handle.begin();
            tx.pop().unwrap();
            meanwhile();
            panic!("the worker fails");
        }));
    }),
    (
        "a dropped handle with a forgotten transaction",
        |queue, meanwhile| {
            let mut handle = queue.handle();
            handle.push(ITEM).unwrap();
            let tx = handle.begin();
            tx.pop().unwrap();
            mem::forget(tx);
            meanwhile();
            drop(handle);
        },
    ),
    (
        "a used handle with a forgotten transaction",
        |queue, meanwhile| {
            let mut handle = queue.handle();
            handle.push(ITEM).unwrap();
            let tx = handle.begin();
            tx.pop().unwrap();
            mem::forget(tx);
            meanwhile();
            drop(handle.begin());
        },
    ),
    (
        "an abort of an item that came without a handle",
        |queue, meanwhile| {
            queue.push(ITEM).unwrap();
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.pop().unwrap();
            meanwhile();
            tx.abort();
        },
    ),
];

/// The events that free the only permit of a queue of capacity 1. Each leaves it empty.
pub(crate) const DEPARTURES: [(&str, Event); 12] = [
    ("a pop without a handle", |queue, meanwhile| {
        queue.push(0).unwrap();
        meanwhile();
        queue.pop().unwrap();
    }),
    ("a pop", |queue, meanwhile| {
        let mut handle = queue.handle();
        handle.push(0).unwrap();
        meanwhile();
        handle.pop().unwrap();
    }),
    ("a blocking pop", |queue, meanwhile| {
        queue.push(0).unwrap();
        meanwhile();
        queue.handle().pop_blocking().unwrap();
    }),
    ("a pop future", |queue, meanwhile| {
        queue.push(0).unwrap();
        let mut handle = queue.handle();
        let future = handle.pop_async();
        meanwhile();
        assert!(super::futures::poll_once(future).is_ready());
    }),
    ("a batch of pops", |queue, meanwhile| {
        queue.push(0).unwrap();
        meanwhile();
        assert_eq!(queue.handle().pop_batch(3, &mut Vec::new()), 1);
    }),
    ("a commit of a pop", |queue, meanwhile| {
        let mut handle = queue.handle();
        handle.push(0).unwrap();
        let tx = handle.begin();
        tx.pop().unwrap();
        meanwhile();
        tx.commit();
    }),
    (
        "a commit of a pop over several queues",
        |queue, meanwhile| {
            let other = Queue::<char>::unbounded();
            let (mut a, mut b) = (other.handle(), queue.handle());
            b.push(0).unwrap();
            let (tx_a, tx_b) = (a.begin(), b.begin());
            tx_b.pop().unwrap();
            meanwhile();
            commit_all((tx_a, tx_b));
        },
    ),
    ("an abort of a push", |queue, meanwhile| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.push(0).unwrap();
        meanwhile();
        tx.abort();
    }),
    (
        "a panic in a transaction that pushed",
        |queue, meanwhile| {
            let mut handle = queue.handle();
            assert!(panics(|| {
                let tx = handle.begin();
                tx.push(0).unwrap();
                meanwhile();
                panic!("the worker fails");
            }));
        },
    ),
    (
        "a dropped handle with a forgotten push",
        |queue, meanwhile| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.push(0).unwrap();
            mem::forget(tx);
            meanwhile();
            drop(handle);
        },
    ),
    ("a used handle with a forgotten push", |queue, meanwhile| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.push(0).unwrap();
        mem::forget(tx);
        meanwhile();
        drop(handle.begin());
    }),
    ("a drain", |queue, meanwhile| {
        queue.push(0).unwrap();
        meanwhile();
        assert_eq!(queue.iter().next(), Some(0));
    }),
];
