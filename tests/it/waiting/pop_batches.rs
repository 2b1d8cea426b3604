//! Futures of pop batches: the items that they gather, and the items left when they are dropped.

use std::time::Duration;

use crate::common::failing::{clocked_with, INSTANT, SECOND};
use crate::common::futures::{block_on, Task};
use crate::common::{assert_at_rest, drain, filled, panics};
use requeue::{Order, PopError, Queue};

#[test]
fn the_caller_keeps_the_items_of_a_dropped_batch() {
    let queue = filled([1]);
    let mut handle = queue.handle();
    let mut items = vec![0];
    let mut batch = Task::waiting(handle.pop_batch_async(4, 9, &mut items));
    queue.push(2).unwrap();
    assert!(batch.was_woken());
    batch.assert_waits();
    queue.push(3).unwrap();
    drop(batch); // was woken for 3, and was not polled
    assert_eq!(items, [0, 1, 2]);
    assert_eq!(handle.pop(), Ok(3));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn the_caller_keeps_the_items_of_a_forgotten_batch() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let mut items = Vec::new();
    Task::waiting(handle.pop_batch_async(3, 9, &mut items)).forget();
    assert_eq!(items, [1, 2]);
    queue.push(3).unwrap();
    assert_eq!(handle.pop(), Ok(3));
    assert_eq!(queue.stats().waiting, 0);
}

#[test]
fn the_transaction_holds_the_items_of_a_dropped_batch() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    for forgets in [false, true] {
        let tx = handle.begin();
        let batch = Task::waiting(tx.pop_batch_async(3, 9));
        assert!(panics(|| tx.held()));
        if forgets {
            batch.forget();
        } else {
            drop(batch);
            assert_eq!(tx.held(), 2);
        }
        assert!(queue.is_empty());
        tx.abort();
        assert_eq!((queue.len(), queue.stats().waiting), (2, 0));
    }
    let tx = handle.begin();
    drop(Task::waiting(tx.pop_batch_async(3, 9)));
    assert!(tx.commit().eq([1, 2]));
    assert_at_rest(&queue, 0, 0);
}

/// Across several blocks of the hold, and several polls.
#[test]
fn a_batch_returns_only_the_items_it_took() {
    let queue = filled(0..3);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut first = tx.pop().unwrap();
    let mut batch = Task::waiting(tx.pop_batch_async(500, 600));
    for some in [3..4, 4..200, 200..900] {
        queue.push_batch(some.clone()).unwrap();
        assert_eq!(batch.poll().is_ready(), some.end == 900);
        if some.end == 200 {
            drop(batch);
            assert_eq!(tx.held(), 200);
            batch = Task::waiting(tx.pop_batch_async(500, 600));
        }
    }
    drop(batch);
    let rest = block_on(tx.pop_batch_async(1, 9)).map(|item| *item);
    assert!(rest.eq(800..809));
    *first += 1000;
    assert!(tx.commit().eq([1000].into_iter().chain(1..809)));
    assert_eq!(drain(&queue).len(), 91);
}

#[test]
fn a_batch_hands_its_items_over_when_it_is_ready() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(tx.pop().is_ok());
    let mut batch = Task::waiting(tx.pop_batch_async(3, 3));
    queue.push_batch([3, 4, 5]).unwrap();
    assert!(batch.was_woken());
    let items = batch.output();
    assert_eq!(items.len(), 3);
    for mut item in items {
        *item *= 10;
    }
    assert!(panics(|| batch.poll().is_ready()));
    drop(batch);
    assert!(tx.commit().eq([1, 20, 30, 40]));
    let mut items = Vec::new();
    let mut batch = Task::new(handle.pop_batch_async(1, 3, &mut items));
    assert_eq!(batch.output(), 1);
    assert!(panics(|| batch.poll().is_ready()));
    drop(batch);
    assert_eq!(items, [5]);
}

