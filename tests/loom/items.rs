//! Held items on one thread, and their transaction on another.

use super::{model, warm};
use loom::thread;
use requeue::{Handle, Queue, Transaction};

/// A transaction that lives as long as the program, so that a thread of a model can borrow it. So does its handle.
fn leaked(handle: Handle<u32>) -> &'static Transaction<'static, u32> {
    let handle = Box::leak(Box::new(handle));
    Box::leak(Box::new(handle.begin()))
}

/// The items alternate between two shards. When one is taken, the one before of its shard is linked to it, in memory
/// that the other thread reads.
#[test]
fn items_are_read_while_their_transaction_takes_more() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut one, mut two) = (warm(&queue), warm(&queue));
        let tx = leaked(queue.handle());
        for item in [1, 2] {
            one.push(item).unwrap();
            assert_eq!(tx.pop().as_deref(), Ok(&item)); // they fill their own block
        }
        one.push(3).unwrap();
        let items = tx.pop_batch(1);
        let reader = thread::spawn(move || items.map(|item| *item + item.attempts()).sum::<u32>());
        for item in 4..=6 {
            let shard = if item == 5 { &mut one } else { &mut two };
            shard.push(item).unwrap();
            assert_eq!(tx.pop().as_deref(), Ok(&item));
        }
        assert_eq!((reader.join().unwrap(), tx.held()), (4, 6));
    });
}

/// Nothing is written of how often the items of a batch were delivered, until the transaction takes one that was delivered before.
#[test]
fn items_are_read_while_their_deliveries_are_written() {
    model(|| {
        let queue = Queue::unbounded();
        let mut one = warm(&queue);
        one.push_batch([1, 2]).unwrap();
        let tx = leaked(queue.handle());
        let items = tx.pop_batch(2);
        one.push(3).unwrap();
        assert_eq!(one.begin().pop().as_deref(), Ok(&3)); // it returns
        let reader = thread::spawn(move || items.map(|item| *item + item.attempts()).sum::<u32>());
        assert_eq!(tx.pop().unwrap().attempts(), 2);
        assert_eq!((reader.join().unwrap(), tx.held()), (5, 3));
    });
}
