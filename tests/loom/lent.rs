//! Expired leases, concurrent with the ends of their transactions.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Delivery, Fifo, Handle, Leased, ManualClock, Queue};
use std::mem;
use std::time::Duration;

/// Longer than a lease table in use is not checked.
const TERM: Duration = Duration::from_secs(1);

/// The order of the queues.
type Lent = Leased<Fifo>;

fn lending() -> (Queue<u32, Lent>, ManualClock) {
    let clock = ManualClock::new();
    let queue = Queue::builder().leased(TERM).clock(clock.clone()).build();
    (queue, clock)
}

/// Two handles, and an item that is ready.
fn two(queue: &Queue<u32, Lent>) -> (Handle<u32, Lent>, Handle<u32, Lent>) {
    let (holder, mut popper) = (warm(queue), warm(queue));
    popper.push(1).unwrap();
    (holder, popper)
}

/// A pop by another thread.
fn pops(mut popper: Handle<u32, Lent>) -> thread::JoinHandle<(usize, Handle<u32, Lent>)> {
    thread::spawn(move || (usize::from(popper.pop().is_ok()), popper))
}

/// Pops all remaining items.
fn drain(queue: &Queue<u32, Lent>, clock: &ManualClock) -> usize {
    clock.advance(TERM);
    let left = std::iter::from_fn(|| queue.pop().ok()).count();
    assert_eq!(queue.stats().check(), Ok(()));
    left
}

#[test]
fn a_commit_against_an_expiry() {
    model(|| {
        let (queue, clock) = lending();
        let (mut holder, popper) = two(&queue);
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        clock.advance(TERM);
        let other = pops(popper);
        let committed = usize::from(tx.try_commit().is_ok());
        let (popped, popper) = other.join().unwrap();
        assert_eq!(committed + popped + drain(&queue, &clock), 1);
        assert_eq!(queue.stats().committed, 3);
        drop((holder, popper));
    });
}

#[test]
fn an_end_of_a_delivery_against_an_expiry() {
    let ends: [fn(Delivery<u32, Lent>) -> usize; 2] = [
        |taken| usize::from(taken.try_ack().is_ok()),
        |taken| {
            drop(taken);
            0
        },
    ];
    for end in ends {
        model(move || {
            let (queue, clock) = lending();
            let (holder, popper) = two(&queue);
            drop(holder);
            let taken = queue.take().unwrap();
            clock.advance(TERM);
            let other = pops(popper);
            let acked = end(taken);
            let (popped, popper) = other.join().unwrap();
            assert_eq!(acked + popped + drain(&queue, &clock), 1);
            drop(popper);
        });
    }
}

#[test]
fn an_abort_against_an_expiry() {
    model(|| {
        let (queue, clock) = lending();
        let (mut holder, popper) = two(&queue);
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        clock.advance(TERM);
        let other = pops(popper);
        tx.abort();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped + drain(&queue, &clock), 1);
        drop((holder, popper));
    });
}

#[test]
fn a_retry_against_an_expiry() {
    model(|| {
        let (queue, clock) = lending();
        let (mut holder, popper) = two(&queue);
        let tx = holder.begin();
        let item = tx.pop().unwrap();
        clock.advance(TERM);
        let other = pops(popper);
        tx.retry_after(item, Duration::ZERO).unwrap();
        let (popped, popper) = other.join().unwrap();
        drop(tx);
        assert_eq!(popped + drain(&queue, &clock), 1);
        drop((holder, popper));
    });
}

#[test]
fn a_renewal_against_an_expiry() {
    model(|| {
        let (queue, clock) = lending();
        let (mut holder, popper) = two(&queue);
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        clock.advance(TERM);
        let other = pops(popper);
        let renewed = tx.renew().is_ok();
        assert_eq!(tx.try_commit().is_ok(), renewed);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(usize::from(renewed) + popped + drain(&queue, &clock), 1);
        drop((holder, popper));
    });
}

/// It ends no earlier than another one, whose end is planned.
#[test]
fn a_lease_against_an_expiry() {
    large_model(|| {
        let (queue, clock) = lending();
        let (mut pusher, mut popper) = two(&queue);
        pusher.push(2).unwrap();
        let first = queue.take().unwrap();
        let later = clock.clone();
        let other = thread::spawn(move || {
            later.advance(TERM);
            (usize::from(popper.pop().is_ok()), popper)
        });
        let second = queue.take();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped + drain(&queue, &clock), 2);
        drop((first, second, pusher, popper));
    });
}

#[test]
fn a_sleeper_against_a_lease() {
    model(|| {
        let (queue, clock) = lending();
        let (mut holder, mut popper) = two(&queue);
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        let tx = holder.begin();
        let _ = tx.pop();
        clock.advance(TERM);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((tx, popper));
    });
}

/// The item dies, and makes room.
#[test]
fn a_sleeper_for_room_against_a_lease() {
    large_model(|| {
        let clock = ManualClock::new();
        let builder = Queue::builder().capacity(1).max_attempts(1);
        let queue = builder.leased(TERM).clock(clock.clone()).build();
        let (mut holder, mut pusher) = (queue.handle(), warm(&queue));
        pusher.push(1).unwrap();
        let other = thread::spawn(move || (pusher.push_blocking(2), pusher));
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        clock.advance(TERM);
        let (pushed, pusher) = other.join().unwrap();
        assert_eq!(pushed, Ok(()));
        drop((tx, pusher));
    });
}

/// The next handle gets the counters of the dropped one.
#[test]
fn a_handle_that_leaves_takes_no_others_leases() {
    model(|| {
        let (queue, clock) = lending();
        queue.push(1).unwrap();
        let first = queue.handle();
        let other = thread::spawn(move || drop(first));
        let mut second = queue.handle();
        let tx = second.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        other.join().unwrap();
        assert_eq!(drain(&queue, &clock), 1);
    });
}
