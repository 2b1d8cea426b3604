//! Items that are aborted again and again, alone or with others.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::iter;
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::common::rng::Rng;
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{Queue, Transaction};

/// Pops and aborts `item` many times, and checks it and its attempts each time.
fn again_and_again<T: Clone + PartialEq + Debug>(item: T) {
    let queue = filled([item.clone()]);
    let mut handle = queue.handle();
    for attempt in 1..=50 {
        let tx = handle.begin();
        let popped = tx.pop().unwrap();
        assert_eq!((&*popped, popped.attempts()), (&item, attempt));
        assert!(tx.pop().is_err());
        tx.abort();
        assert_at_rest(&queue, 1, 0);
    }
    assert_eq!(handle.pop(), Ok(item));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn an_item_of_any_size_comes_back() {
    again_and_again(());
    again_and_again(7_u64);
    again_and_again([3_u8; 1024]);
    again_and_again("text".to_owned());
}

#[test]
fn modifications_of_each_delivery_are_kept() {
    let queue = filled([vec![0]]);
    let mut handle = queue.handle();
    for attempt in 1..20 {
        let tx = handle.begin();
        let mut item = tx.pop().unwrap();
        item.push(attempt);
        assert_eq!(item.attempts(), attempt);
        tx.abort();
    }
    assert!(handle.pop().unwrap().into_iter().eq(0..20));
}

#[test]
fn a_panic_in_between_is_one_attempt() {
    let queue = filled([7_u64, 8]);
    let mut handle = queue.handle();
    for round in 0..10 {
        let failed = panics(|| {
            let tx = handle.begin();
            let item = tx.pop().unwrap();
            assert_eq!((*item, item.attempts()), (7, 3 * round + 1));
            panic!("the worker fails");
        });
        assert!(failed);
        let tx = handle.begin();
        assert_eq!(tx.pop().unwrap().attempts(), 3 * round + 2);
        mem::forget(tx);
        let tx = handle.begin();
        assert_eq!(tx.pop().unwrap().attempts(), 3 * round + 3);
        tx.abort();
    }
    assert_eq!(drain(&queue), [7, 8]);
}

/// An item: the number of its producer and its own, with the number of its delivery.
type Delivered = ((usize, u32), u32);

/// Pops up to `most` items, one by one or together.
fn pop_some(tx: &Transaction<'_, (usize, u32)>, most: usize, together: bool) -> Vec<Delivered> {
    if together {
        let items = tx.pop_batch(most);
        return items.map(|item| (*item, item.attempts())).collect();
    }
    let items = iter::from_fn(|| tx.pop().ok()).take(most);
    items.map(|item| (*item, item.attempts())).collect()
}

/// What is taken of each producer's items, by whatever handle, are the first ones of a list: what is aborted is first
/// again.
#[test]
fn aborted_items_precede_fresh_ones_in_their_order() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let queue = Queue::unbounded();
        let mut producers = [queue.handle(), queue.handle()];
        let mut consumers = [queue.handle(), queue.handle(), queue.handle()];
        let (mut expected, mut next) = ([VecDeque::new(), VecDeque::new()], 0);
        for _ in 0..300 {
            while rng.percent(50) {
                let producer = usize::from(rng.percent(30));
                producers[producer].push((producer, next)).unwrap();
                expected[producer].push_back(((producer, next), 1));
                next += 1;
            }
            let tx = consumers[rng.below(3)].begin();
            let mut held = Vec::new();
            for _ in 0..=rng.below(3) {
                let most = rng.pick(&[1, 1, 2, 5, 40]);
                held.extend(pop_some(&tx, most, rng.percent(50)));
            }
            for item in &held {
                assert_eq!(expected[item.0 .0].pop_front(), Some(*item), "seed {seed}");
            }
            if rng.percent(70) {
                tx.abort();
                for (item, attempts) in held.into_iter().rev() {
                    expected[item.0].push_front((item, attempts + 1));
                }
            } else {
                let items = held.into_iter().map(|(item, _)| item);
                assert!(tx.commit().eq(items), "seed {seed}");
            }
        }
        for (item, _) in pop_some(&consumers[0].begin(), usize::MAX, true) {
            let first = expected[item.0].pop_front();
            assert_eq!(first.map(|first| first.0), Some(item), "seed {seed}");
        }
        assert!(expected.iter().all(VecDeque::is_empty), "seed {seed}");
    }
}

#[test]
fn each_aborted_item_is_dropped_once() {
    let ledger = Ledger::new(6);
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    for _ in 0..5 {
        handle.begin().pop().unwrap();
    }
    let popped = handle.pop().unwrap();
    assert_eq!(popped.id, 0);
    for _ in 0..5 {
        handle.begin().pop().unwrap();
    }
    let tx = handle.begin();
    tx.pop().unwrap();
    drop(tx.commit());
    assert_eq!(ledger.drops(), [0, 1, 0, 0, 0, 0]);
    for _ in 0..5 {
        assert_eq!(handle.begin().pop_batch(2).len(), 2);
    }
    let tx = handle.begin();
    tx.pop().unwrap();
    mem::forget(tx);
    drop(handle);
    assert_eq!(ledger.drops(), [0, 1, 0, 0, 0, 0]);
    drop((queue, popped));
    ledger.assert_each_dropped_once();
}

/// A block that one handle gave back may be adopted by another one.
#[test]
fn threads_pass_aborted_items_on() {
    const ITEMS: usize = 300;
    let ledger = Ledger::new(ITEMS);
    let queue = filled(ledger.items().map(|item| (item, AtomicU32::new(0))));
    thread::scope(|scope| {
        for seed in 0..4 {
            let queue = &queue;
            scope.spawn(move || {
                let (mut handle, mut rng) = (queue.handle(), Rng::new(seed));
                while !queue.is_empty() {
                    let tx = handle.begin();
                    for item in tx.pop_batch(rng.pick(&[1, 1, 1, 2, 9])) {
                        let delivered = 1 + item.1.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(item.attempts(), delivered);
                    }
                    if rng.percent(95) {
                        tx.abort();
                    } else {
                        drop(tx.commit());
                    }
                }
            });
        }
    });
    assert_at_rest(&queue, 0, 0);
    ledger.assert_each_dropped_once();
}
