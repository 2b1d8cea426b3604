//! Fair queues used by several threads.

use crate::common::{assert_at_rest, ends};
use requeue::{FairQueue, PopError, Queue, Workers};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

const ROUNDS: usize = 2_000;

/// There is one item for each of the two, and one more that a third thread takes and gives back.
#[test]
fn no_popper_finds_it_empty_while_something_is_ready() {
    for serial in [false, true] {
        let builder = Queue::builder().fair_by(|item: &usize| *item);
        let queue = if serial { builder.serial() } else { builder }.build();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            for id in 0..2 {
                let (queue, barrier) = (&queue, &barrier);
                scope.spawn(move || {
                    let mut handle = queue.handle();
                    for round in 0..ROUNDS {
                        handle.push(2 * round + id).unwrap();
                        barrier.wait();
                        let tx = handle.begin();
                        assert!(tx.pop().is_ok(), "empty in round {round}");
                        if round % 3 == id {
                            tx.abort();
                            handle.pop().unwrap();
                        } else {
                            tx.commit();
                        }
                        barrier.wait();
                    }
                });
            }
        });
        assert_at_rest(&queue, 0, 0);
    }
}

#[test]
fn each_item_is_delivered_once_and_those_of_a_producer_and_key_in_order() {
    const KEYS: usize = 7;
    const ITEMS: usize = 20_000;
    let queue = FairQueue::by(|&(_, item): &(usize, usize)| item % KEYS);
    let seen = Mutex::new(Vec::new());
    let left = AtomicUsize::new(2);
    thread::scope(|scope| {
        for producer in 0..2 {
            let (queue, left) = (&queue, &left);
            scope.spawn(move || {
                let mut handle = queue.handle();
                for item in 0..ITEMS {
                    handle.push((producer, item)).unwrap();
                }
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    queue.close();
                }
            });
        }
        scope.spawn(|| {
            let mut handle = queue.handle();
            let mut taken = Vec::new();
            for round in 0.. {
                let tx = handle.begin();
                if tx.pop_blocking().is_err() {
                    break;
                }
                if round % 5 == 0 {
                    tx.abort();
                } else {
                    taken.extend(tx.commit());
                }
            }
            seen.lock().unwrap().extend(taken);
        });
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 2 * ITEMS);
    for producer in 0..2 {
        for key in 0..KEYS {
            let items = seen
                .iter()
                .filter(|(from, item)| (*from, item % KEYS) == (producer, key));
            assert!(items.map(|(_, item)| *item).eq((key..ITEMS).step_by(KEYS)));
        }
    }
    assert_at_rest(&queue, 0, 0);
}

/// Workers that abort sometimes, and push follow-up items with the same key.
#[test]
fn serial_keys_are_worked_off_in_order_by_many_workers() {
    const KEYS: usize = 3;
    const ITEMS: usize = 3_000;
    ends(|| {
        let queue = Queue::builder()
            .fair_by(|item: &usize| item % KEYS)
            .serial()
            .build();
        queue.handle().push_batch(0..ITEMS).unwrap();
        let busy: [AtomicBool; KEYS] = Default::default();
        let done: [Mutex<Vec<usize>>; KEYS] = Default::default();
        queue.close();
        let report = thread::scope(|scope| {
            let workers = Workers::builder(&queue).threads(4);
            let workers = workers.run_scoped(scope, |item, _tx| {
                let key = *item % KEYS;
                assert!(!busy[key].swap(true, Ordering::SeqCst), "two of key {key}");
                thread::yield_now();
                busy[key].store(false, Ordering::SeqCst);
                if *item % 7 == 0 && item.attempts() == 1 {
                    return Err("not the first time");
                }
                done[key].lock().unwrap().push(*item);
                Ok(())
            });
            workers.join()
        });
        assert_eq!((report.done, report.panicked), (ITEMS as u64, 0));
        for (key, done) in done.into_iter().enumerate() {
            let expected = (key..ITEMS).step_by(KEYS);
            assert!(done.into_inner().unwrap().into_iter().eq(expected));
        }
        assert_eq!(queue.pop(), Err(PopError::Closed));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn workers_and_submitters_use_a_fair_queue_as_any_other() {
    ends(|| {
        let queue = Queue::builder()
            .fair_by(|item: &u32| item % 4)
            .capacity(8)
            .build();
        let sum = Mutex::new(0);
        let report = thread::scope(|scope| {
            let workers = Workers::builder(&queue).threads(2);
            let workers = workers.run_scoped(scope, |item, _tx| {
                *sum.lock().unwrap() += *item;
                Ok::<_, Infallible>(())
            });
            let mut handle = queue.handle();
            for item in 0..1_000 {
                handle.push_blocking(item).unwrap();
            }
            queue.close();
            workers.join()
        });
        assert_eq!(report.done, 1_000);
        assert_eq!(sum.into_inner().unwrap(), (0..1_000).sum::<u32>());
        assert_at_rest(&queue, 0, 0);
    });
}
