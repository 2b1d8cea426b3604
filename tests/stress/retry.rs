//! Items that are retried while other threads check for due items.

use crate::harness::{on_all_threads, scaled};
use requeue::Queue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// An item that was retried without a delay is ready when the call returns, whatever threads that check for due items
/// do.
#[test]
fn retried_items_are_not_missed() {
    on_all_threads(|threads, _| {
        let queue = Queue::unbounded();
        let stop = AtomicBool::new(false);
        let overlooked = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _ = queue.is_empty();
                    }
                });
            }
            let mut handle = queue.handle();
            let overlooked = (0..scaled(3_000))
                .filter(|&item| {
                    handle.push(item).unwrap();
                    let tx = handle.begin();
                    tx.retry(tx.pop().unwrap()).unwrap();
                    tx.commit();
                    let popped = handle.pop();
                    while popped.is_err() && handle.pop().is_err() {}
                    popped.is_err()
                })
                .count();
            stop.store(true, Ordering::Relaxed);
            overlooked
        });
        assert_eq!(overlooked, 0);
    });
}
