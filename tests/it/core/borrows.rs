//! Futures of a transaction: they borrow it while they are alive, and can be on any thread.

use std::cell::Cell;
use std::future::Future;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use crate::common::ends;
use crate::common::futures::{block_on, Task};
use requeue::future::{PopAsync, PushAsync, PushBatchAsync, StageAsync, TakeAsync};
use requeue::{Handle, PopError, Queue, Transaction};

/// Compiles only if the type has all the traits.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {
        const _: () = {
            const fn has<T: $($bound)+>() {}
            has::<$type>();
        };
    };
}

has!(TakeAsync<'static, Cell<u8>>: Future + Send + Unpin);
has!(PushAsync<'static, Cell<u8>>: Future + Send + Unpin);
has!(PushBatchAsync<'static, Cell<u8>>: Future + Send + Unpin);
has!(PopAsync<'static, Cell<u8>>: Future + Send + Unpin);
has!(StageAsync<'static, Cell<u8>>: Future + Send + Unpin);
has!(Transaction<'static, Cell<u8>>: Send);

/// Compiles only if the future is `Send`.
fn on_any_thread<F: Future + Send>(future: F) -> F {
    future
}

/// Moves one item to the end of the queue, in a transaction that is held across awaits.
async fn turn(handle: &mut Handle<u32>) -> Result<u32, PopError> {
    let tx = handle.begin();
    let number = {
        let mut item = tx.pop_async().await?;
        *item += 1;
        let inner = tx.pop_async().await.map_or(0, |other| *other);
        *item + inner
    };
    tx.push_async(number).await.expect("holds two");
    tx.commit();
    Ok(number)
}

#[test]
fn a_transaction_lives_across_awaits_that_move_between_threads() {
    ends(|| {
        let queue = Queue::bounded(2);
        let mut handle = queue.handle();
        let mut task = Task::new(Box::pin(on_any_thread(async move {
            let turned = turn(&mut handle).await;
            (turned, handle)
        })));
        task.assert_waits();
        queue.push(1).unwrap();
        let mut task = std::thread::spawn(move || {
            task.assert_waits();
            task
        })
        .join()
        .unwrap();
        queue.push(5).unwrap();
        assert_eq!(task.rings(), 2);
        let (turned, mut handle) = task.output();
        assert_eq!((turned, handle.pop()), (Ok(7), Ok(7)));
    });
}

#[test]
fn all_futures_of_handles_may_move_between_threads() {
    let queue = Queue::bounded(8);
    let mut handle = queue.handle();
    let mut other = queue.handle();
    let count = block_on(on_any_thread(async move {
        handle.push_async(Cell::new(1)).await?;
        handle.push_batch_async([2, 3].map(Cell::new)).await.ok();
        let first = handle.pop_async().await.expect("three are there");
        let tx = handle.begin();
        tx.push_async(first).await?;
        tx.commit();
        Ok::<_, requeue::PushError<Cell<i32>>>(other.pop_batch(8, &mut Vec::new()))
    }));
    assert_eq!(count.ok(), Some(3));
}

type Use = fn(&Transaction<'_, u32>);

/// All methods of a transaction by shared reference.
const USES: [(&str, Use); 14] = [
    ("push", |tx| _ = tx.push(1)),
    ("push_blocking", |tx| _ = tx.push_blocking(1)),
    ("push_timeout", |tx| _ = tx.push_timeout(1, Duration::ZERO)),
    ("push_async", |tx| _ = tx.push_async(1)),
    ("pop", |tx| _ = tx.pop()),
    ("pop_blocking", |tx| _ = tx.pop_blocking()),
    ("pop_timeout", |tx| _ = tx.pop_timeout(Duration::ZERO)),
    ("pop_async", |tx| _ = tx.pop_async()),
    ("pop_batch", |tx| _ = tx.pop_batch(1)),
    ("pop_batch_blocking", |tx| _ = tx.pop_batch_blocking(0, 1)),
    ("pop_batch_timeout", |tx| {
        _ = tx.pop_batch_timeout(0, 1, Duration::ZERO);
    }),
    ("pop_batch_async", |tx| _ = tx.pop_batch_async(0, 1)),
    ("staged", |tx| _ = tx.staged()),
    ("held", |tx| _ = tx.held()),
];

/// The message of the panic when a borrowed transaction is used.
fn refusal(tx: &Transaction<'_, u32>, use_it: Use) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| use_it(tx))).err()?;
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
}

#[track_caller]
fn assert_borrowed(tx: &Transaction<'_, u32>) {
    for (name, use_it) in USES {
        let message = refusal(tx, use_it).unwrap_or_else(|| panic!("{name} did not panic"));
        let expected = "transaction is borrowed by";
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert!(format!("{tx:?}").starts_with("Transaction"));
}

/// A queue of capacity 1 in which every wait of a transaction is pending: another transaction holds its item.
fn busy_queue(other: &mut Option<Handle<u32>>) -> (Queue<u32>, Transaction<'_, u32>) {
    let queue = Queue::bounded(1);
    queue.push(0).unwrap();
    let holder = other.insert(queue.handle()).begin();
    holder.pop().unwrap();
    (queue, holder)
}

#[test]
fn a_transaction_is_borrowed_while_its_future_is_alive() {
    let mut other = None;
    let (queue, _holder) = busy_queue(&mut other);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let pop = tx.pop_async();
    assert_borrowed(&tx);
    let pop = Task::waiting(pop);
    assert_borrowed(&tx);
    drop(pop);
    assert_eq!((tx.held(), tx.staged()), (0, 0));
    let push = tx.push_async(1);
    assert_borrowed(&tx);
    let push = Task::waiting(push);
    assert_borrowed(&tx);
    drop(push);
    assert_eq!((tx.held(), tx.staged()), (0, 0));
}

#[test]
fn a_ready_future_ends_the_borrow() {
    let queue = Queue::bounded(2);
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut pop = Task::new(tx.pop_async());
    let item = pop.output().unwrap();
    let mut push = Task::new(tx.push_async(*item + 1));
    assert_eq!(push.output(), Ok(()));
    assert_eq!((tx.held(), tx.staged()), (1, 1));
    drop((pop, push));
    tx.push(3).unwrap();
    tx.commit();
    assert_eq!((queue.pop(), queue.pop()), (Ok(2), Ok(3)));
}

#[test]
fn a_future_that_fails_ends_the_borrow() {
    let queue = Queue::bounded(2);
    let mut handle = queue.handle();
    let tx = handle.begin();
    queue.close();
    let mut pop = Task::new(tx.pop_async());
    assert_eq!(pop.output().err(), Some(PopError::Closed));
    let mut push = Task::new(tx.push_async(1));
    assert!(push.output().unwrap_err().is_closed());
    assert_eq!((tx.held(), tx.staged()), (0, 0));
}

/// A completed future that is still alive does not end the borrow of the next one.
#[test]
fn a_finished_future_does_not_affect_later_borrows() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut first = Task::new(tx.pop_async());
    first.output().unwrap();
    let second = Task::waiting(tx.pop_async());
    drop(first);
    assert_borrowed(&tx);
    queue.push(2).unwrap();
    assert!(second.was_woken());
    drop(second);
    assert_eq!(tx.pop().as_deref(), Ok(&2));
}

#[test]
fn a_refused_use_changes_nothing() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    tx.push(2).unwrap();
    let mut pop = Task::waiting(tx.pop_async());
    assert_borrowed(&tx);
    queue.push(3).unwrap();
    assert_eq!(pop.rings(), 1);
    assert_eq!(pop.output().as_deref(), Ok(&3));
    drop(pop);
    assert_eq!((tx.held(), tx.staged()), (2, 1));
    assert!(tx.commit().eq([1, 3]));
    assert_eq!(queue.pop(), Ok(2));
}

type End = fn(Transaction<'_, u32>);

#[test]
fn a_transaction_ends_well_after_a_forgotten_future() {
    let ends: [(End, [u32; 2]); 3] = [
        (|tx| assert!(tx.commit().eq([1])), [2, 3]),
        (|tx| tx.abort(), [1, 3]),
        (|tx| drop(tx), [1, 3]),
    ];
    for (end, left) in ends {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.push(2).unwrap();
        mem::forget(tx.pop_async());
        assert_borrowed(&tx);
        end(tx);
        handle.push(3).unwrap();
        assert_eq!([queue.pop(), queue.pop()], left.map(Ok));
        let tx = handle.begin();
        assert_eq!((tx.held(), tx.staged()), (0, 0));
    }
}
