//! Memory is freed without running foreign code: functions that other users of crossbeam-epoch defer run in no call
//! of this crate, and queues work on a thread that is about to end.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::iter;
use std::mem;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::common::{assert_at_rest, drain, ends, filled, panics, Ledger};
use crossbeam_epoch as epoch;
use requeue::{commit_all, FairQueue, Item, Order, PopError, Queue, Transaction, Unleased};

/// An item that fills a segment, so that each pop enters one.
type Wide = [usize; 256];

fn wide(number: usize) -> Wide {
    [number; 256]
}

thread_local! {
    /// The body of a foreign deferred function when it runs within a call of this crate.
    static MEDDLE: Cell<Option<fn()>> = const { Cell::new(None) };
    /// Number of such runs.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// Serializes the tests: any thread may run a function that another thread has deferred to the default collector.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs calls of this crate while a deferred function is pending in the default collector.
fn among_deferred<R>(meddle: fn(), calls: impl FnOnce() -> R) -> R {
    let guard = epoch::pin();
    guard.defer(|| {
        if let Some(meddle) = MEDDLE.take() {
            RUNS.set(RUNS.get() + 1);
            meddle();
            MEDDLE.set(Some(meddle));
        }
    });
    guard.flush();
    drop(guard);
    MEDDLE.set(Some(meddle));
    let result = calls();
    MEDDLE.set(None);
    result
}

/// The transaction that stays open on this thread.
type Open = Transaction<'static, Wide>;

thread_local! {
    static OPEN: Cell<Option<&'static Open>> = const { Cell::new(None) };
    static TAKEN: RefCell<Vec<Item<'static, Wide>>> = const { RefCell::new(Vec::new()) };
}

/// Begins a transaction that never ends.
fn open(queue: &Queue<Wide>) -> &'static Open {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let handle = Box::leak(Box::new(queue.handle()));
    let tx: &'static Open = Box::leak(Box::new(handle.begin()));
    let address: *const Open = tx;
    KEPT.lock().unwrap().push(address as usize); // for leak detectors
    tx
}

#[test]
fn foreign_deferred_functions_use_no_popping_transaction() {
    const ITEMS: usize = 1_000;
    let _alone = alone();
    let queue = filled((0..ITEMS).map(wide));
    let tx = open(&queue);
    OPEN.set(Some(tx));
    let pop_too = || {
        let item = OPEN.get().unwrap().pop().unwrap();
        TAKEN.with_borrow_mut(|taken| taken.push(item));
    };
    let mut items = Vec::new();
    for _ in 0..10 {
        among_deferred(pop_too, || {
            items.extend(iter::from_fn(|| tx.pop().ok()).take(ITEMS / 10));
        });
    }
    assert_eq!(RUNS.get(), 0, "code of others ran within a pop");
    assert!(items.iter().map(|item| item[0]).eq(0..ITEMS));
    assert_eq!(tx.held(), ITEMS);
}

#[test]
fn foreign_deferred_functions_wait_for_no_lock_of_a_pop() {
    thread_local! {
        static FAIR: RefCell<Option<FairQueue<usize, Wide>>> = const { RefCell::new(None) };
    }
    let _alone = alone();
    let (runs, mut popped) = ends(|| {
        let queue = Queue::builder().fair_by(|item: &Wide| item[0] % 7).build();
        FAIR.set(Some(queue.clone()));
        let pop_too = || {
            let _ = FAIR.with_borrow(|queue| queue.as_ref().unwrap().pop());
        };
        let mut popped = Vec::new();
        for round in 0..10 {
            among_deferred(pop_too, || {
                let numbers = 100 * round..100 * (round + 1);
                queue.handle().push_batch(numbers.map(wide)).unwrap();
                popped.extend(drain(&queue).iter().map(|item| item[0]));
            });
        }
        (RUNS.get(), popped)
    });
    assert_eq!(runs, 0, "code of others ran within a pop");
    popped.sort_unstable();
    assert!(popped.into_iter().eq(0..1_000));
}

