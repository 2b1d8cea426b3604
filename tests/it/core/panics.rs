//! Panics of user code: in a transaction, in a destructor, in an iterator.

use crate::common::{assert_at_rest, drain, filled, panics, Ledger, Tracked};
use requeue::{commit_all, FairQueue, Order, Queue, Unleased};

#[test]
fn a_panic_in_a_transaction_aborts_it() {
    let queue = filled([1, 2, 3]);
    let mut handle = queue.handle();
    assert!(panics(|| {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        tx.push(4).unwrap();
        panic!("the worker fails");
    }));
    assert_at_rest(&queue, 3, 0);
    assert_eq!(handle.pop(), Ok(1));
    assert_eq!(drain(&queue), [2, 3]);
}

#[test]
fn a_panic_in_transact_aborts() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    assert!(panics(|| handle.transact(|tx| {
        tx.push(3).unwrap();
        match *tx.pop().unwrap() {
            1 => panic!("the worker fails"),
            other => Err::<(), _>(other),
        }
    })));
    assert_at_rest(&queue, 2, 0);
    assert_eq!(handle.begin().pop().unwrap().attempts(), 2);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_panic_beside_an_open_transaction_of_another_handle_leaves_it_alone() {
    let queue = filled([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx_a = a.begin();
    tx_a.pop().unwrap();
    assert!(panics(|| {
        let tx_b = b.begin();
        assert_eq!(tx_b.pop().as_deref(), Ok(&2));
        panic!("the worker fails");
    }));
    assert_at_rest(&queue, 1, 1);
    assert!(tx_a.commit().eq([1]));
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn a_panicking_destructor_of_a_committed_item() {
    let ledger = Ledger::new(6);
    let queue = filled(ledger.items_with_bomb(2));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(5).len(), 5);
    assert!(panics(|| drop(tx.commit())));
    assert_at_rest(&queue, 1, 0);
    assert_eq!(handle.pop().map(|item| item.id), Ok(5));
    drop((handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_destructor_of_an_item_taken_by_value() {
    let ledger = Ledger::new(5);
    let queue = filled(ledger.items_with_bomb(1));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(5).len(), 5);
    assert!(panics(|| tx.commit().for_each(drop)));
    drop((handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_destructor_of_a_staged_item() {
    let ledger = Ledger::new(5);
    let mut items = ledger.items_with_bomb(2);
    let queue = filled(items.next());
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    items.for_each(|item| tx.push(item).unwrap());
    assert!(panics(|| tx.abort()));
    assert_at_rest(&queue, 1, 0);
    assert_eq!(handle.pop().map(|item| item.id), Ok(0));
    drop((handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_destructor_while_the_queue_is_dropped() {
    let ledger = Ledger::new(5);
    let queue = filled(ledger.items_with_bomb(2));
    assert!(panics(|| drop(queue)));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_iterator_pushes_nothing() {
    let ledger = Ledger::new(5);
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let items = ledger.items().inspect(|item| assert_ne!(item.id, 3));
    assert!(panics(|| handle.push_batch(items)));
    assert_at_rest(&queue, 0, 0);
    assert!(handle.pop().is_err());
    assert_eq!(ledger.drops(), [1, 1, 1, 1, 0]);
    handle.push(ledger.item(4)).unwrap();
    assert_eq!(handle.pop().map(|item| item.id), Ok(4));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_iterator_stages_nothing() {
    stage_by_panicking_iterators(&Queue::unbounded());
    stage_by_panicking_iterators(&FairQueue::by(|item: &Tracked| item.id));
}

/// Stages a batch whose iterator panics, in a transaction that has staged nothing and in one that has.
fn stage_by_panicking_iterators<O: Order<Tracked> + Unleased>(queue: &Queue<Tracked, O>) {
    let ledger = Ledger::new(5);
    let items = || ledger.items().inspect(|item| assert_ne!(item.id, 3));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(panics(|| tx.push_batch(items())));
    assert_at_rest(queue, 0, 0);
    tx.push(ledger.item(4)).unwrap();
    assert!(panics(|| tx.push_batch(items())));
    assert_eq!(ledger.drops(), [2, 2, 2, 2, 0]);
    assert_eq!(tx.staged(), 1);
    tx.commit();
    assert_eq!(handle.pop().map(|item| item.id), Ok(4));
    assert!(handle.pop().is_err());
}

#[test]
fn an_iterator_may_use_the_queue_it_is_pushed_to() {
    let queue = filled([1]);
    let mut handle = queue.handle();
    let items = (10..13).inspect(|item| {
        queue.push(item + 10).unwrap();
        queue.pop().unwrap();
    });
    assert_eq!(handle.push_batch(items).ok(), Some(3));
    let left = drain(&queue);
    assert_eq!(left.len(), 4);
    assert!(left
        .iter()
        .filter(|item| (10..20).contains(*item))
        .eq(&[10, 11, 12]));
}

/// An item whose destructor pushes another one.
struct Echo {
    queue: Option<Queue<Echo>>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.push(Echo { queue: None }).unwrap();
        }
    }
}

#[test]
fn a_destructor_may_use_the_queue_the_item_was_in() {
    let queue = Queue::unbounded();
    let echo = || Echo {
        queue: Some(queue.clone()),
    };
    let mut handle = queue.handle();
    handle.push_batch([echo(), echo()]).unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.commit();
    assert_eq!(queue.len(), 2);

    let tx = handle.begin();
    tx.push(echo()).unwrap();
    tx.abort();
    assert_eq!(queue.len(), 3);
    assert!(drain(&queue).iter().all(|item| item.queue.is_none()));
}

#[test]
fn a_panicking_destructor_of_a_forgotten_taken() {
    let ledger = Ledger::new(4);
    let queue: Queue<Tracked> = filled(ledger.items_with_bomb(1));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    std::mem::forget(tx.commit());
    assert!(panics(|| drop(handle.begin())));
    assert_eq!(handle.pop().map(|item| item.id), Ok(3));
    drop((handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_destructor_after_a_joint_commit() {
    let (left, right) = (Ledger::new(3), Ledger::new(3));
    let (a, b) = (filled(left.items_with_bomb(0)), filled(right.items()));
    let (mut handle_a, mut handle_b) = (a.handle(), b.handle());
    let (tx_a, tx_b) = (handle_a.begin(), handle_b.begin());
    assert_eq!((tx_a.pop_batch(2).len(), tx_b.pop_batch(2).len()), (2, 2));
    assert!(panics(|| drop(commit_all((tx_a, tx_b)))));
    assert_at_rest(&a, 1, 0);
    assert_at_rest(&b, 1, 0);
    drop((handle_a, handle_b, a, b));
    left.assert_each_dropped_once();
    right.assert_each_dropped_once();
}
