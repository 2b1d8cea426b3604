//! Transactions that own their handle.

use std::collections::HashMap;
use std::mem;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::common::failing::{clocked_with, leased, letters, SECOND};
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{
    commit_all, try_commit_all, Expired, Item, Order, OwnedTransaction, PopError, PriorityQueue,
    PushError, Queue, Reason, Transaction,
};

/// A transaction that holds the next `items` items.
fn holding<T, O: Order<T>>(queue: &Queue<T, O>, items: usize) -> OwnedTransaction<T, O> {
    let tx = queue.begin_owned();
    assert_eq!(tx.pop_batch(items).len(), items);
    tx
}

#[test]
fn deliveries_are_acknowledged_in_any_order_on_any_thread() {
    let queue = filled(0..4);
    let mut deliveries: HashMap<u32, OwnedTransaction<u32>> = HashMap::new();
    for _ in 0..4 {
        let tx = queue.begin_owned();
        let number = *tx.pop().unwrap();
        tx.push(number + 10).unwrap();
        deliveries.insert(number, tx);
    }
    assert_at_rest(&queue, 0, 4);
    for number in [2, 0] {
        let tx = deliveries.remove(&number).unwrap();
        let acked = thread::spawn(move || tx.commit().collect::<Vec<_>>());
        assert_eq!(acked.join().unwrap(), [number]);
    }
    deliveries.remove(&3).unwrap().abort();
    let lost = thread::spawn(move || drop(deliveries));
    lost.join().unwrap();
    assert_at_rest(&queue, 4, 0);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 3, 10, 12]);
}

#[test]
fn a_transaction_is_used_by_several_threads_in_turn() {
    let queue = filled(0..3);
    let (sender, receiver) = channel::<OwnedTransaction<i32>>();
    let tx = holding(&queue, 1);
    let other = thread::spawn(move || {
        let tx = receiver.recv().unwrap();
        assert_eq!(tx.pop().as_deref(), Ok(&1));
        tx.push(7).unwrap();
        tx
    });
    sender.send(tx).unwrap();
    let tx = other.join().unwrap();
    assert_eq!((tx.held(), tx.staged()), (2, 1));
    drop(tx);
    assert_eq!(drain(&queue), [0, 1, 2]);
}

#[test]
fn functions_of_transactions_accept_owned_ones() {
    fn take<'t>(tx: &'t Transaction<'_, i32>) -> Item<'t, i32> {
        tx.pop().unwrap()
    }
    let queue = filled([1]);
    let tx = queue.handle().begin_owned();
    *take(&tx) += 1;
    assert!(tx.commit().eq([2]));
}

#[test]
fn items_that_borrow_are_owned_no_longer_than_they_live() {
    let text = String::from("one two");
    let queue = filled(text.split(' '));
    let tx = holding(&queue, 1);
    let rest = thread::scope(|scope| {
        let other = scope.spawn(|| tx.commit().next());
        assert_eq!(other.join().unwrap(), Some("one"));
        queue.begin_owned().pop().unwrap().len()
    });
    assert_eq!((rest, queue.len()), (3, 1));
}

#[test]
fn held_items_can_be_returned_again() {
    const ITEMS: usize = 1_000;
    let queue = filled(0..ITEMS);
    let mut tx = holding(&queue, ITEMS - 1);
    tx.retry(tx.pop().unwrap()).unwrap();
    for _ in 0..2 {
        assert!(tx.items().map(|item| *item).eq(0..ITEMS - 1));
    }
    for mut item in tx.items() {
        *item *= 2;
    }
    assert_eq!(tx.items().len(), ITEMS - 1);
    assert!(tx.commit().eq((0..ITEMS - 1).map(|item| 2 * item)));
    assert_eq!(drain(&queue), [ITEMS - 1]);
}

#[test]
fn removed_items_are_not_returned_again() {
    let queue = filled(0..301);
    let mut tx = queue.begin_owned();
    let before = tx.pop().unwrap();
    let batch = tx.pop_batch(300);
    tx.retry_after(before, SECOND).unwrap();
    for (place, item) in batch.enumerate() {
        assert_eq!(*item, place + 1);
        if place % 3 != 1 {
            tx.retry(item).unwrap();
        }
    }
    assert!(tx.items().map(|item| *item).eq((2..301).step_by(3)));
    tx.retry_all_after(SECOND).unwrap();
    assert_eq!((tx.items().len(), tx.held()), (0, 0));
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_eq!(tx.items().len(), 2);
}

