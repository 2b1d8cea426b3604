//! Waits for an idle queue, concurrent with the ends of transactions.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{commit_all, Handle, Queue};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// A queue for which a wait has happened before: the first wait needs barriers that loom does not have.
fn awaited() -> Queue<u32> {
    let queue = Queue::unbounded();
    queue.wait_idle();
    queue
}

/// Waits for the queue to be idle while `work` runs with a handle that has one item in its shard.
fn waits_for(work: impl FnOnce(&Queue<u32>, &mut Handle<u32>) + Send + 'static) {
    let queue = awaited();
    let mut handle = warm(&queue);
    handle.push(1).unwrap();
    let other = thread::spawn({
        let queue = queue.clone();
        move || {
            work(&queue, &mut handle);
            handle
        }
    });
    queue.wait_idle();
    drop(other.join().unwrap());
}

#[test]
fn the_wait_against_a_pop() {
    model(|| waits_for(|_, handle| assert_eq!(handle.pop(), Ok(1))));
}

#[test]
fn the_wait_against_a_pop_without_a_handle() {
    large_model(|| waits_for(|queue, _| assert_eq!(queue.pop(), Ok(1))));
}

#[test]
fn the_wait_against_a_commit() {
    model(|| {
        waits_for(|_, handle| {
            let tx = handle.begin();
            assert!(tx.pop().is_ok());
            drop(tx.commit());
        });
    });
}

#[test]
fn an_idle_queue_whose_items_went_to_another_one() {
    model(|| {
        let (from, to) = (awaited(), Queue::unbounded());
        let (mut handle, mut other) = (warm(&from), warm(&to));
        handle.push(1).unwrap();
        let mover = thread::spawn(move || {
            let (tx, pushing) = (handle.begin(), other.begin());
            assert!(tx.pop().is_ok());
            pushing.push(2).unwrap();
            drop(commit_all((tx, pushing)));
            (handle, other)
        });
        from.wait_idle();
        assert_eq!(to.len(), 1);
        drop(mover.join().unwrap());
    });
}

/// A transaction that has found nothing stays open: its end notifies nobody.
#[test]
fn the_wait_against_a_pop_in_vain() {
    large_model(|| {
        let queue = awaited();
        let tx = queue.begin_owned();
        let other = thread::spawn(move || {
            queue.close();
            queue.wait_idle();
        });
        assert!(tx.pop().is_err());
        other.join().unwrap();
        drop(tx);
    });
}

/// A pop that has found nothing sleeps: no end of its own follows.
#[test]
fn the_wait_against_a_waiting_pop_in_vain() {
    large_model(|| {
        let queue = awaited();
        let mut handle = warm(&queue);
        handle.push(1).unwrap();
        let tx = handle.begin();
        assert!(tx.pop().is_ok()); // the hold has room from now on
        drop(tx.commit());
        let other = thread::spawn(move || {
            queue.wait_idle();
            queue.close();
        });
        assert!(handle.begin().pop_blocking().is_err());
        other.join().unwrap();
    });
}

#[test]
fn the_wait_against_a_waiting_take_in_vain() {
    large_model(|| {
        let queue = awaited();
        let taking = queue.clone();
        queue.push(1).unwrap();
        assert_eq!(taking.take().unwrap().ack(), 1);
        let other = thread::spawn(move || {
            queue.wait_idle();
            queue.close();
        });
        assert!(taking.take_blocking().is_err());
        other.join().unwrap();
    });
}

/// Whether it was called.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each may see the other one's open transaction; then neither would wake the waiter.
#[test]
fn two_ends_that_wake_a_waiter() {
    model(|| {
        let queue = awaited();
        let (mut first, mut second) = (warm(&queue), warm(&queue));
        first.push(1).unwrap();
        second.push(2).unwrap();
        let mut idle = queue.wait_idle_async();
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut idle).poll(&mut context).is_pending());
        let other = thread::spawn(move || {
            assert_eq!(first.pop(), Ok(1));
            first
        });
        let tx = second.begin();
        assert!(tx.pop().is_ok());
        drop(tx.commit());
        drop(other.join().unwrap());
        assert!(flag.0.load(Ordering::Relaxed));
        assert!(Pin::new(&mut idle).poll(&mut context).is_ready());
    });
}

#[test]
fn the_wait_against_an_abort_of_what_is_staged() {
    model(|| {
        let queue = awaited();
        let mut handle = warm(&queue);
        let tx = handle.begin();
        tx.push(1).unwrap();
        std::mem::forget(tx);
        let other = thread::spawn(move || {
            drop(handle.begin());
            handle
        });
        queue.wait_idle();
        drop(other.join().unwrap());
    });
}