#[test]
fn the_close_ends_a_batch_with_the_items_so_far() {
    let queue = filled([1]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut items = Vec::new();
    let mut plain = Task::waiting(a.pop_batch_async(2, 2, &mut items));
    let tx = b.begin();
    let mut held = Task::waiting(tx.pop_batch_async(2, 2));
    queue.close();
    assert!(plain.was_woken() && held.was_woken());
    assert_eq!((plain.output(), held.output().len()), (1, 0));
    drop((plain, held));
    assert_eq!(items, [1]);
}

/// It must not wait for a waiter that waits for it.
#[test]
fn a_transaction_with_work_does_not_wait_after_the_close() {
    let queue = filled([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    let mut batch_a = Task::waiting(tx_a.pop_batch_async(3, 3));
    tx_b.push(3).unwrap();
    queue.close();
    assert_eq!(batch_a.output().len(), 2);
    assert_eq!(block_on(tx_b.pop_batch_async(1, 1)).len(), 0);
}

#[test]
fn a_wake_up_goes_on_when_its_batch_is_dropped() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        let mut handles = [queue.handle(), queue.handle()];
        let [a, b] = &mut handles;
        let mut items = Vec::new();
        let batch = Task::waiting(a.pop_batch_async(1, 1, &mut items));
        let mut next = Task::waiting(b.pop_async());
        queue.push(1).unwrap();
        assert!(batch.was_woken() && !next.was_woken());
        drop(batch);
        assert!(next.was_woken());
        assert_eq!(next.output(), Ok(1));
    }
    test(&Queue::unbounded());
    test(&Queue::builder().fair_by(|item: &u32| item % 2).build());
    test(&Queue::builder().by_priority().build());
}

#[test]
fn the_future_of_a_queue_outlives_it() {
    let queue = filled([1]);
    let (mut items, mut other) = (Vec::new(), queue.handle());
    let mut batch = Task::waiting(queue.pop_batch_async(2, 2, &mut items));
    drop(queue);
    other.push(2).unwrap();
    assert_eq!(batch.output(), 2);
    drop(batch);
    assert_eq!(items, [1, 2]);
    assert_eq!(other.pop(), Err(PopError::Empty));
}

/// The batch writer that a program writes first: a timeout around the future of a batch, and then a commit.
#[test]
fn a_writer_sees_all_that_it_commits() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let mut written = Vec::new();
    for wave in 0..10 {
        let mut tx = handle.begin();
        let mut batch = Task::waiting(tx.pop_batch_async(9, 9));
        queue.push_batch([2 * wave, 2 * wave + 1]).unwrap();
        batch.assert_waits();
        drop(batch); // a timeout
        written.extend(tx.items().map(|row| *row));
        tx.commit();
    }
    assert!(written.into_iter().eq(0..20));
    assert_at_rest(&queue, 0, 0);
}

/// A batch that is too small is ready when its time is over, with what has come, and has left the wait queue.
macro_rules! assert_in_time {
    ($queue:ident, $clock:ident, $batch:expr) => {{
        let mut batch = Task::waiting($batch);
        assert_eq!($queue.stats().waiting, 1);
        $queue.push(1).unwrap();
        assert_eq!(batch.rings(), 1);
        $clock.advance(SECOND);
        batch.assert_waits();
        assert_eq!(batch.rings(), 1);
        $clock.advance(SECOND - INSTANT);
        assert_eq!(batch.rings(), 1);
        batch.assert_waits(); // without need: the timer stays
        $clock.advance(INSTANT);
        assert_eq!(batch.rings(), 2);
        let output = batch.output();
        assert_eq!($queue.stats().waiting, 0);
        assert!(panics(|| batch.poll().is_ready()));
        output
    }};
}