#[test]
fn items_are_returned_while_their_transaction_is_used_elsewhere() {
    const ITEMS: usize = 20_000;
    let queue = filled((0..ITEMS).map(|item| item.to_string()));
    let tx = queue.begin_owned();
    let first = tx.pop_batch(ITEMS / 2);
    let read = thread::scope(|scope| {
        let reader = scope.spawn(move || first.map(|item| item.len()).sum::<usize>());
        while let Ok(item) = tx.pop() {
            tx.retry(item).unwrap();
            if tx.held() + tx.pop_batch(7).len() >= ITEMS - 7 {
                break;
            }
        }
        reader.join().unwrap()
    });
    let all = (0..ITEMS / 2).map(|item| item.to_string().len());
    assert_eq!(read, all.sum());
    drop(tx);
    assert_at_rest(&queue, ITEMS, 0);
}

#[test]
fn all_are_retried_and_staged_items_are_committed() {
    let (clock, queue) = clocked_with([1, 2]);
    let mut tx = holding(&queue, 2);
    tx.push(3).unwrap();
    tx.retry_all_after(SECOND).unwrap();
    assert_eq!((tx.held(), tx.staged()), (0, 1));
    assert_eq!(tx.commit().len(), 0);
    assert_eq!(drain(&queue), [3]);
    clock.advance(SECOND);
    let again = queue.begin_owned();
    assert_eq!(again.pop().unwrap().attempts(), 2);
    assert_eq!(again.pop().as_deref(), Ok(&2));
}

#[test]
fn all_that_are_retried_at_once_keep_their_order() {
    let queue = filled(0..100);
    let mut tx = holding(&queue, 90);
    let other = queue.begin_owned();
    assert_eq!(other.pop().as_deref(), Ok(&90));
    tx.retry_all_after(Duration::ZERO).unwrap();
    other.abort();
    let mut items = drain(&queue);
    assert_eq!(items.len(), 100);
    items.retain(|item| *item < 90);
    assert!(items.into_iter().eq(0..90));
}

#[test]
fn all_are_failed_by_one_error() {
    let queue = filled(["a", "b"]);
    let mut tx = holding(&queue, 2);
    tx.fail_all("broken").unwrap();
    drop(tx);
    let errors: Vec<_> = queue.dead_letters().collect();
    assert!(errors.iter().all(|letter| letter.error() == Some("broken")));
    let dead: Vec<_> = errors.iter().map(|letter| letter.item).collect();
    assert_eq!((dead, errors[0].reason), (vec!["a", "b"], Reason::Failed));
}

#[test]
fn items_without_room_for_a_retry_stay_held() {
    let queue = Queue::bounded(2);
    queue.handle().push_batch([1, 2]).unwrap();
    let mut tx = holding(&queue, 2);
    tx.push(3).unwrap();
    assert_eq!(tx.retry_all_after(SECOND), Err(PushError::Full(())));
    assert!(tx.items().map(|item| *item).eq([2]));
    assert_eq!((tx.held(), tx.staged()), (1, 1));
    assert!(tx.commit().eq([2]));
    assert_eq!(queue.stats().delayed, 1);
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn an_error_that_panics_gives_nothing_up() {
    struct Broken;
    impl std::fmt::Display for Broken {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("it cannot be shown")
        }
    }
    let queue = filled([1]);
    let mut tx = holding(&queue, 1);
    assert!(panics(|| tx.fail_all(Broken)));
    assert_eq!(tx.held(), 1);
    assert!(letters(&queue).is_empty());
}

#[test]
fn owned_and_borrowed_ones_commit_together() {
    let (numbers, words) = (filled([1]), filled(["one"]));
    let mut handle = numbers.handle();
    let (borrowed, owned) = (handle.begin(), holding(&words, 1));
    borrowed.pop().unwrap();
    owned.push("two").unwrap();
    borrowed.push(2).unwrap();
    let third = numbers.handle().begin_owned();
    third.push(3).unwrap();
    let (taken, words_taken, nothing) = commit_all((borrowed, owned, third));
    assert!(taken.eq([1]) && words_taken.eq(["one"]) && nothing.len() == 0);
    let mut left = drain(&numbers);
    left.sort_unstable();
    assert_eq!((left, drain(&words)), (vec![2, 3], vec!["two"]));
}

