//! User code that runs in the midst of a call may not use the transaction of that call.

mod common;

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::channel;
use std::sync::Mutex;
use std::thread;

use common::cloned::Cloned;
use common::failing::{leased, SECOND};
use common::{drain, panics};
use requeue::{Item, Transaction};

/// A look that is taken on another thread has work to do there; meanwhile the transaction is lent.
#[test]
fn a_look_is_at_its_end_when_its_item_is_copied() {
    let (at_work, working) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let (clock, queue) = leased([]);
    let hook = move || {
        at_work.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap_err();
    };
    queue.push(Cloned::new(7, hook)).ok().unwrap();
    queue.push(Cloned::new(8, || {})).ok().unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    thread::scope(|scope| {
        let taker = scope.spawn(|| peek.take().number);
        working.recv().unwrap();
        let lent = panics(|| tx.pop().is_ok());
        drop(go_on);
        assert_eq!(taker.join().unwrap(), 7);
        assert!(lent, "used from two threads at the same time");
    });
    assert_eq!(tx.pop().unwrap().number, 8);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}

/// The transaction that is open on this thread for good.
type Open = Transaction<'static, Cloned>;

thread_local! {
    static OPEN: Cell<Option<&'static Open>> = const { Cell::new(None) };
    static TAKEN: Cell<Vec<Item<'static, Cloned>>> = const { Cell::new(Vec::new()) };
}

/// What a copy may try to do with the transaction that takes its original in a batch.
const MEDDLING: [fn(&'static Open); 3] = [
    |tx| assert!(tx.pop().is_ok()),
    |tx| assert_eq!(tx.pop_batch(1).len(), 1),
    |tx| {
        for item in TAKEN.take() {
            assert!(tx.retry_after(item, SECOND).is_ok());
        }
    },
];

#[test]
fn a_copy_may_not_use_the_transaction_that_takes_a_batch() {
    for meddle in MEDDLING {
        let (clock, queue) = leased([]);
        let hook = move || {
            if let Some(tx) = OPEN.take() {
                meddle(tx);
            }
        };
        for number in 0..8 {
            queue.push(Cloned::new(number, hook)).ok().unwrap();
        }
        let handle = Box::leak(Box::new(queue.handle()));
        let tx: &'static Open = Box::leak(Box::new(handle.begin()));
        TAKEN.set(tx.pop_batch(5).collect());
        OPEN.set(Some(tx));
        let panic = catch_unwind(AssertUnwindSafe(|| tx.pop_batch(2).len())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the transaction is lent"));
        TAKEN.take();
        assert_eq!(tx.held(), 7);
        clock.advance(SECOND);
        // Those that were not copied are not leased.
        let mut numbers: Vec<_> = drain(&queue).iter().map(|item| item.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 7]);
        queue.stats().check().unwrap();
    }
}
