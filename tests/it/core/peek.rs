//! Peeks at the next item.

use std::cell::RefCell;
use std::mem;

use crate::common::failing::{clocked, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{Handle, PopError, Queue};

#[test]
fn a_peek_shows_the_next_item_and_counts_nothing() {
    let queue = filled(0..100);
    let mut handle = queue.handle();
    for expected in 0..100 {
        for _ in 0..3 {
            assert_eq!(handle.peek_with(|item| *item), Ok(expected));
            let tx = handle.begin();
            assert_eq!(*tx.peek().unwrap(), expected);
        }
        assert_at_rest(&queue, 100 - expected, 0);
        assert_eq!(queue.stats().aborted, 0);
        let tx = handle.begin();
        let item = tx.pop().unwrap();
        assert_eq!((*item, item.attempts()), (expected, 1));
        tx.commit();
    }
    assert_eq!(handle.peek_with(|item| *item), Err(PopError::Empty));
    assert_eq!(handle.begin().peek().unwrap_err(), PopError::Empty);
}

#[test]
fn a_peeked_item_is_held() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    assert_at_rest(&queue, 1, 1);
    assert_eq!(drain(&queue), [2]);
    drop(peek);
    assert_at_rest(&queue, 1, 0);
    drop(tx);
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn the_item_is_put_back_before_the_next_one() {
    for shard in 0..3 {
        let queue = Queue::unbounded();
        let mut other = queue.handle();
        match shard {
            0 => (0..4).for_each(|item| queue.push(item).unwrap()),
            1 => drop(other.push_batch(0..4)),
            _ => {
                // Some of them were returned before.
                other.push_batch(0..4).unwrap();
                let tx = other.begin();
                assert_eq!(tx.pop_batch(2).len(), 2);
                tx.abort();
            }
        }
        let mut handle = queue.handle();
        let tx = handle.begin();
        let peek = tx.peek().unwrap();
        assert_eq!(*peek, 0);
        assert_eq!(other.pop(), Ok(1));
        drop(peek);
        assert_eq!(*tx.pop().unwrap(), 0);
        tx.abort();
        assert_eq!(drain(&queue), [0, 2, 3]);
    }
}

#[test]
fn a_taken_item_is_held_by_the_transaction() {
    for commits in [true, false] {
        let queue = filled(0..3);
        let mut handle = queue.handle();
        let tx = handle.begin();
        let _first = tx.pop().unwrap();
        let mut second = tx.peek().unwrap().take();
        assert_eq!((*second, second.attempts()), (1, 1));
        *second = 10;
        let _third = tx.pop().unwrap();
        assert_eq!(tx.held(), 3);
        if commits {
            assert!(tx.commit().eq([0, 10, 2]));
            assert_at_rest(&queue, 0, 0);
        } else {
            tx.abort();
            assert_eq!(queue.stats().aborted, 3);
            let tx = handle.begin();
            let items: Vec<_> = tx
                .pop_batch(3)
                .map(|item| (*item, item.attempts()))
                .collect();
            assert_eq!(items, [(0, 2), (10, 2), (2, 2)]);
        }
    }
}

#[test]
fn a_peek_keeps_the_attempts_of_a_failed_item() {
    let queue = filled([7]);
    let mut handle = queue.handle();
    for attempt in 1..5 {
        assert_eq!(handle.peek_with(|item| *item), Ok(7));
        let tx = handle.begin();
        drop(tx.peek().unwrap());
        assert_eq!(tx.peek().unwrap().take().attempts(), attempt);
        tx.abort();
    }
}

#[test]
fn a_panic_during_a_peek_puts_the_item_back() {
    let ledger = Ledger::new(2);
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    assert!(panics(|| handle.peek_with(|_| panic!("the peek fails"))));
    assert_eq!((queue.len(), queue.stats().held), (2, 0));
    assert!(panics(|| {
        let tx = handle.begin();
        let _peek = tx.peek().unwrap();
        panic!("the worker fails");
    }));
    let stats = queue.stats();
    assert_eq!((stats.ready, stats.held, stats.aborted), (2, 0, 0));
    let tx = handle.begin();
    assert_eq!(tx.pop().unwrap().attempts(), 1);
    drop(tx.commit());
    drop(handle);
    drop(queue);
    ledger.assert_each_dropped_once();
}

/// A use of a transaction by shared reference.
type Use = fn(&requeue::Transaction<'_, u32>);

#[test]
fn a_peek_borrows_the_transaction() {
    let uses: [Use; 7] = [
        |tx| assert!(tx.pop().is_ok()),
        |tx| assert_eq!(tx.pop_batch(1).len(), 1),
        |tx| tx.push(1).unwrap(),
        |tx| assert!(tx.peek().is_ok()),
        |tx| assert!(tx.pop_blocking().is_ok()),
        |tx| tx.renew().unwrap(),
        |tx| assert_eq!(tx.held(), 0),
    ];
    for (number, used) in uses.into_iter().enumerate() {
        let queue = filled([1, 2]);
        let mut handle = queue.handle();
        let tx = handle.begin();
        let peek = tx.peek().unwrap();
        assert!(panics(|| used(&tx)), "{number}");
        assert!(format!("{tx:?} {peek:?}").contains("Transaction"));
        assert_eq!(*peek, 1);
        drop(peek);
        used(&tx);
        drop(tx);
        assert_at_rest(&queue, 2, 0);
    }
}

/// The end of a transaction with a forgotten peek; true if it commits.
type End = fn(Handle<u32>);

#[test]
fn a_forgotten_peek_ends_with_its_transaction() {
    let ends: [End; 6] = [
        |mut handle| {
            let tx = handle.begin();
            tx.push(3).unwrap();
            mem::forget(tx.peek().unwrap());
            assert_eq!(tx.commit().len(), 0);
        },
        |mut handle| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            tx.abort();
        },
        |mut handle| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            assert_eq!(tx.try_commit().unwrap().len(), 0);
        },
        |mut handle| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            mem::forget(tx);
            drop(handle.begin());
        },
        |mut handle| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            mem::forget(tx);
            assert_eq!(handle.peek_with(|item| *item), Ok(1));
        },
        |mut handle| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            mem::forget(tx);
        },
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let queue = filled([1, 2]);
        end(queue.handle());
        let pushed = usize::from(number == 0);
        assert_at_rest(&queue, 2 + pushed, 0);
        assert_eq!(queue.stats().aborted, 0);
        let mut handle = queue.handle();
        let tx = handle.begin();
        let attempts: Vec<_> = tx.pop_batch(3).map(|item| item.attempts()).collect();
        assert_eq!(attempts, vec![1; 2 + pushed], "{number}");
    }
}