#[test]
fn foreign_deferred_functions_do_not_undo_a_commit() {
    const ITEMS: usize = 1_000;
    let _alone = alone();
    let orders = filled(0..ITEMS);
    let (invoices, letters) = (Queue::unbounded(), Queue::unbounded());
    let (mut from, mut to, mut copies) = (orders.handle(), invoices.handle(), letters.handle());
    let mut panicked = 0;
    for _ in 0..10 {
        among_deferred(
            || panic!("a deferred function of others"),
            || {
                panicked += iter::repeat_with(|| {
                    panics(|| {
                        let (order, invoice, copy) = (from.begin(), to.begin(), copies.begin());
                        let number = *order.pop().unwrap();
                        invoice.push(number).unwrap();
                        copy.push(number).unwrap();
                        commit_all((order, invoice, copy))
                    })
                })
                .take(ITEMS / 10)
                .filter(|&panicked| panicked)
                .count();
            },
        );
    }
    assert_eq!(
        (RUNS.get(), panicked),
        (0, 0),
        "code of others ran within a commit"
    );
    orders.close();
    assert_eq!(orders.pop(), Err(PopError::Closed));
    for queue in [invoices, letters] {
        queue.close();
        assert!(drain(&queue).into_iter().eq(0..ITEMS));
        assert_eq!(queue.pop(), Err(PopError::Closed));
        assert_at_rest(&queue, 0, 0);
    }
}

#[test]
fn foreign_deferred_functions_run_in_no_call() {
    let _alone = alone();
    for round in 0..4 {
        among_deferred(
            || {},
            || {
                use_queue(&Queue::unbounded());
                use_queue(&Queue::builder().timestamps().capacity(8).build());
                use_queue(&Queue::builder().fair_by(|item: &Wide| item[0] % 2).build());
                use_queue(&Queue::builder().by_priority().build());
            },
        );
        assert_eq!(
            RUNS.get(),
            0,
            "code of others ran within a call, round {round}"
        );
    }
}

/// Pushes, pops, aborts and peeks in all ways that pin.
fn use_queue<O: Order<Wide> + Unleased>(queue: &Queue<Wide, O>) {
    let (mut handle, mut other) = (queue.handle(), queue.handle());
    for number in 0..40 {
        queue.push(wide(number)).unwrap();
        handle.push_batch((0..3).map(wide)).unwrap();
        let tx = handle.begin();
        tx.push(wide(number)).unwrap();
        assert_eq!(tx.pop_batch(3).len(), 3);
        tx.abort();
        queue.stats().check().unwrap();
        assert_eq!(queue.peek_each(|_| {}), 4);
        let (tx, joined) = (handle.begin(), other.begin());
        assert!(tx.pop().is_ok() && tx.pop().is_ok());
        tx.push(wide(number)).unwrap();
        joined.push(wide(number)).unwrap();
        commit_all((tx, joined));
        assert_eq!(drain(queue).len(), 4);
    }
}

/// Runs its closure when the thread-locals of its thread are dropped.
struct AtExit(Option<Box<dyn FnOnce()>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run();
        }
    }
}

/// Runs `last` on a thread after the thread-locals of this crate are dropped there: those that are created first are
/// dropped last.
fn after_thread_locals(last: impl FnOnce() + Send + 'static) {
    thread_local! {
        static LAST: RefCell<AtExit> = const { RefCell::new(AtExit(None)) };
    }
    let thread = thread::spawn(|| {
        LAST.with_borrow_mut(|at_exit| at_exit.0 = Some(Box::new(last)));
        use_queue(&Queue::unbounded());
        use_queue(&Queue::builder().by_priority().build());
    });
    thread.join().unwrap();
}

#[test]
fn a_thread_uses_queues_to_its_end() {
    let (done, was_done) = channel();
    after_thread_locals(move || {
        use_queue(&Queue::unbounded());
        use_queue(&Queue::builder().timestamps().capacity(8).build());
        use_queue(&Queue::builder().fair_by(|item: &Wide| item[0] % 2).build());
        use_queue(&Queue::builder().by_priority().build());
        done.send(()).unwrap();
    });
    assert_eq!(was_done.try_recv(), Ok(()));
}

#[test]
fn a_queue_that_ends_with_a_thread_drops_its_items() {
    let ledger = Ledger::new(100);
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    queue.push(handle.pop().unwrap()).ok().unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(10).len(), 10);
    mem::forget(tx);
    after_thread_locals(move || drop((handle, queue)));
    ledger.assert_each_dropped_once();
}
