//! Items that a worker retries after a delay.

use std::fmt;
use std::mem;
use std::time::Duration;

use crate::common::failing::{
    assert_room, clocked, clocked_with, fail, failures, leased, letters, put_off, INSTANT, NEARLY,
    SECOND,
};
use crate::common::futures::Task;
use crate::common::{drain, ends, filled, panics, Ledger};
use requeue::{Backoff, Handle, Item, PopError, PushError, Queue, Reason, Transaction};

#[test]
fn a_retried_item_is_away_until_it_is_due() {
    let (clock, queue) = clocked_with([7]);
    let mut handle = queue.handle();
    put_off(&queue, SECOND);
    assert_eq!(queue.next_due(), Some(queue.now() + SECOND));
    for step in [NEARLY, INSTANT] {
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(handle.pop(), Err(PopError::Empty));
        assert_eq!(handle.pop_batch(3, &mut Vec::new()), 0);
        assert_eq!(handle.begin().pop_batch(3).len(), 0);
        assert!(queue.is_empty());
        let stats = queue.stats();
        assert_eq!((stats.ready, stats.delayed), (0, 1));
        stats.check().unwrap();
        clock.advance(step);
    }
    assert!(!queue.is_empty());
    let stats = queue.stats();
    assert_eq!((stats.ready, stats.delayed), (1, 0));
    stats.check().unwrap();
    assert_eq!(queue.next_due(), None);
    assert_eq!(handle.pop(), Ok(7));
}

/// A way to take the next item and commit.
type Take = fn(&Queue<u32>, &mut Handle<u32>) -> Option<u32>;

const TAKES: [(&str, Take); 7] = [
    ("a pop without a handle", |queue, _| queue.pop().ok()),
    ("a pop", |_, handle| handle.pop().ok()),
    ("a blocking pop", |_, handle| handle.pop_blocking().ok()),
    ("a pop of a transaction", |_, handle| {
        handle.transact(|tx| tx.pop().map(|item| *item)).ok()
    }),
    ("a batch", |_, handle| {
        let mut items = Vec::new();
        handle.pop_batch(1, &mut items);
        items.pop()
    }),
    ("a batch of a transaction", |_, handle| {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(1).len(), 1);
        tx.commit().next()
    }),
    ("a peek", |_, handle| {
        let tx = handle.begin();
        let item = *tx.peek().ok()?.take();
        tx.commit();
        Some(item)
    }),
];

#[test]
fn due_items_come_before_all_ready_ones() {
    for (name, take) in TAKES {
        let (clock, queue) = clocked_with([7, 8]);
        let mut handle = queue.handle();
        put_off(&queue, SECOND);
        // This handle is on another shard by now.
        assert_eq!(handle.pop(), Ok(8), "{name}");
        queue.handle().push_batch([1, 2, 3]).unwrap();
        queue.push(4).unwrap();
        assert!(matches!(take(&queue, &mut handle), Some(1 | 4)), "{name}");
        clock.advance(SECOND);
        assert_eq!(take(&queue, &mut handle), Some(7), "{name}");
        assert_ne!(take(&queue, &mut handle), Some(7), "{name}");
    }
}

#[test]
fn items_come_back_in_the_order_in_which_they_are_due() {
    let (clock, queue) = clocked_with(0..6);
    for delay in [3, 1, 2, 1, 3, 2] {
        put_off(&queue, delay * SECOND);
    }
    clock.advance(3 * SECOND);
    assert_eq!(drain(&queue), [1, 3, 2, 5, 0, 4]);
}

#[test]
fn many_items_that_are_due_together_keep_their_order() {
    let (clock, queue) = clocked_with(0..1_000);
    let mut handle = queue.handle();
    let tx = handle.begin();
    for item in tx.pop_batch(1_000) {
        tx.retry_after(item, SECOND).unwrap();
    }
    tx.commit();
    queue.push(1_000).unwrap();
    clock.advance(SECOND);
    assert!(drain(&queue).into_iter().eq(0..=1_000));
}