#[test]
fn a_waiter_is_woken_after_a_peek() {
    type Look = fn(&mut Handle<u32>, &mut dyn FnMut());
    let looks: [Look; 4] = [
        |handle, meanwhile| handle.peek_with(|_| meanwhile()).unwrap(),
        |handle, meanwhile| {
            let tx = handle.begin();
            let _peek = tx.peek().unwrap();
            meanwhile();
        },
        |handle, meanwhile| {
            assert!(panics(|| handle.peek_with(|_| {
                meanwhile();
                panic!("the peek fails");
            })));
        },
        |handle, meanwhile| {
            let tx = handle.begin();
            mem::forget(tx.peek().unwrap());
            meanwhile();
            tx.commit();
        },
    ];
    for look in looks {
        for closes in [true, false] {
            let queue = filled([7]);
            let (mut a, mut b, mut c) = (queue.handle(), queue.handle(), queue.handle());
            let mut task = Task::new(b.pop_async());
            let mut other = Task::new(c.pop_async());
            look(&mut a, &mut || {
                if closes {
                    queue.close();
                    assert_eq!(queue.pop(), Err(PopError::Empty));
                }
                task.assert_waits();
                other.assert_waits();
            });
            assert!(task.was_woken());
            assert_eq!(task.output(), Ok(7));
            if closes {
                assert!(other.was_woken());
                assert_eq!(other.output(), Err(PopError::Closed));
            }
        }
    }
}

#[test]
fn a_peek_at_the_last_item_of_a_closed_queue_can_take_it() {
    let queue = filled([7]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    queue.close();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    peek.take();
    tx.commit();
    assert_eq!(handle.peek_with(|item| *item), Err(PopError::Closed));
    assert_eq!(handle.begin().peek().unwrap_err(), PopError::Closed);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_peek_changes_no_permit() {
    let queue = Queue::bounded(2);
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    assert!(queue.push(3).unwrap_err().is_full());
    drop(peek);
    assert!(queue.push(3).unwrap_err().is_full());
    tx.peek().unwrap().take();
    tx.push(4).unwrap();
    assert!(tx.push(5).unwrap_err().is_full());
    tx.commit();
    assert_eq!(drain(&queue).len(), 2);
    crate::common::failing::assert_room(&queue);
}

#[test]
fn a_staged_item_gets_its_permit_back_when_a_peek_takes_an_item() {
    let queue = Queue::bounded(2);
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(2).unwrap();
    assert!(queue.push(3).unwrap_err().is_full());
    tx.peek().unwrap().take();
    queue.push(3).unwrap();
    tx.commit();
    assert_eq!(drain(&queue).len(), 2);
    crate::common::failing::assert_room(&queue);
}

#[test]
fn a_peek_finds_due_items_first() {
    let (clock, builder) = clocked();
    let queue = builder.build();
    let mut handle = queue.handle();
    handle.push_batch([7, 8, 9]).unwrap();
    put_off(&queue, SECOND);
    assert_eq!(handle.pop(), Ok(8));
    assert_eq!(handle.peek_with(|item| *item), Ok(9));
    clock.advance(SECOND);
    assert_eq!(handle.peek_with(|item| *item), Ok(7));
    assert_eq!(handle.pop(), Ok(7));
}

#[test]
fn user_code_during_a_peek_can_use_the_queue() {
    let queue = filled([1, 2]);
    let seen = RefCell::new(Vec::new());
    let mut handle = queue.handle();
    handle
        .peek_with(|item| {
            seen.borrow_mut().push(*item);
            seen.borrow_mut().extend(queue.pop());
            queue.push(3).unwrap();
        })
        .unwrap();
    assert_eq!(*seen.borrow(), [1, 2]);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 3]);
}
