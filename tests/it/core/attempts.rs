//! The delivery counts of items, and the state after a forgotten transaction.

use std::mem;

use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{Handle, Queue};

/// A way to end a transaction that holds one item without a commit.
type Failure = fn(&mut Handle<u32>);

const FAILURES: [(&str, Failure); 5] = [
    ("abort", |handle| {
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.abort();
    }),
    ("drop", |handle| {
        handle.begin().pop().unwrap();
    }),
    ("error", |handle| {
        let failed = handle.transact(|tx| tx.pop().map_or(Ok(()), |item| Err(*item)));
        assert!(failed.is_err());
    }),
    ("panic", |handle| {
        assert!(panics(|| {
            let tx = handle.begin();
            tx.pop().unwrap();
            panic!("the worker fails");
        }));
    }),
    ("forget", |handle| {
        let tx = handle.begin();
        tx.pop().unwrap();
        mem::forget(tx);
    }),
];

#[test]
fn every_failure_counts_as_one_attempt() {
    for (name, fail) in FAILURES {
        let queue = filled([7]);
        let mut handle = queue.handle();
        for attempt in 1..=4 {
            let tx = handle.begin();
            assert_eq!(tx.pop().unwrap().attempts(), 2 * attempt - 1, "{name}");
            tx.abort();
            fail(&mut handle);
        }
        assert_eq!(handle.pop(), Ok(7));
    }
}

/// One by one and in batches, together with items that were delivered before; some leave the transaction early.
#[test]
fn each_delivery_is_counted_however_the_item_is_taken() {
    const ITEMS: usize = 400;
    let queue = Queue::unbounded();
    let mut handles = [queue.handle(), queue.handle()];
    handles[0].push_batch(0..ITEMS / 2).unwrap();
    handles[1].push_batch(ITEMS / 2..ITEMS).unwrap();
    let mut deliveries = [0; ITEMS];
    for round in 0.. {
        let mut tx = handles[round % 2].begin();
        for call in 0..=round % 4 {
            let items: Vec<_> = match (round * 7 + call * 5) % 9 {
                0 | 1 => tx.pop().into_iter().collect(),
                size => tx.pop_batch(size).collect(),
            };
            for (nth, item) in items.into_iter().enumerate() {
                deliveries[*item] += 1;
                assert_eq!(item.attempts(), deliveries[*item], "item {}", *item);
                match (round + nth) % 11 {
                    0 => tx.retry(item).unwrap(),
                    1 => {
                        deliveries[*item] -= 1;
                        tx.put_back(item).unwrap();
                    }
                    _ => {}
                }
            }
        }
        for item in tx.items() {
            assert_eq!(item.attempts(), deliveries[*item], "held: item {}", *item);
        }
        match round % 3 {
            0 => drop(tx.commit()),
            _ => tx.abort(),
        }
        if queue.stats().ready == 0 {
            break;
        }
    }
}

/// A batch from two shards, after which the hold takes over the block of a returned item: one is in each shard.
#[test]
fn a_committed_batch_says_nothing_about_the_next_transaction() {
    let queue = Queue::unbounded();
    let mut handles = [0, 10].map(|first| {
        let mut handle = queue.handle();
        handle.push_batch(first..first + 2).unwrap();
        handle
    });
    let tx = handles[0].begin();
    assert!(tx.pop_batch(4).all(|item| item.attempts() == 1));
    drop(tx.commit());
    for handle in &mut handles {
        handle.push(20).unwrap();
    }
    assert_eq!(handles[1].begin().pop_batch(2).len(), 2);
    let mut tx = handles[0].begin();
    assert_eq!(tx.pop().unwrap().attempts(), 2);
    assert!(tx.items().all(|item| item.attempts() == 2));
}

/// A use of a handle, which returns the items it took.
type Use = fn(&mut Handle<u32>) -> Vec<u32>;

const USES: [(&str, Use); 6] = [
    ("push", |handle| {
        handle.push(3).unwrap();
        vec![]
    }),
    ("push_batch", |handle| {
        handle.push_batch([3]).unwrap();
        vec![]
    }),
    ("pop", |handle| vec![handle.pop().unwrap()]),
    ("pop_batch", |handle| {
        let mut items = Vec::new();
        handle.pop_batch(2, &mut items);
        items
    }),
    ("begin", |handle| {
        drop(handle.begin());
        vec![]
    }),
    ("transact", |handle| {
        handle.transact(|_| Ok::<_, ()>(vec![])).unwrap()
    }),
];

/// A handle that pushed 0, 1 and 2, and whose forgotten transaction holds 0 and 1 and has staged 9.
fn with_forgotten(queue: &Queue<u32>) -> Handle<u32> {
    let mut handle = queue.handle();
    handle.push_batch(0..3).unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.push(9).unwrap();
    mem::forget(tx);
    handle
}

#[test]
fn a_forgotten_transaction_ends_at_the_next_use_of_its_handle() {
    for (name, use_once) in USES {
        let queue = Queue::unbounded();
        let mut handle = with_forgotten(&queue);
        assert_at_rest(&queue, 1, 2);
        let mut items = use_once(&mut handle);
        assert_eq!(queue.stats().held, 0, "{name}");
        items.extend(drain(&queue));
        let last = 2 + u32::from(name.starts_with("push"));
        assert!(items.iter().copied().eq(0..=last), "{name}: {items:?}");
    }
}

#[test]
fn a_forgotten_transaction_ends_with_its_handle() {
    let queue = Queue::unbounded();
    let handle = with_forgotten(&queue);
    assert_at_rest(&queue, 1, 2);
    drop(handle);
    assert_at_rest(&queue, 3, 0);
    assert_eq!(drain(&queue), [0, 1, 2]);
}

#[test]
fn a_forgotten_transaction_hides_its_items_until_then() {
    let queue = Queue::unbounded();
    let handle = with_forgotten(&queue);
    assert_eq!(drain(&queue), [2]);
    drop(handle);
    assert_eq!(drain(&queue), [0, 1]);
}

#[test]
fn a_forgotten_transaction_drops_its_staged_items() {
    let ledger = Ledger::new(1);
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(ledger.item(0)).unwrap();
    mem::forget(tx);
    drop(handle.begin());
    ledger.assert_each_dropped_once();
    assert_at_rest(&queue, 0, 0);
}

/// A handle with a forgotten `Taken` of three items, the first of which was taken out.
fn with_forgotten_taken(
    ledger: &Ledger,
) -> (
    Queue<crate::common::Tracked>,
    Handle<crate::common::Tracked>,
) {
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    let mut taken = tx.commit();
    drop(taken.next());
    mem::forget(taken);
    (queue, handle)
}

#[test]
fn a_forgotten_taken_drops_its_items_at_the_next_use() {
    let ledger = Ledger::new(3);
    let (queue, mut handle) = with_forgotten_taken(&ledger);
    assert_at_rest(&queue, 0, 0);
    assert!(handle.pop().is_err());
    ledger.assert_each_dropped_once();
}

#[test]
fn a_forgotten_taken_drops_its_items_with_the_handle() {
    let ledger = Ledger::new(3);
    let (queue, handle) = with_forgotten_taken(&ledger);
    drop(handle);
    ledger.assert_each_dropped_once();
    assert_at_rest(&queue, 0, 0);
}