#[test]
fn as_many_owned_ones_as_there_are_commit_together() {
    let queues: Vec<_> = (0..20).map(|number| filled([number])).collect();
    let deliveries: Vec<_> = queues.iter().map(|queue| holding(queue, 1)).collect();
    for (number, tx) in deliveries.iter().enumerate() {
        tx.push(100 + number).unwrap();
    }
    let taken = commit_all(deliveries);
    assert!(taken.into_iter().flatten().eq(0..20));
    assert!(queues.iter().map(|queue| queue.pop().unwrap()).eq(100..120));
}

#[test]
fn if_one_has_expired_all_are_aborted() {
    let (clock, queue) = leased([1]);
    let other = filled([2]);
    for single in [true, false] {
        let (late, fine) = (holding(&queue, 1), holding(&other, 1));
        clock.advance(SECOND);
        assert_eq!(queue.len(), 1);
        let result = if single {
            drop(fine);
            late.try_commit().map(drop)
        } else {
            try_commit_all((late, fine)).map(drop)
        };
        assert_eq!(result, Err(Expired));
        assert_at_rest(&queue, 1, 0);
        assert_at_rest(&other, 1, 0);
    }
}

#[test]
fn the_verbs_of_an_order_come_with_it() {
    let queue = PriorityQueue::by_priority();
    let tx = queue.begin_owned();
    tx.priority(2).push("later").unwrap();
    tx.priority(1).push("sooner").unwrap();
    tx.commit();
    let tx = queue.begin_owned();
    assert_eq!(tx.peek().as_deref(), Ok(&"sooner"));
    assert_eq!(tx.pop().as_deref(), Ok(&"sooner"));
    drop(tx);
    assert_eq!(drain(&queue), ["sooner", "later"]);
}

#[test]
fn it_outlives_its_queue_and_the_items_go_with_it() {
    for commits in [true, false] {
        let ledger = Ledger::new(4);
        let queue = filled(ledger.items());
        // Some handles of the pool have been used, and have a shard.
        let others: Vec<_> = (0..3).map(|_| queue.begin_owned()).collect();
        drop(others);
        let tx = queue.begin_owned();
        assert_eq!(tx.pop_batch(2).len(), 2);
        assert!(tx.push(ledger.item(3)).is_ok());
        drop(queue);
        assert_eq!(ledger.drops(), [0, 0, 0, 0]);
        if commits {
            let taken = tx.commit();
            assert_eq!((taken.len(), ledger.drops()), (2, vec![0; 4]));
            drop(taken);
        } else {
            drop(tx);
        }
        let staged = 2; // the queue still had the item
        assert_eq!(ledger.drops(), [1, 1, 1, staged]);
    }
}

#[test]
fn a_forgotten_one_keeps_what_it_holds() {
    let queue = filled([1, 2]);
    mem::forget(holding(&queue, 1));
    assert_at_rest(&queue, 1, 1);
    let tx = queue.begin_owned();
    assert_eq!(tx.pop().as_deref(), Ok(&2));
    queue.close();
    tx.commit();
    assert_eq!(queue.pop(), Err(PopError::Empty), "one is still held");
}

#[test]
fn a_forgotten_one_of_a_queue_with_leases_loses_what_it_holds() {
    let (clock, queue) = leased([1, 2]);
    let named = queue.named_handle("gone").begin_owned();
    named.pop().unwrap();
    mem::forget((named, holding(&queue, 1)));
    assert_at_rest(&queue, 0, 2);
    clock.advance(SECOND / 2);
    assert_eq!(queue.recover("gone", queue.now()), 1);
    clock.advance(SECOND / 2);
    let mut back = drain(&queue);
    back.sort_unstable();
    assert_eq!(back, [1, 2]);
}