#[test]
fn a_retry_is_final_whatever_becomes_of_the_transaction() {
    for (reason, end) in failures() {
        let (clock, queue) = clocked_with(0..3);
        let mut handle = queue.handle();
        end(&mut handle, &mut |tx| {
            let (_first, second, _third) =
                (tx.pop().unwrap(), tx.pop().unwrap(), tx.pop().unwrap());
            tx.retry_after(second, SECOND).unwrap();
            assert_eq!(tx.held(), 2);
            assert_eq!(queue.stats().delayed, 1);
        });
        let committed = reason == Reason::Retried;
        let others: &[u32] = if committed { &[] } else { &[0, 2] };
        assert_eq!(drain(&queue), others);
        clock.advance(SECOND);
        let tx = handle.begin();
        let item = tx.pop().unwrap();
        assert_eq!((*item, item.attempts()), (1, 2));
        queue.stats().check().unwrap();
    }
}

#[test]
fn changes_stay_and_attempts_are_counted() {
    let (clock, queue) = clocked_with([0]);
    let mut handle = queue.handle();
    for attempt in 1..=5 {
        let tx = handle.begin();
        let mut item = tx.pop().unwrap();
        assert_eq!((*item, item.attempts()), (attempt - 1, attempt));
        *item += 1;
        tx.retry_after(item, SECOND).unwrap();
        drop(tx);
        clock.advance(SECOND);
    }
    assert_eq!(queue.stats().aborted, 5);
    assert_eq!(queue.pop(), Ok(5));
}

