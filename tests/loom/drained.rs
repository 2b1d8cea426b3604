//! Waiters at a closed queue, concurrent with the ends that drain it.

use super::{large_model, warm};
use loom::thread;
use requeue::{PopError, Queue};
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Whether a task was woken; it is not polled meanwhile.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each may see the other one's open transaction; then neither would wake the waiter.
#[test]
fn two_ends_that_drain_a_closed_queue() {
    large_model(|| {
        let queue = Queue::<u32>::unbounded();
        let (mut first, mut second, mut waiter) = (warm(&queue), warm(&queue), queue.handle());
        let (staged, tx) = (first.begin(), second.begin());
        staged.push(1).unwrap();
        tx.push(2).unwrap();
        mem::forget(staged);
        queue.close();
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut context = Context::from_waker(&waker);
        let mut wait = pin!(waiter.pop_async());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        let other = thread::spawn(move || {
            drop(first.begin());
            first
        });
        tx.abort();
        drop(other.join().unwrap());
        assert!(flag.0.load(Ordering::Relaxed));
        let closed = Poll::Ready(Err(PopError::Closed));
        assert_eq!(wait.as_mut().poll(&mut context), closed);
    });
}

/// The task that was woken for the item is not polled, and another pop takes it while a transaction ends.
#[test]
fn a_pop_and_an_end_that_drain_a_closed_queue() {
    large_model(|| {
        let queue = Queue::<u32>::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        let (mut deaf, mut waiter) = (queue.handle(), queue.handle());
        popper.push(1).unwrap();
        let (tx, held) = (holder.begin(), popper.begin());
        assert!(held.pop().is_ok());
        tx.push(2).unwrap();
        queue.close();
        let flags = [(); 2].map(|()| Arc::new(Flag::default()));
        let wakers = [0, 1].map(|task| Waker::from(Arc::clone(&flags[task])));
        let mut contexts = wakers.each_ref().map(Context::from_waker);
        let (mut first, mut second) = (pin!(deaf.pop_async()), pin!(waiter.pop_async()));
        assert!(first.as_mut().poll(&mut contexts[0]).is_pending());
        assert!(second.as_mut().poll(&mut contexts[1]).is_pending());
        held.abort();
        let woken = |task: usize| flags[task].0.load(Ordering::Relaxed);
        assert!(woken(0) && !woken(1));
        let other = thread::spawn(move || {
            assert_eq!(popper.pop(), Ok(1));
            popper
        });
        tx.abort();
        drop(other.join().unwrap());
        assert!(woken(1));
        let closed = Poll::Ready(Err(PopError::Closed));
        assert_eq!(second.as_mut().poll(&mut contexts[1]), closed);
    });
}

/// The pop may see the queue open before it takes the item.
#[test]
fn a_pop_that_drains_against_a_close() {
    large_model(|| {
        let queue = Queue::<u32>::unbounded();
        let (mut popper, mut waiter) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let other = thread::spawn({
            let queue = queue.clone();
            move || {
                assert!(queue.close());
                while waiter.pop_blocking().is_ok() {}
                waiter
            }
        });
        let popped = popper.pop();
        assert!(matches!(popped, Ok(1) | Err(_)));
        drop((other.join().unwrap(), popper));
    });
}
