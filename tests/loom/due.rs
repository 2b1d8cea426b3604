//! Items that become ready with time, with a manual clock.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Handle, ManualClock, PopError, Queue};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const NANO: Duration = Duration::from_nanos(1);
/// Longer than a waiter may be late.
const LATE: Duration = Duration::from_secs(1);

fn timed() -> (Queue<u32>, ManualClock) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    (queue, clock)
}

/// Pushes an item that will be ready in this many nanoseconds.
fn delay(handle: &mut Handle<u32>, item: u32, nanos: u32) {
    handle.push(item).unwrap();
    let tx = handle.begin();
    let held = tx.pop().unwrap();
    tx.retry_after(held, NANO * nanos).unwrap();
}

/// An operation that puts due items at the head.
fn releases(queue: &Queue<u32>) -> thread::JoinHandle<usize> {
    let queue = queue.clone();
    thread::spawn(move || queue.len())
}

/// A waker for a task that is polled in any case.
struct Deaf;

impl Wake for Deaf {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn two_who_release() {
    large_model(|| {
        let (queue, clock) = timed();
        let mut mine = warm(&queue);
        delay(&mut mine, 1, 1);
        delay(&mut mine, 2, 2);
        clock.advance(NANO);
        let other = releases(&queue);
        let ready = queue.len().max(other.join().unwrap());
        assert_eq!((ready, mine.pop()), (1, Ok(1)));
        assert_eq!(mine.pop(), Err(PopError::Empty));
        clock.advance(NANO);
        assert_eq!(mine.pop(), Ok(2));
    });
}

#[test]
fn a_retry_against_a_release() {
    large_model(|| {
        let (queue, clock) = timed();
        let mut handle = warm(&queue);
        delay(&mut handle, 1, 1);
        handle.push(2).unwrap();
        let tx = handle.begin();
        let held = tx.pop().unwrap();
        clock.advance(NANO);
        let other = releases(&queue);
        tx.retry_after(held, NANO).unwrap();
        drop(tx);
        other.join().unwrap();
        clock.advance(NANO);
        let mut popped = [1, 2].map(|_| handle.pop());
        popped.sort_unstable_by_key(|popped| popped.ok());
        assert_eq!(popped, [Ok(1), Ok(2)]);
    });
}

#[test]
fn a_release_against_a_close() {
    large_model(|| {
        let (queue, clock) = timed();
        let mut handle = warm(&queue);
        delay(&mut handle, 1, 1);
        queue.close();
        clock.advance(NANO);
        let other = thread::spawn(move || (handle.pop(), handle));
        let _ = queue.len();
        let (popped, mut handle) = other.join().unwrap();
        assert_ne!(popped, Err(PopError::Closed));
        assert_eq!(handle.pop().is_ok(), popped.is_err());
    });
}

/// The leader takes another item, and leaves.
#[test]
fn leader_hands_over_the_timer() {
    large_model(|| {
        let (queue, clock) = timed();
        let (mut keeper, mut popper, mut pusher) = (warm(&queue), warm(&queue), warm(&queue));
        delay(&mut popper, 1, 1);
        let waker = Waker::from(Arc::new(Deaf));
        let mut context = Context::from_waker(&waker);
        let mut first = pin!(keeper.pop_async());
        assert!(first.as_mut().poll(&mut context).is_pending());
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        pusher.push(2).unwrap();
        let mine = match first.as_mut().poll(&mut context) {
            Poll::Ready(popped) => popped,
            Poll::Pending => Err(PopError::Empty),
        };
        clock.advance(NANO);
        let (theirs, popper) = other.join().unwrap();
        let theirs = theirs.unwrap();
        assert_eq!(theirs, mine.map_or(theirs, |_| 1));
        drop(popper);
    });
}

/// A waiter that gives up hands the due time over too.
#[test]
fn leader_that_gives_up_hands_over_the_timer() {
    model(|| {
        let (queue, clock) = timed();
        let (mut keeper, mut popper) = (warm(&queue), warm(&queue));
        delay(&mut popper, 1, 1);
        let waker = Waker::from(Arc::new(Deaf));
        let mut first = Box::pin(keeper.pop_async());
        let poll = first.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        drop(first);
        clock.advance(NANO);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop(popper);
    });
}

#[test]
fn a_sleeper_against_a_delay() {
    large_model(|| {
        let (queue, clock) = timed();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        let held = tx.pop().unwrap();
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        tx.retry_after(held, NANO).unwrap();
        clock.advance(NANO);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((tx, popper));
    });
}

/// A leader that is not polled again.
#[test]
fn a_late_keeper_delays_nobody() {
    large_model(|| {
        let (queue, clock) = timed();
        let (mut keeper, mut popper) = (warm(&queue), warm(&queue));
        delay(&mut popper, 1, 1);
        let waker = Waker::from(Arc::new(Deaf));
        let mut first = Box::pin(keeper.pop_async());
        let poll = first.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        clock.advance(LATE);
        clock.advance(LATE);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop(popper);
    });
}