#[test]
fn user_code_that_panics_at_the_end_loses_nothing() {
    for commits in [true, false] {
        let ledger = Ledger::new(3);
        let queue = Queue::unbounded();
        let tx = queue.begin_owned();
        for item in ledger.items_with_bomb(1) {
            assert!(tx.push(item).is_ok());
        }
        if commits {
            tx.commit();
            let tx = holding(&queue, 3);
            assert!(panics(|| drop(tx.commit())));
        } else {
            assert!(panics(|| drop(tx)));
        }
        ledger.assert_each_dropped_once();
        let tx = queue.begin_owned();
        assert_eq!((tx.held(), tx.staged()), (0, 0));
        assert!(tx.pop().is_err());
    }
}

#[test]
fn leaked_items_do_not_outlive_it() {
    let queue = filled([1, 2]);
    let tx = queue.begin_owned();
    mem::forget(tx.peek());
    assert_eq!(format!("{tx:?}"), "OwnedTransaction(Transaction { .. })");
    tx.commit();
    assert_at_rest(&queue, 2, 0);
    let mut tx = holding(&queue, 1);
    mem::forget(tx.peek());
    assert_eq!(tx.items().len(), 1);
    mem::forget(tx.peek());
    tx.fail_all("broken").unwrap();
    mem::forget(tx.peek());
    assert_eq!(tx.commit().len(), 0);
    assert_eq!((drain(&queue), letters(&queue).len()), (vec![2], 1));
}

#[test]
fn a_prepared_transaction_is_not_taken_back_and_can_still_abort() {
    let (clock, queue) = leased([1, 2]);
    let mut tx = queue.begin_owned();
    tx.pop().unwrap();
    tx.push(3).unwrap();
    tx.prepare().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(2));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_eq!(tx.try_commit().unwrap().next(), Some(1));
    assert_eq!(queue.pop(), Ok(3));

    queue.push(4).unwrap();
    let mut tx = queue.begin_owned();
    tx.pop().unwrap();
    tx.prepare().unwrap();
    clock.advance(SECOND);
    tx.rollback();
    assert_eq!(queue.pop(), Ok(4));
    queue.stats().check().unwrap();
}

#[test]
fn a_transaction_that_lost_an_item_cannot_be_prepared() {
    let (clock, queue) = leased([1]);
    let mut tx = queue.begin_owned();
    tx.pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(tx.prepare(), Err(Expired));
    tx.rollback();
    queue.push(2).unwrap();
    tx.pop().unwrap();
    assert_eq!(tx.prepare(), Ok(()));
    assert_eq!(tx.try_commit().unwrap().next(), Some(2));
}

#[test]
fn a_rollback_is_an_abort_and_keeps_the_handle() {
    let queue = filled(0..3);
    let mut tx = holding(&queue, 2);
    let handle = tx.id().handle;
    tx.push(9).unwrap();
    tx.rollback();
    assert_at_rest(&queue, 3, 0);
    assert_eq!((tx.held(), tx.staged(), tx.id().handle), (0, 0, handle));
    assert_eq!(*tx.pop().unwrap(), 0);
    let mut taken = tx.commit();
    assert_eq!(taken.next(), Some(0));
    let tx = taken.begin_owned();
    assert_eq!(tx.id().handle, handle);
    drop(tx);
    assert_at_rest(&queue, 2, 0);
}

#[test]
fn the_next_transaction_begins_after_the_remaining_items_are_dropped() {
    let ledger = Ledger::new(3);
    let queue = Queue::unbounded();
    queue.handle().push_batch(ledger.items()).unwrap();
    let taken = holding(&queue, 3).commit();
    let tx = taken.begin_owned();
    ledger.assert_each_dropped_once();
    assert_eq!((tx.held(), tx.staged()), (0, 0));
}

#[test]
fn a_rollback_whose_destructor_panics_is_done() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(
                !self.0 || thread::panicking(),
                "a destructor of a staged item"
            );
        }
    }
    let queue = Queue::unbounded();
    queue.push(Bomb(false)).unwrap();
    let mut tx = holding(&queue, 1);
    tx.push(Bomb(true)).unwrap();
    assert!(panics(|| tx.rollback()));
    assert_eq!((tx.held(), tx.staged(), queue.len()), (0, 0, 1));
    assert!(tx.pop().is_ok());
}
