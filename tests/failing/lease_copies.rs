//! The copies of leased items: clones and destructors run outside of all locks and borrows, and a panic in one loses
//! no item.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::cloned::Cloned;
use crate::common::failing::{leased, SECOND};
use crate::common::futures::Task;
use crate::common::{drain, ends, panics};
use requeue::{try_commit_all, Fifo, Handle, Leased, ManualClock, PopError, Queue};

#[test]
fn every_copy_is_dropped() {
    type End = fn(&mut Handle<Cloned, Leased<Fifo>>, &ManualClock, &Queue<Cloned, Leased<Fifo>>);
    let ends: [End; 4] = [
        |handle, _, _| {
            let tx = handle.begin();
            tx.pop().unwrap();
            tx.try_commit().unwrap();
        },
        |handle, _, queue| {
            let tx = handle.begin();
            tx.pop().unwrap();
            tx.abort();
            queue.pop().ok().unwrap();
        },
        |handle, clock, queue| {
            let tx = handle.begin();
            tx.pop().unwrap();
            clock.advance(SECOND);
            queue.pop().ok().unwrap();
            assert!(tx.try_commit().is_err());
        },
        |handle, clock, queue| {
            let tx = handle.begin();
            tx.retry_after(tx.pop().unwrap(), SECOND).ok().unwrap();
            tx.try_commit().unwrap();
            clock.advance(SECOND);
            queue.pop().ok().unwrap();
        },
    ];
    for end in ends {
        let item = Cloned::new(7, || {});
        let alive = Arc::clone(&item.alive);
        let (clock, queue) = leased([item]);
        let mut handle = queue.handle();
        end(&mut handle, &clock, &queue);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_clone_that_panics_loses_nothing() {
    let breaks = Arc::new(AtomicBool::new(true));
    let fuse = Arc::clone(&breaks);
    let hook = move || assert!(!fuse.load(Ordering::SeqCst), "the clone fails");
    let hook = Arc::new(hook);
    let items = (0..3).map(|number| {
        let hook = Arc::clone(&hook);
        Cloned::new(number, move || hook())
    });
    let (clock, queue) = leased(items);
    let mut handle = queue.handle();
    assert!(panics(|| handle.begin().pop().is_ok()));
    assert!(panics(|| handle.begin().pop_batch(3).len()));
    assert!(panics(|| handle.begin().pop_blocking().is_ok()));
    assert!(panics(|| handle.begin().peek().unwrap().take().number));
    assert_eq!(queue.stats().held, 0);
    // Caught within the transaction: the item is held, but without a lease.
    let tx = handle.begin();
    assert!(panics(|| tx.pop().is_ok()));
    assert_eq!(tx.held(), 1);
    tx.abort();
    queue.stats().check().unwrap();
    breaks.store(false, Ordering::SeqCst);
    let tx = handle.begin();
    let numbers: Vec<_> = tx.pop_batch(3).map(|item| item.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(tx.try_commit().is_ok());
    clock.advance(SECOND);
    assert!(queue.is_empty());
}

/// The clone panics while its worker is in the wait queue: its waiter is removed.
#[test]
fn a_clone_that_panics_in_a_waiting_pop_wakes_another_one() {
    let breaks = Arc::new(AtomicBool::new(true));
    let fuse = Arc::clone(&breaks);
    let (_clock, queue) = leased([]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let mut first = Task::new(tx.pop_async());
    assert!(first.poll().is_pending());
    let mut second = Task::new(b.pop_async());
    assert!(second.poll().is_pending());
    let hook = move || assert!(!fuse.swap(false, Ordering::SeqCst), "the clone fails");
    queue.push(Cloned::new(7, hook)).ok().unwrap();
    assert!(panics(|| first.poll().is_ready()));
    drop(first);
    tx.abort();
    assert!(second.was_woken());
    assert!(second.output().is_ok());
}

#[test]
fn a_clone_that_panics_in_a_blocked_pop_leaves_no_waiter_behind() {
    ends(|| {
        let breaks = Arc::new(AtomicBool::new(true));
        let fuse = Arc::clone(&breaks);
        let (_clock, queue) = leased([]);
        let mut b = queue.handle();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let mut a = queue.handle();
                assert!(panics(|| a.begin().pop_blocking().is_ok()));
                a
            });
            while queue.stats().waiting < 1 {
                thread::yield_now();
            }
            let hook = move || assert!(!fuse.swap(false, Ordering::SeqCst), "the clone fails");
            queue.push(Cloned::new(7, hook)).ok().unwrap();
            let a = first.join().unwrap();
            assert!(queue.pop().is_ok());
            let mut task = Task::new(b.pop_async());
            assert!(task.poll().is_pending());
            assert_eq!(queue.stats().waiting, 1);
            queue.push(Cloned::new(8, || {})).ok().unwrap();
            assert!(task.was_woken());
            assert!(task.output().is_ok());
            drop(a);
        });
    });
}

