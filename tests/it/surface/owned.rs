//! Transactions that own their handle.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use requeue::iter::Items;
use requeue::{
    commit_all, try_commit_all, DeliveryId, Expired, Item, ManualClock, Order, OwnedTaken,
    OwnedTransaction, PopError, PriorityQueue, PushError, Queue, Taken, Transaction, Unleased,
};

const SECOND: Duration = Duration::from_secs(1);

fn popped<O: Order<u8>>(tx: OwnedTransaction<u8, O>) -> OwnedTransaction<u8, O> {
    let item: Result<Item<'_, u8>, PopError> = tx.pop();
    item.unwrap();
    tx
}

#[test]
fn deliveries_are_stored_and_ended_elsewhere() {
    let queue: Queue<u8> = (0..3).collect();
    let mut deliveries: HashMap<DeliveryId, OwnedTransaction<u8>> = HashMap::new();
    for _ in 0..2 {
        let delivery = popped(queue.begin_owned());
        deliveries.insert(delivery.id(), delivery);
    }
    let own = popped(queue.named_handle("worker").begin_owned());
    let held = queue.held();
    assert!(held.iter().any(|held| held.id == own.id()));
    let ids: Vec<DeliveryId> = deliveries.keys().copied().collect();
    assert!(ids[0].to_string() == format!("{}-{}", ids[0].handle, ids[0].count));
    let acked = deliveries.remove(&ids[0]).unwrap();
    let ack = move || {
        let taken: OwnedTaken<u8> = acked.commit();
        taken.len()
    };
    assert_eq!(thread::spawn(ack).join().unwrap(), 1);
    for (_, delivery) in deliveries {
        delivery.abort();
    }
    drop(own);
    assert_eq!(queue.len(), 2);
}

/// Their methods besides those of a transaction, which they dereference to.
fn all_at_once<O: Order<u8>>(queue: &Queue<u8, O>, clock: &ManualClock) {
    queue.push_batch(0..3).unwrap();
    let mut tx = queue.begin_owned();
    let borrowed: &Transaction<'static, u8, O> = &tx;
    assert_eq!(borrowed.pop_batch(2).len(), 2);
    let items: Items<'_, u8, O> = tx.items();
    items.for_each(|mut item| *item += 10);
    let retried: Result<(), PushError<()>> = tx.retry_all_after(SECOND);
    retried.unwrap();
    tx = popped(tx);
    let failed: Result<(), PushError<()>> = tx.fail_all("broken");
    failed.unwrap();
    let taken: Result<OwnedTaken<u8, O>, Expired> = tx.try_commit();
    assert_eq!(taken.unwrap().len(), 0);
    assert_eq!((queue.dead_letters().len(), queue.len()), (1, 0));
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    let mut handle = queue.handle();
    let both = try_commit_all((popped(queue.begin_owned()), handle.begin()));
    let both: (OwnedTaken<u8, O>, Taken<'_, u8, O>) = both.unwrap();
    assert_eq!((both.0.len(), both.1.len()), (1, 0));
}

fn several<O: Order<u8> + Unleased>(queue: &Queue<u8, O>) {
    let taken: Vec<OwnedTaken<u8, O>> =
        commit_all(vec![queue.begin_owned(), queue.handle().begin_owned()]);
    assert_eq!(taken.len(), 2);
}

#[test]
fn they_exist_in_all_orders() {
    let clock = ManualClock::new();
    let builder = || Queue::builder().clock(clock.clone());
    all_at_once(&builder().build(), &clock);
    all_at_once(&builder().fair_by(|item: &u8| item % 2).build(), &clock);
    all_at_once(&builder().by_priority().build(), &clock);
    all_at_once(&builder().leased(SECOND * 60).build(), &clock);
    several(&Queue::unbounded());
    several(&PriorityQueue::by_priority());
}