#[test]
fn a_retry_without_a_backoff_is_due_at_once_but_not_before_the_call_returns() {
    let queue = crate::common::filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.retry(tx.pop().unwrap()).unwrap();
    let again = tx.pop().unwrap();
    assert_eq!((*again, again.attempts()), (1, 2));
    tx.commit();
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn every_failure_waits_as_long_as_the_backoff_says() {
    for failure in failures() {
        let (clock, builder) = clocked();
        let backoff = Backoff::exponential(SECOND, 4 * SECOND);
        let queue = builder.backoff(backoff).build();
        let mut handle = queue.handle();
        handle.push(7).unwrap();
        for seconds in [1, 2, 4, 4] {
            fail(&mut handle, failure);
            clock.advance((seconds - 1) * SECOND + NEARLY);
            assert_eq!(handle.pop(), Err(PopError::Empty), "{failure:?}");
            clock.advance(INSTANT);
            assert!(!queue.is_empty());
        }
        assert_eq!(queue.stats().aborted, 4);
        assert_eq!(handle.pop(), Ok(7));
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_backoff_delays_each_item_by_its_own_failures() {
    let (clock, builder) = clocked();
    let backoff = Backoff::exponential(SECOND, 100 * SECOND);
    let queue = builder.backoff(backoff).build();
    let mut handle = queue.handle();
    handle.push_batch(0..3).unwrap();
    handle.begin().pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(handle.begin().pop_batch(3).len(), 3);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [1, 2]);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [0]);
}

#[test]
fn an_item_of_another_transaction_is_refused() {
    let queue = crate::common::filled([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    let (mine, _theirs) = (tx_a.pop().unwrap(), tx_b.pop().unwrap());
    assert!(panics(|| tx_b.retry(mine)));
    drop((tx_a, tx_b));
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 2]);
    queue.stats().check().unwrap();
}

#[test]
fn the_longest_delay_is_no_overflow() {
    let ledger = Ledger::new(2);
    let (clock, queue) = clocked_with(ledger.items());
    put_off(&queue, Duration::MAX);
    clock.advance(1_000_000 * SECOND);
    put_off(&queue, Duration::MAX);
    assert!(queue.pop().is_err());
    assert_eq!(queue.stats().delayed, 2);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn a_clock_that_goes_backwards_only_makes_delays_longer() {
    let (clock, queue) = clocked_with([7]);
    let start = queue.now();
    put_off(&queue, 5 * SECOND);
    clock.advance(4 * SECOND);
    assert!(queue.is_empty());
    clock.set(start);
    clock.advance(4 * SECOND);
    assert!(queue.is_empty());
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(7));
}

#[test]
fn delayed_items_go_with_the_queue() {
    let ledger = Ledger::new(4);
    let (clock, queue) = clocked_with(ledger.items());
    put_off(&queue, SECOND);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 4); // at the head again
    put_off(&queue, SECOND);
    assert_eq!(queue.len(), 3); // in the heap
    put_off(&queue, SECOND);
    assert_eq!(ledger.drops(), [0; 4]);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn a_delayed_item_keeps_its_permit_in_a_bounded_queue() {
    let (clock, builder) = clocked();
    let queue = builder.capacity(2).build();
    queue.handle().push_batch([1, 2]).unwrap();
    put_off(&queue, SECOND);
    assert!(queue.push(3).unwrap_err().is_full());
    assert_eq!(queue.pop(), Ok(2));
    queue.push(3).unwrap();
    assert!(queue.push(4).unwrap_err().is_full());
    clock.advance(SECOND);
    assert!(queue.push(4).unwrap_err().is_full());
    assert_eq!(drain(&queue), [1, 3]);
    assert_room(&queue);
}

#[test]
fn a_permit_is_not_used_by_two_items() {
    let (_clock, builder) = clocked();
    let queue = builder.capacity(1).build();
    let mut handle = queue.handle();
    for commits in [true, false] {
        handle.push(1).unwrap();
        let tx = handle.begin();
        let item = tx.pop().unwrap();
        tx.push(2).unwrap();
        assert!(tx.retry_after(item, SECOND).unwrap_err().is_full());
        assert_eq!((tx.held(), tx.staged()), (1, 1));
        if commits {
            assert_eq!(tx.commit().next(), Some(1));
        } else {
            tx.abort();
        }
        assert_eq!(queue.stats().delayed, 0);
        assert_eq!(handle.pop(), Ok(if commits { 2 } else { 1 }));
        queue.stats().check().unwrap();
    }
    assert_room(&queue);
}

/// The free room is correct at the end, whatever was staged, held and retried.
#[test]
fn permits_are_right_after_every_mixture() {
    for (held, staged, retried) in [(1, 0, 1), (2, 1, 1), (2, 2, 1), (2, 3, 2), (3, 1, 3)] {
        for commits in [true, false] {
            let (clock, builder) = clocked();
            let queue = builder.capacity(8).build();
            let mut handle = queue.handle();
            handle.push_batch(0..3).unwrap();
            let tx = handle.begin();
            let mut items: Vec<_> = tx.pop_batch(held).collect();
            (0..staged).for_each(|item| tx.push(item).unwrap());
            for item in items.drain(..retried) {
                tx.retry_after(item, SECOND).unwrap();
            }
            if commits {
                tx.commit();
            } else {
                tx.abort();
            }
            let stats = queue.stats();
            assert_eq!(stats.delayed, retried as u64);
            stats.check().unwrap();
            assert_room(&queue);
            drain(&queue);
            clock.advance(SECOND);
            assert_eq!(drain(&queue).len(), retried);
            assert_room(&queue);
        }
    }
}

#[test]
fn an_item_that_dies_by_a_retry_makes_room() {
    let (_clock, builder) = clocked();
    let queue = builder.capacity(1).max_attempts(1).build();
    queue.push(1).unwrap();
    let mut pusher = queue.handle();
    let mut task = Task::waiting(pusher.push_async(2));
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.retry_after(tx.pop().unwrap(), SECOND).unwrap();
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(()));
    drop(task);
    tx.commit();
    assert_eq!(letters(&queue), [(1, 1, Reason::Retried)]);
    assert_room(&queue);
}

#[test]
fn a_closed_queue_waits_for_delayed_items() {
    let (clock, queue) = clocked_with([1, 2]);
    let mut handle = queue.handle();
    put_off(&queue, SECOND);
    assert!(queue.close());
    put_off(&queue, 2 * SECOND); // even after the close
    assert_eq!(handle.pop(), Err(PopError::Empty));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    assert_eq!(handle.pop(), Ok(1));
    assert_eq!(handle.begin().pop().unwrap_err(), PopError::Empty);
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(2));
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert_eq!(handle.pop(), Err(PopError::Closed));
    queue.stats().check().unwrap();
}

#[test]
fn a_holder_does_not_wait_for_delayed_items_of_a_closed_queue() {
    ends(|| {
        let (_clock, queue) = clocked_with([1, 2]);
        put_off(&queue, SECOND);
        queue.close();
        let mut handle = queue.handle();
        let tx = handle.begin();
        let _item = tx.pop().unwrap();
        assert_eq!(tx.pop_blocking().unwrap_err(), PopError::Empty);
        assert_eq!(tx.pop_batch_blocking(1, 2).len(), 0);
    });
}

