//! Waiters are woken when an item becomes ready with time, whoever leads and whoever checks the queue.

use crate::common::failing::SECOND;
use requeue::{Handle, ManualClock, PopError, Queue};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A task that is polled when it was woken.
struct Task<F> {
    future: Pin<Box<F>>,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl<F: Future> Task<F> {
    fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            woken: Arc::new(Flag(AtomicBool::new(true))),
        }
    }

    /// Polls while the task is woken.
    fn run(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, SeqCst) {
            let poll = self.future.as_mut().poll(&mut Context::from_waker(&waker));
            if poll.is_ready() {
                return poll;
            }
        }
        Poll::Pending
    }
}

fn timed() -> (Queue<u32>, ManualClock) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    (queue, clock)
}

/// Pushes an item that will be ready in this many seconds.
fn delay(handle: &mut Handle<u32>, item: u32, seconds: u32) {
    handle.push(item).unwrap();
    let tx = handle.begin();
    let held = tx.pop().unwrap();
    tx.retry_after(held, SECOND * seconds).unwrap();
}

#[test]
fn a_leader_that_takes_another_item_hands_over() {
    let (queue, clock) = timed();
    let (mut leader, mut other) = (queue.handle(), queue.handle());
    delay(&mut other, 1, 1);
    let mut leader = Task::new(leader.pop_async());
    let mut other = Task::new(other.pop_async());
    assert!(leader.run().is_pending());
    assert!(other.run().is_pending());
    queue.push(2).unwrap();
    assert_eq!(leader.run(), Poll::Ready(Ok(2)));
    drop(leader);
    assert!(other.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(other.run(), Poll::Ready(Ok(1)));
}

#[test]
fn a_leader_that_takes_the_due_item_hands_over() {
    let (queue, clock) = timed();
    let (mut leader, mut other) = (queue.handle(), queue.handle());
    delay(&mut other, 1, 1);
    delay(&mut other, 2, 2);
    let mut leader = Task::new(leader.pop_async());
    let mut other = Task::new(other.pop_async());
    assert!(leader.run().is_pending());
    assert!(other.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(leader.run(), Poll::Ready(Ok(1)));
    drop(leader);
    assert!(other.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(other.run(), Poll::Ready(Ok(2)));
}

#[test]
fn a_waiter_from_before_a_lease_is_woken_when_it_expires() {
    let clock = ManualClock::new();
    let builder = Queue::builder().leased(SECOND).clock(clock.clone());
    let queue = builder.build();
    let (mut holder, mut waiter) = (queue.handle(), queue.handle());
    let mut waiter = Task::new(waiter.pop_async());
    assert!(waiter.run().is_pending());
    let tx = holder.begin();
    queue.push(1).unwrap();
    // The waiter is late: it was woken for the push, and finds no item before the lease is planned.
    assert!(tx.pop().is_ok());
    assert!(waiter.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(waiter.run(), Poll::Ready(Ok(1)));
}

#[test]
fn after_a_close_the_pop_of_the_last_delayed_item_ends_the_others() {
    let (queue, clock) = timed();
    let (mut handle, mut waiter) = (queue.handle(), queue.handle());
    delay(&mut handle, 1, 1);
    queue.close();
    let mut waiter = Task::new(waiter.pop_async());
    assert!(waiter.run().is_pending());
    clock.advance(SECOND);
    // Another consumer is faster.
    assert_eq!(handle.pop(), Ok(1));
    assert_eq!(waiter.run(), Poll::Ready(Err(PopError::Closed)));
}

#[test]
fn after_a_close_all_waits_for_a_delayed_item_end() {
    let (queue, clock) = timed();
    let (mut handle, mut a, mut b) = (queue.handle(), queue.handle(), queue.handle());
    delay(&mut handle, 1, 1);
    queue.close();
    let (mut a, mut b) = (Task::new(a.pop_async()), Task::new(b.pop_async()));
    assert!(a.run().is_pending());
    assert!(b.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(a.run(), Poll::Ready(Ok(1)));
    assert_eq!(b.run(), Poll::Ready(Err(PopError::Closed)));
}

#[test]
fn after_a_close_a_death_by_expiry_ends_all_waits() {
    let clock = ManualClock::new();
    let builder = Queue::builder().leased(SECOND).clock(clock.clone());
    let queue = builder.max_attempts(1).build();
    let (mut holder, mut waiter) = (queue.handle(), queue.handle());
    queue.push(1).unwrap();
    let tx = holder.begin();
    assert!(tx.pop().is_ok());
    queue.close();
    let mut waiter = Task::new(waiter.pop_async());
    assert!(waiter.run().is_pending());
    clock.advance(SECOND);
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.dead_letters().len(), 1);
    assert_eq!(waiter.run(), Poll::Ready(Err(PopError::Closed)));
    mem::forget(tx);
}