#[test]
fn a_batch_is_ready_in_time_with_what_has_come() {
    let (clock, queue) = clocked_with([]);
    let mut handle = queue.handle();
    let mut items = Vec::new();
    let time = SECOND * 2;
    let taken = assert_in_time!(
        queue,
        clock,
        queue.pop_batch_timeout_async(2, 9, &mut items, time)
    );
    assert_eq!(taken, 1);
    let taken = assert_in_time!(
        queue,
        clock,
        handle.pop_batch_timeout_async(2, 9, &mut items, time)
    );
    assert_eq!((taken, &*items), (1, &[1, 1][..]));
    let tx = handle.begin();
    let taken = assert_in_time!(queue, clock, tx.pop_batch_timeout_async(2, 9, time));
    assert_eq!(taken.len(), 1);
    tx.commit();
    let tx = queue.begin_owned();
    let taken = assert_in_time!(queue, clock, tx.pop_batch_timeout_async(2, 9, time));
    assert_eq!(taken.len(), 1);
    drop(tx.commit());
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn the_time_of_a_batch_runs_from_the_call_on() {
    let (clock, queue) = clocked_with([]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut late = Task::new(tx.pop_batch_timeout_async(2, 2, SECOND));
    clock.advance(SECOND);
    queue.push(1).unwrap();
    assert_eq!(late.output().len(), 1); // tried once
    drop(late);
    queue.push_batch([2, 3]).unwrap();
    let mut in_vain = Task::new(tx.pop_batch_timeout_async(2, 2, Duration::ZERO));
    assert_eq!(in_vain.output().len(), 2);
    drop(in_vain);
    let mut endless = Task::waiting(tx.pop_batch_timeout_async(1, 2, Duration::MAX));
    clock.advance(SECOND * 1_000_000);
    assert!(!endless.was_woken());
    endless.assert_waits();
}

/// The wake-up of a batch whose time is over goes to the next waiter.
#[test]
fn a_batch_that_ends_in_time_passes_its_wake_up_on() {
    let (clock, queue) = clocked_with([]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut items = Vec::new();
    let mut batch = Task::waiting(a.pop_batch_timeout_async(3, 3, &mut items, SECOND));
    let mut next = Task::waiting(b.pop_async());
    queue.push(1).unwrap();
    assert_eq!((batch.rings(), next.rings()), (1, 0));
    clock.advance(SECOND);
    assert_eq!(batch.output(), 1);
    drop(batch);
    assert!(!next.was_woken());
    queue.push(2).unwrap();
    assert_eq!(next.output(), Ok(2));
    assert_eq!(items, [1]);
}

/// The timer is set again at each poll, for the waker of that poll.
#[test]
fn a_batch_in_another_task_is_woken_there_in_time() {
    let (clock, queue) = clocked_with([1]);
    let mut items = Vec::new();
    let mut batch = Task::waiting(queue.pop_batch_timeout_async(2, 2, &mut items, SECOND));
    batch.renew_waker();
    batch.assert_waits();
    clock.advance(SECOND);
    assert_eq!((batch.rings(), batch.output()), (1, 1));
}

/// By the timer of the process, on an executor that knows no time.
#[test]
fn a_batch_needs_no_runtime() {
    let queue = filled([1]);
    let mut items = Vec::new();
    let moment = Duration::from_millis(1);
    let taken = block_on(queue.pop_batch_timeout_async(2, 2, &mut items, moment));
    assert_eq!((taken, &*items), (1, &[1][..]));
}

#[test]
fn a_transaction_shows_all_items_that_it_holds() {
    let queue = filled(0..6);
    let mut handle = queue.handle();
    let mut tx = handle.begin();
    assert_eq!(tx.items().len(), 0);
    assert_eq!(*tx.pop().unwrap(), 0);
    Task::waiting(tx.pop_batch_async(9, 9)).forget();
    assert_eq!(*tx.items().nth(2).unwrap(), 2);
    for mut item in tx.items() {
        *item += 10;
    }
    assert!(tx.items().map(|item| *item).eq(10..16));
    assert!(tx.commit().eq(10..16));
}
