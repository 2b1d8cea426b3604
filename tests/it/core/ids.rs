//! The ids of deliveries.

use std::collections::HashSet;
use std::mem;

use crate::common::failing::{leased, SECOND};
use crate::common::filled;
use requeue::{DeliveryId, Order, Queue};

/// The ids that the queue reports, in order.
fn held<T, O: Order<T>>(queue: &Queue<T, O>) -> Vec<DeliveryId> {
    let mut ids: Vec<_> = queue.held().iter().map(|held| held.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn no_two_deliveries_have_the_same_id() {
    let queue = filled(0..100);
    let (mut met, mut live) = (HashSet::new(), Vec::new());
    for round in 0..10 {
        for _ in 0..5 {
            let tx = if round % 2 == 0 {
                queue.begin_owned()
            } else {
                queue.handle().begin_owned()
            };
            tx.pop().unwrap();
            assert!(met.insert(tx.id()), "{} was there before", tx.id());
            live.push(tx);
        }
        let mut ids: Vec<_> = live.iter().map(|tx| tx.id()).collect();
        ids.sort_unstable();
        assert_eq!(held(&queue), ids);
        for (place, tx) in mem::take(&mut live).into_iter().enumerate() {
            match place % 3 {
                0 => drop(tx.commit()),
                1 => drop(tx),
                _ => live.push(tx),
            }
        }
    }
}

#[test]
fn an_id_stays_while_more_is_taken() {
    let queue = filled(0..10);
    let mut handle = queue.named_handle("worker");
    handle.pop().unwrap();
    let tx = handle.begin();
    let id = tx.id();
    for taken in [1, 2, 5] {
        assert_eq!(tx.pop_batch(taken).len(), taken);
        let told = &queue.held()[0];
        assert_eq!((tx.id(), told.id, told.items), (id, id, tx.held()));
    }
    tx.commit();
    let tx = handle.begin();
    assert_eq!((tx.id().handle, tx.id().count), (id.handle, id.count + 8));
}

#[test]
fn items_that_leave_early_do_not_change_later_ids() {
    let (clock, queue) = leased(0..6);
    let tx = queue.begin_owned();
    let id = tx.id();
    let items: Vec<_> = tx.pop_batch(3).collect();
    for (ended, item) in items.into_iter().enumerate() {
        assert_eq!(tx.id().count, id.count + ended as u64);
        assert_eq!(held(&queue), [tx.id()]);
        tx.retry(item).unwrap();
    }
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_eq!(tx.id().count, id.count + 3);
    clock.advance(SECOND);
    assert!(held(&queue).is_empty());
    assert_eq!(tx.id().count, id.count + 5);
    drop(tx);
}

#[test]
fn an_id_is_shown_short() {
    let queue = filled([1, 2]);
    let (tx, other) = (queue.begin_owned(), queue.begin_owned());
    assert_eq!(tx.id().to_string(), format!("{}-0", tx.id().handle));
    assert!(tx.id() != other.id() && tx.id().handle != other.id().handle);
}