/// A clone may use the queue, and even end leases.
#[test]
fn a_clone_may_use_the_queue() {
    thread_local! {
        static QUEUE: Cell<Option<Queue<Cloned, Leased<Fifo>>>> = const { Cell::new(None) };
    }
    let (clock, queue) = leased([]);
    QUEUE.set(Some(queue.clone()));
    let hook = || {
        if let Some(queue) = QUEUE.take() {
            queue.stats().check().unwrap();
            queue.push(Cloned::new(8, || {})).ok().unwrap();
            assert_eq!(queue.pop().ok().unwrap().number, 8);
            assert_eq!(queue.held().len(), 1);
            assert_eq!(queue.recover("nobody", queue.now()), 0);
        }
    };
    queue.push(Cloned::new(7, hook)).ok().unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop().unwrap().number, 7);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
    drop(tx);
    QUEUE.set(None);
}

/// An item whose copies panic when they are dropped, while the fuse burns.
struct Fragile {
    number: u32,
    is_copy: bool,
    fuse: Arc<AtomicBool>,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            is_copy: true,
            fuse: Arc::clone(&self.fuse),
        }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let breaks = self.is_copy && self.fuse.load(Ordering::SeqCst);
        assert!(!breaks || thread::panicking(), "the destructor fails");
    }
}

/// A queue of fragile items with these numbers, and the fuse.
fn fragile(
    numbers: std::ops::Range<u32>,
) -> (ManualClock, Queue<Fragile, Leased<Fifo>>, Arc<AtomicBool>) {
    let fuse = Arc::new(AtomicBool::new(true));
    let items = numbers.map(|number| Fragile {
        number,
        is_copy: false,
        fuse: Arc::clone(&fuse),
    });
    let (clock, queue) = leased(items);
    (clock, queue, fuse)
}

#[test]
fn a_copy_whose_destructor_panics_loses_no_item_that_is_retried() {
    let (clock, queue, fuse) = fragile(0..2);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let (first, _second) = (tx.pop().ok().unwrap(), tx.pop().ok().unwrap());
    assert!(panics(|| tx.retry_after(first, SECOND).is_ok()));
    fuse.store(false, Ordering::SeqCst);
    assert_eq!((tx.held(), queue.stats().delayed), (1, 1));
    queue.stats().check().unwrap();
    tx.abort();
    clock.advance(SECOND);
    let numbers = drain(&queue).into_iter().map(|item| item.number);
    assert!(numbers.eq([0, 1]));
    queue.close();
    assert_eq!(queue.pop().err(), Some(PopError::Closed));
}

/// The destructor of the first copy panics; what was removed until then is put at the head together.
#[test]
fn a_copy_whose_destructor_panics_loses_none_that_are_retried_together() {
    let (_clock, queue, fuse) = fragile(0..4);
    let mut tx = queue.begin_owned();
    assert_eq!(tx.pop_batch(3).len(), 3);
    assert!(panics(|| tx.retry_all_after(Duration::ZERO).is_ok()));
    fuse.store(false, Ordering::SeqCst);
    assert_eq!((tx.held(), queue.len()), (2, 2));
    queue.stats().check().unwrap();
    tx.retry_all_after(Duration::ZERO).unwrap();
    drop(tx);
    let mut numbers: Vec<_> = drain(&queue).iter().map(|item| item.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
    queue.stats().check().unwrap();
}

#[test]
fn copies_whose_destructors_panic_at_the_end_lose_nothing() {
    for commits in [true, false] {
        let (_clock, queue, fuse) = fragile(0..3);
        let mut handle = queue.handle();
        assert!(panics(|| {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(2).len(), 2);
            if commits {
                drop(tx.try_commit());
            } else {
                tx.abort();
            }
        }));
        fuse.store(false, Ordering::SeqCst);
        let left = drain(&queue).into_iter().map(|item| item.number);
        assert!(left.eq(if commits { 2..3 } else { 0..3 }));
        let stats = queue.stats();
        assert_eq!(stats.held, 0);
        stats.check().unwrap();
    }
}

/// The leases of the second item end, although the copy of the first one panics.
#[test]
fn a_copy_whose_destructor_panics_keeps_no_lease_of_another_transaction() {
    let (clock, queue, fuse) = fragile(0..3);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    assert!(panics(|| {
        let (tx_a, tx_b) = (a.begin(), b.begin());
        assert!(tx_a.pop().is_ok() && tx_b.pop().is_ok());
        try_commit_all((tx_a, tx_b)).is_ok()
    }));
    fuse.store(false, Ordering::SeqCst);
    let tx = b.begin();
    assert_eq!(tx.pop().ok().unwrap().number, 2);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
    assert!(tx.try_commit().is_err());
    let left = drain(&queue).into_iter().map(|item| item.number);
    assert!(left.eq([2]));
    queue.stats().check().unwrap();
}
