//! Failed deliveries, and peeks: returned items, and waiters for them.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Handle, PopError, Queue};
use std::time::Duration;

/// A handle that waits for an item on its own thread.
fn waits(mut popper: Handle<u32>) -> thread::JoinHandle<(Result<u32, PopError>, Handle<u32>)> {
    thread::spawn(move || (popper.pop_blocking(), popper))
}

fn check(queue: &Queue<u32>) {
    assert_eq!(queue.stats().check(), Ok(()));
}

#[test]
fn a_sleeper_against_a_retry() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        let item = tx.pop().unwrap();
        let other = waits(popper);
        tx.retry_after(item, Duration::ZERO).unwrap();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((tx, popper));
        check(&queue);
    });
}

#[test]
fn a_retry_against_a_close() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        let item = tx.pop().unwrap();
        queue.close();
        let other = thread::spawn(move || (popper.pop(), popper));
        tx.retry_after(item, Duration::ZERO).unwrap();
        let (popped, popper) = other.join().unwrap();
        assert_ne!(popped, Err(PopError::Closed));
        drop((tx, popper));
        assert_eq!(queue.pop().is_ok(), popped.is_err());
        assert_eq!(queue.pop(), Err(PopError::Closed));
    });
}

#[test]
fn a_peek_against_a_sleeper() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut looker, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = looker.begin();
        let peek = tx.peek().unwrap();
        let other = waits(popper);
        drop(peek);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((tx, popper));
        check(&queue);
    });
}

#[test]
fn a_peek_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut looker, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = looker.begin();
        let peek = tx.peek().unwrap();
        queue.close();
        let other = thread::spawn(move || (popper.pop(), popper));
        drop(peek);
        let (popped, popper) = other.join().unwrap();
        assert_ne!(popped, Err(PopError::Closed));
        drop((tx, popper));
        assert_eq!(queue.pop().is_ok(), popped.is_err());
    });
}

#[test]
fn an_abort_with_a_gap() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push_batch([1, 2]).unwrap();
        let tx = holder.begin();
        let first = tx.pop().unwrap();
        assert!(tx.pop().is_ok());
        tx.retry_after(first, Duration::ZERO).unwrap();
        let other = waits(popper);
        tx.abort();
        let (popped, mut popper) = other.join().unwrap();
        let mut popped = [popped, popper.pop()];
        popped.sort_unstable_by_key(|popped| popped.ok());
        assert_eq!(popped, [Ok(1), Ok(2)]);
        drop(popper);
        check(&queue);
    });
}