#[test]
fn a_retried_item_is_found_after_a_forgotten_future() {
    let (clock, queue) = clocked_with([7]);
    let mut handle = queue.handle();
    put_off(&queue, SECOND);
    mem::forget(handle.pop_async());
    clock.advance(SECOND);
    assert_eq!(handle.pop(), Ok(7));
}

/// A failed item is a dead letter at once, however its transaction ends.
#[test]
fn a_failed_item_is_not_delivered_again() {
    for commits in [true, false] {
        let queue = filled([1, 2]);
        let mut handle = queue.handle();
        let tx = handle.begin();
        let (first, _second) = (tx.pop().unwrap(), tx.pop().unwrap());
        tx.fail(first, "broken").unwrap();
        let letter = queue.dead_letters().next().unwrap();
        assert_eq!((letter.item, letter.attempts), (1, 1));
        assert_eq!(
            (letter.reason, letter.error()),
            (Reason::Failed, Some("broken"))
        );
        assert_eq!((tx.held(), queue.len()), (1, 0));
        if commits {
            tx.commit();
        } else {
            tx.abort();
        }
        assert_eq!(drain(&queue).len(), usize::from(!commits));
        queue.stats().check().unwrap();
    }
}

/// Its permit goes to the staged item, or back to the queue; also that of an item whose last delivery failed.
#[test]
fn a_dead_item_gives_its_room_back() {
    for (staged, fails) in (0..=3).flat_map(|staged| [(staged, true), (staged, false)]) {
        let end = |tx: &Transaction<'_, u32>, item: Item<'_, u32>| {
            if fails {
                tx.fail(item, "broken")
            } else {
                tx.retry(item)
            }
        };
        let queue = Queue::builder().capacity(3).max_attempts(1).build();
        queue.handle().push_batch([1, 2]).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        let (first, second) = (tx.pop().unwrap(), tx.pop().unwrap());
        (0..staged).for_each(|item| tx.push(item).unwrap());
        end(&tx, first).unwrap();
        assert_eq!(queue.push(3).is_ok(), staged < 3);
        end(&tx, second).unwrap();
        tx.commit();
        assert_eq!(queue.dead_letters().len(), 2);
        assert_room(&queue);
    }
}

/// If no more dead letters are kept it is retried; then it needs its own permit.
#[test]
fn a_failed_item_without_room_for_its_letter_is_retried() {
    let (clock, builder) = clocked();
    let builder = builder.max_dead_letters(1).backoff(Backoff::fixed(SECOND));
    let queue = builder.capacity(3).build();
    queue.handle().push_batch([1, 2, 3]).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let (first, second) = (tx.pop().unwrap(), tx.pop().unwrap());
    tx.push(4).unwrap();
    tx.push(5).unwrap();
    tx.fail(first, "broken").unwrap();
    assert_eq!(tx.fail(second, "broken"), Err(PushError::Full(())));
    assert_eq!(queue.pop(), Ok(3));
    tx.abort();
    clock.advance(SECOND);
    let tx = handle.begin();
    let again = tx.pop().unwrap();
    assert_eq!((*again, again.attempts()), (2, 2));
    tx.fail(again, "broken").unwrap();
    tx.commit();
    assert_eq!((queue.stats().delayed, queue.dead_letters().len()), (1, 1));
    queue.stats().check().unwrap();
}

/// An error that panics when it is formatted leaves the item in the hold.
#[test]
fn an_error_that_cannot_be_shown_changes_nothing() {
    struct Wrong;
    impl fmt::Display for Wrong {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("the error cannot be shown");
        }
    }
    let queue = filled([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    assert!(panics(|| tx.fail(item, Wrong)));
    assert_eq!((tx.held(), queue.dead_letters().len()), (1, 0));
    tx.abort();
    assert_eq!(drain(&queue), [1]);
}

/// A lost item belongs to another transaction, and becomes no dead letter here.
#[test]
fn a_lost_item_cannot_be_failed() {
    let (clock, queue) = leased([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.pop(), Ok(1));
    tx.fail(item, "broken").unwrap();
    assert_eq!(queue.dead_letters().len(), 0);
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}
