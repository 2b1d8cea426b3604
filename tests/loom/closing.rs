//! A closed queue whose transactions push follow-up items.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Handle, PopError, Queue};

/// A handle that pops on its own thread until the queue is closed and drained.
fn drains(mut popper: Handle<u32>) -> thread::JoinHandle<(Vec<u32>, Handle<u32>)> {
    thread::spawn(move || {
        let mut popped = Vec::new();
        loop {
            match popper.pop_blocking() {
                Ok(item) => popped.push(item),
                Err(PopError::Closed) => return (popped, popper),
                Err(PopError::Empty) => panic!("it waits forever"),
            }
        }
    })
}

#[test]
fn a_follow_up_against_the_end() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        queue.close();
        let other = drains(popper);
        tx.push(2).unwrap();
        drop(tx.commit());
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, [2]);
        drop((holder, popper));
    });
}

/// Staged items of a transaction that no longer holds anything delay the end.
#[test]
fn a_follow_up_of_a_failed_item_against_the_end() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        let item = tx.pop().unwrap();
        queue.close();
        let other = thread::spawn(move || (popper.pop(), popper));
        tx.push(2).unwrap();
        tx.fail(item, "broken").unwrap();
        assert!(tx.push(3).unwrap_err().is_closed());
        drop(tx.commit());
        let (popped, popper) = other.join().unwrap();
        assert_ne!(popped, Err(PopError::Closed));
        assert_eq!(queue.pop().is_ok(), popped.is_err());
        assert_eq!(queue.pop(), Err(PopError::Closed));
        drop((holder, popper));
    });
}

#[test]
fn a_follow_up_that_is_dropped_against_the_end() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        queue.close();
        let other = drains(popper);
        tx.push(2).unwrap();
        tx.abort();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, [1]);
        drop((holder, popper));
    });
}
