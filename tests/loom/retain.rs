//! Items that are removed while nobody holds them, concurrent with pops and waits.

use super::{large_model, warm};
use loom::thread;
use requeue::{Handle, ManualClock, Order, PopError, Queue};
use std::time::Duration;

const NANO: Duration = Duration::from_nanos(1);

/// An item is removed or popped, and nobody waits for one that is gone.
fn against_a_pop<O: Order<u32> + 'static>(make: fn() -> Queue<u32, O>)
where
    Handle<u32, O>: Send,
{
    large_model(move || {
        let queue = make();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        pusher.push(1).unwrap();
        queue.close();
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        let removed = queue.clear_all();
        let (popped, popper) = other.join().unwrap();
        let expected = [Ok(1), Err(PopError::Closed)];
        assert_eq!(popped, expected[removed]);
        drop((pusher, popper));
    });
}

#[test]
fn a_removal_against_a_pop_of_a_closed_queue() {
    against_a_pop(Queue::unbounded);
}

#[test]
fn a_removal_against_a_pop_of_a_closed_stack() {
    against_a_pop(|| Queue::builder().lifo().build());
}

/// The removal of the last item is told those that wait for the queue to be idle.
fn against_a_wait(is_scheduled: bool) {
    large_model(move || {
        let queue = Queue::builder().clock(ManualClock::new()).build();
        queue.wait_idle();
        let mut pusher = warm(&queue);
        if is_scheduled {
            pusher.after(NANO).push(1).unwrap();
        } else {
            pusher.push(1).unwrap();
        }
        let other = thread::spawn({
            let queue = queue.clone();
            move || queue.clear_all()
        });
        queue.wait_idle();
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(other.join().unwrap(), 1);
        drop(pusher);
    });
}

#[test]
fn a_removal_against_a_wait_for_an_idle_queue() {
    against_a_wait(false);
}

#[test]
fn a_removal_of_a_scheduled_item_against_a_wait() {
    against_a_wait(true);
}

/// The room of a removed item is found by a push that waits for it.
#[test]
fn a_removal_against_a_push_that_waits() {
    large_model(|| {
        let queue = Queue::bounded(1);
        let mut pusher = warm(&queue);
        pusher.push(1).unwrap();
        let other = thread::spawn(move || (pusher.push_blocking(2), pusher));
        let removed = queue.retain(|item, _| *item == 2);
        let (pushed, pusher) = other.join().unwrap();
        assert_eq!((removed, pushed), (1, Ok(())));
        assert_eq!(queue.pop(), Ok(2));
        drop(pusher);
    });
}

/// A pop waits for a scheduled item until that is dropped.
#[test]
fn a_close_now_against_a_pop() {
    large_model(|| {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        let mut popper = warm(&queue);
        popper.after(NANO).push(1).unwrap();
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        assert_eq!(queue.close_now(), 1);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Err(PopError::Closed));
        drop(popper);
    });
}

/// A time that comes while an item is examined is not lost: a pop that has found nothing due meanwhile takes the item
/// afterwards.
#[test]
fn a_kept_item_that_is_due_against_a_pop() {
    large_model(|| {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        let mut popper = warm(&queue);
        popper.after(NANO).push(1).unwrap();
        let other = thread::spawn({
            let clock = clock.clone();
            move || {
                clock.advance(NANO);
                (popper.pop_blocking(), popper)
            }
        });
        queue.retain(|_, _| true);
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop(popper);
    });
}
