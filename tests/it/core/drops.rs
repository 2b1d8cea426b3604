//! Every item is dropped exactly once, wherever it is when its queue is dropped.

use std::mem;
use std::sync::Arc;
use std::thread;

use crate::common::{filled, panics, Ledger, Tracked};
use requeue::{Handle, Queue};

#[test]
fn ready_items_go_with_the_queue() {
    let ledger = Ledger::new(10_000);
    let queue = filled(ledger.items());
    assert_eq!(ledger.drops().iter().sum::<usize>(), 0);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn items_pushed_without_a_handle_go_with_the_queue() {
    let ledger = Ledger::new(1_000);
    let queue = Queue::unbounded();
    ledger.items().for_each(|item| queue.push(item).unwrap());
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn the_last_owner_drops_the_items() {
    let ledger = Ledger::new(3);
    let queue = filled(ledger.items());
    let (clone, handle) = (queue.clone(), queue.handle());
    drop(queue);
    drop(clone);
    assert_eq!(ledger.drops(), [0, 0, 0]);
    drop(handle);
    ledger.assert_each_dropped_once();
}

#[test]
fn popped_items_belong_to_whoever_popped_them() {
    let ledger = Ledger::new(3);
    let queue = filled(ledger.items());
    let first = queue.pop().unwrap();
    let second = queue.handle().pop().unwrap();
    drop(queue);
    assert_eq!(ledger.drops(), [0, 0, 1]);
    drop((first, second));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_commit_drops_items_that_are_not_taken() {
    let ledger = Ledger::new(4);
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    let first = tx.commit().next();
    assert_eq!(ledger.drops(), [0, 1, 1, 0]);
    drop(first);
    assert_eq!(ledger.drops(), [1, 1, 1, 0]);
}

#[test]
fn an_abort_drops_only_staged_items() {
    let ledger = Ledger::new(4);
    let mut items = ledger.items();
    let queue = filled(items.by_ref().take(2));
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    items.for_each(|item| tx.push(item).unwrap());
    tx.abort();
    assert_eq!(ledger.drops(), [0, 0, 1, 1]);
}

/// A handle on a queue of six items: 0 and 1 went through an abort, 2 was dropped, a forgotten transaction holds 0, 1
/// and 3, 4 is ready and 5 is staged.
fn with_items_everywhere(ledger: &Ledger) -> (Queue<Tracked>, Handle<Tracked>) {
    let mut items = ledger.items();
    let queue = filled(items.by_ref().take(5));
    let mut handle = queue.handle();
    let mut other = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_eq!(other.pop().map(|item| item.id), Ok(2));
    tx.abort();
    let tx = handle.begin();
    let held: Vec<_> = tx.pop_batch(3).map(|item| item.id).collect();
    assert_eq!(held, [0, 1, 3]);
    items.for_each(|item| tx.push(item).unwrap());
    mem::forget(tx);
    assert_eq!(ledger.drops(), [0, 0, 1, 0, 0, 0]);
    (queue, handle)
}

#[test]
fn the_handle_goes_first() {
    let ledger = Ledger::new(6);
    let (queue, handle) = with_items_everywhere(&ledger);
    drop(handle);
    assert_eq!(ledger.drops(), [0, 0, 1, 0, 0, 1]);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn the_queue_goes_first() {
    let ledger = Ledger::new(6);
    let (queue, handle) = with_items_everywhere(&ledger);
    drop(queue);
    assert_eq!(ledger.drops(), [0, 0, 1, 0, 0, 0]);
    drop(handle);
    ledger.assert_each_dropped_once();
}

#[test]
fn threads_that_take_abort_and_stop_lose_nothing() {
    const THREADS: usize = 4;
    const ITEMS: usize = 500;
    let ledger = Ledger::new(THREADS * ITEMS);
    let queue = Queue::unbounded();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (ledger, mut handle) = (&ledger, queue.handle());
            scope.spawn(move || {
                for id in thread * ITEMS..(thread + 1) * ITEMS {
                    let tx = handle.begin();
                    tx.push(ledger.item(id)).unwrap();
                    tx.commit();
                    let tx = handle.begin();
                    assert!(tx.pop_batch(2).len() <= 2);
                    match id % 3 {
                        0 => tx.abort(),
                        1 => mem::forget(tx),
                        _ => drop(tx.commit()),
                    }
                }
            });
        }
    });
    let stats = queue.stats();
    assert_eq!((stats.pushed, stats.held), ((THREADS * ITEMS) as u64, 0));
    assert_eq!(stats.pushed, stats.ready + stats.committed);
    let dropped = ledger.drops().iter().sum::<usize>();
    assert_eq!(dropped as u64, stats.committed);
    drop(queue);
    ledger.assert_each_dropped_once();
}

/// A push that was refused, or an iterator that panicked, has opened another segment at the end of one.
#[test]
fn items_staged_before_a_vacant_segment_are_popped() {
    for staged in 1..600_usize {
        let (queue, probe) = (Queue::unbounded(), Arc::new(()));
        let mut handle = queue.handle();
        let items = || (0..staged).map(|_| Arc::clone(&probe));
        let broken = items().chain(std::iter::once_with(|| panic!("the source fails")));
        assert!(panics(|| handle.push_batch(broken)));
        assert_eq!(Arc::strong_count(&probe), 1, "{staged} staged");

        let tx = handle.begin();
        items().for_each(|item| tx.push(item).unwrap());
        queue.close();
        assert!(tx.push(Arc::clone(&probe)).is_err());
        drop(tx);
        assert_eq!(Arc::strong_count(&probe), 1, "{staged} staged");
    }
}
