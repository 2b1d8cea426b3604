//! Items that are discarded while they are taken, given back and committed: a discarded item is delivered by nobody afterwards,
//! and leaves nothing behind.

use super::{large_model, model, warm};
use loom::thread;
use requeue::Discarded::{Marked, Removed, Unknown};
use requeue::{Delivery, Discarded, Handle, Order, PopError, Queue, Ticket};
use std::time::Duration;

/// A queue with one item, which has this ticket.
fn with_one<O: Order<u32>>(queue: Queue<u32, O>) -> (Queue<u32, O>, Handle<u32, O>, Ticket) {
    let mut handle = warm(&queue);
    let ticket = handle.after(Duration::ZERO).push(1).unwrap();
    (queue, handle, ticket)
}

fn tracked() -> (Queue<u32>, Handle<u32>, Ticket) {
    with_one(Queue::builder().tracked().capacity(1).build())
}

/// Nothing is left, also not for those that wait, and there is room again.
fn assert_gone<O: Order<u32>>(queue: &Queue<u32, O>, ticket: Ticket) {
    queue.wait_idle();
    assert_eq!(queue.discard(ticket), Unknown);
    queue.stats().check().unwrap();
    queue.push(2).unwrap();
    assert_eq!(queue.pop(), Ok(2));
}

/// A held item is discarded, while its delivery ends.
fn against_an_end(expected: &'static [Discarded], end: fn(Delivery<u32>)) {
    model(move || {
        let (queue, handle, ticket) = tracked();
        let job = queue.take().unwrap();
        let other = thread::spawn(move || end(job));
        let discarded = queue.discard(ticket);
        other.join().unwrap();
        assert!(expected.contains(&discarded), "{discarded:?}");
        assert_gone(&queue, ticket);
        drop(handle);
    });
}

#[test]
fn a_discard_against_a_return() {
    against_an_end(&[Marked, Removed], Delivery::nack);
}

#[test]
fn a_discard_against_a_commit() {
    against_an_end(&[Marked, Unknown], |job| assert_eq!(job.ack(), 1));
}

#[test]
fn a_discard_against_an_abort() {
    model(|| {
        let (queue, handle, ticket) = tracked();
        let tx = queue.begin_owned();
        assert_eq!(tx.pop().map(|item| *item), Ok(1));
        let other = thread::spawn(move || tx.abort());
        let discarded = queue.discard(ticket);
        other.join().unwrap();
        assert!([Marked, Removed].contains(&discarded), "{discarded:?}");
        assert_gone(&queue, ticket);
        drop(handle);
    });
}

/// A ready item is discarded, while it is popped: it is popped, or dropped.
fn against_a_pop<O: Order<u32> + 'static>(make: fn() -> Queue<u32, O>)
where
    Handle<u32, O>: Send,
{
    large_model(move || {
        let (queue, mut handle, ticket) = with_one(make());
        let other = thread::spawn(move || (handle.pop(), handle));
        let discarded = queue.discard(ticket);
        let (popped, handle) = other.join().unwrap();
        match popped {
            Ok(1) => assert!([Marked, Unknown].contains(&discarded)),
            empty => assert_eq!((empty, discarded), (Err(PopError::Empty), Removed)),
        }
        assert_gone(&queue, ticket);
        drop(handle);
    });
}

#[test]
fn a_discard_against_a_pop() {
    against_a_pop(|| Queue::builder().tracked().build());
}

#[test]
fn a_discard_against_a_pop_of_a_stack() {
    against_a_pop(|| Queue::builder().lifo().tracked().build());
}
