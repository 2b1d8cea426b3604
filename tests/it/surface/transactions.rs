//! Transactions: pushes, pops, held items, and ends.

use std::time::Duration;

use futures::executor::block_on;
use requeue::iter::Items;
use requeue::{
    commit_all, hold_any, hold_any_async, hold_any_timeout, try_commit_all, DeliveryId, Expired,
    Item, Order, Peek, PopError, PriorityQueue, PushError, Queue, Taken, Transaction, Unleased,
};

const ZERO: Duration = Duration::ZERO;

fn verbs<O: Order<u8>>(queue: &Queue<u8, O>) {
    let mut handle = queue.handle();
    let tx: Transaction<'_, u8, O> = handle.begin();
    let pushed: Result<(), PushError<u8>> = tx.push(0);
    pushed.unwrap();
    tx.push_blocking(1).unwrap();
    tx.push_timeout(2, ZERO).unwrap();
    block_on(tx.push_async(3)).unwrap();
    let pushed: Result<usize, PushError<Vec<u8>>> = tx.push_batch([4]);
    assert_eq!(pushed, Ok(1));
    tx.push_batch_blocking([5]).unwrap();
    tx.push_batch_timeout([6], ZERO).unwrap();
    block_on(tx.push_batch_async([7])).unwrap();
    assert_eq!((tx.staged(), tx.held()), (8, 0));
    tx.try_commit().unwrap();
    queue.push_batch(8..12).unwrap();
    let tx = handle.begin();
    let peeked: Result<Peek<'_, u8, O>, PopError> = tx.peek();
    peeked.unwrap().take();
    drop(tx.peek_blocking().unwrap());
    drop(tx.peek_timeout(ZERO).unwrap());
    drop(block_on(tx.peek_async()).unwrap());
    let item: Item<'_, u8> = tx.pop().unwrap();
    assert_eq!((item.attempts(), format!("{item:?} {item}").len()), (1, 3));
    tx.pop_blocking().unwrap();
    tx.pop_timeout(ZERO).unwrap();
    block_on(tx.pop_async()).unwrap();
    let items: Items<'_, u8, O> = tx.pop_batch(2);
    assert_eq!(items.len(), 2);
    assert_eq!(tx.pop_batch_blocking(1, 1).len(), 1);
    assert_eq!(tx.pop_batch_timeout(1, 1, ZERO).len(), 1);
    let items: Items<'_, u8, O> = block_on(tx.pop_batch_timeout_async(1, 0, ZERO));
    assert_eq!(items.len(), 0);
    let items: Items<'_, u8, O> = block_on(tx.pop_batch_async(1, 2));
    assert_eq!(items.count(), 2);
    let _: DeliveryId = tx.id();
    tx.renew().unwrap();
    let taken: Taken<'_, u8, O> = tx.try_commit().unwrap();
    assert_eq!(taken.len(), 11);
}

/// Ends that are infallible.
fn ends<O: Order<u8> + Unleased>(queue: &Queue<u8, O>) {
    queue.push_batch(0..5).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let (first, second, third) = (tx.pop().unwrap(), tx.pop().unwrap(), tx.pop().unwrap());
    tx.retry(first).unwrap();
    tx.retry_after(second, ZERO).unwrap();
    tx.fail(third, "broken").unwrap();
    let _: Taken<'_, u8, O> = tx.commit();
    a.begin().abort();
    let _: (Taken<'_, u8, O>, Taken<'_, u8>) =
        commit_all((a.begin(), Queue::unbounded().handle().begin()));
    let _: Vec<Taken<'_, u8, O>> = commit_all(vec![a.begin(), b.begin()]);
    let _: Result<Vec<Taken<'_, u8, O>>, Expired> = try_commit_all(vec![a.begin(), b.begin()]);
}

#[test]
fn transactions_have_all_verbs_in_all_orders() {
    verbs(&Queue::bounded(20));
    verbs(&Queue::builder().fair_by(|item| item % 2).build());
    verbs(&PriorityQueue::by_priority());
    verbs(&Queue::builder().leased(Duration::MAX).build());
    ends(&Queue::unbounded());
    ends(&PriorityQueue::by_priority());
}

#[test]
fn the_first_of_several_queues_is_held() {
    let queues = [Queue::unbounded(), Queue::unbounded()];
    queues[1].push_batch([1, 2, 3]).unwrap();
    let (mut a, mut b) = (queues[0].handle(), queues[1].handle());
    let transactions = [a.begin(), b.begin()];
    let held: Result<(usize, Item<'_, u8>), PopError> = hold_any(&transactions);
    assert_eq!(*held.unwrap().1, 1);
    assert_eq!(*hold_any_timeout(&transactions, ZERO).unwrap().1, 2);
    assert_eq!(*block_on(hold_any_async(&transactions)).unwrap().1, 3);
    assert_eq!(transactions[1].held(), 3);
}
