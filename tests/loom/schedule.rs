//! Pushes with a time.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Handle, ManualClock, PopError, Queue};
use std::time::Duration;

const NANO: Duration = Duration::from_nanos(1);

fn timed() -> (Queue<u32>, ManualClock) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    (queue, clock)
}

/// Schedules an item without or with a transaction.
fn schedules(handle: &mut Handle<u32>, in_transaction: bool) -> bool {
    if !in_transaction {
        return handle.after(NANO).push(1).is_ok();
    }
    let tx = handle.begin();
    let is_staged = tx.after(NANO).push(1).is_ok();
    drop(tx.commit());
    is_staged
}

/// The plan of the pushed item is not erased with that of the one that is due.
#[test]
fn a_schedule_against_a_release() {
    large_model(|| {
        let (queue, clock) = timed();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        popper.after(NANO).push(2).unwrap();
        clock.advance(NANO);
        let other = thread::spawn(move || {
            pusher.after(NANO).push(1).unwrap();
            pusher
        });
        let first = popper.pop();
        drop(other.join().unwrap());
        clock.advance(NANO);
        assert_eq!((first, popper.pop()), (Ok(2), Ok(1)));
    });
}

/// A pop that says that the queue is drained has seen every item that was not refused.
fn against_a_close(in_transaction: bool) {
    large_model(move || {
        let (queue, clock) = timed();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || (schedules(&mut pusher, in_transaction), pusher));
        queue.close();
        let popped = popper.pop();
        let (is_pushed, pusher) = other.join().unwrap();
        assert!(!(is_pushed && popped == Err(PopError::Closed)));
        clock.advance(NANO);
        let last = if is_pushed {
            Ok(1)
        } else {
            Err(PopError::Closed)
        };
        assert_eq!(popper.pop(), last);
        drop(pusher);
    });
}

#[test]
fn a_schedule_against_a_close() {
    against_a_close(false);
}

#[test]
fn a_commit_that_schedules_against_a_close() {
    against_a_close(true);
}

/// The sleeper learns of the time.
#[test]
fn a_sleeper_against_a_schedule() {
    model(|| {
        let (queue, clock) = timed();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        pusher.after(NANO).push(1).unwrap();
        clock.advance(NANO);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop(popper);
    });
}

/// Has an item pushed in time.
fn sets_alarm(queue: &Queue<u32>) {
    let pushed = queue.clone();
    let push = move || pushed.push(1).unwrap();
    queue.call_at(queue.now() + NANO, std::sync::Arc::new(push));
}

/// The call is not forgotten with what is due.
#[test]
fn a_call_against_a_release() {
    large_model(|| {
        let (queue, clock) = timed();
        let mut popper = warm(&queue);
        popper.after(NANO).push(2).unwrap();
        clock.advance(NANO);
        let caller = queue.clone();
        let other = thread::spawn(move || sets_alarm(&caller));
        let first = popper.pop();
        other.join().unwrap();
        clock.advance(NANO);
        let _ = queue.stats(); // makes the call
        assert_eq!((first, popper.pop()), (Ok(2), Ok(1)));
    });
}

/// The sleeper makes the call in time.
#[test]
fn a_sleeper_against_a_call() {
    model(|| {
        let (queue, clock) = timed();
        let mut popper = warm(&queue);
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        sets_alarm(&queue);
        clock.advance(NANO);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop(popper);
    });
}
