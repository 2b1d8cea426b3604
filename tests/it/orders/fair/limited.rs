//! Queues that limit how many items of a key are held.

use super::{filled, names, push};
use crate::common::failing::{fail, failures, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain};
use requeue::{Backoff, ManualClock, PopError, Queue};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

#[test]
fn as_many_items_of_a_key_are_held_as_the_limit_says() {
    let queue = filled(names().max_held_per_key(2), "a1 a2 a3 b1 a4");
    let held: Vec<_> = (0..3).map(|_| queue.take().unwrap()).collect();
    assert!(held.iter().map(|item| **item).eq(["a1", "b1", "a2"]));
    assert_eq!(
        (queue.take().err(), queue.len()),
        (Some(PopError::Empty), 0)
    );
    push(&queue, "b2 b3");
    let more: Vec<_> = std::iter::from_fn(|| queue.take().ok()).collect();
    assert!(more.iter().map(|item| **item).eq(["b2"]));
    let mut held = held.into_iter();
    held.next().unwrap().ack();
    assert_eq!(*queue.take().unwrap().ack(), *"a3");
    assert_eq!(*queue.take().unwrap().ack(), *"a4");
    assert!(queue.take().is_err());
    held.next().unwrap().ack();
    assert_eq!(*queue.take().unwrap().ack(), *"b3");
    drop((held, more));
    let mut rest = drain(&queue);
    rest.sort_unstable();
    assert_eq!(rest, ["a2", "b2"]);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_returned_item_makes_room_for_the_next_after_any_failure() {
    for (reason, failure) in failures() {
        let queue = filled(names().max_held_per_key(2), "a1 a2 a3");
        fail(&mut queue.handle(), (reason, failure));
        let held = [queue.take().unwrap(), queue.take().unwrap()];
        assert_eq!((*held[0], *held[1]), ("a1", "a2"), "{reason:?}");
        assert!(queue.take().is_err());
        drop(held);
        assert_eq!(drain(&queue), ["a1", "a2", "a3"]);
    }
}

#[test]
fn a_delayed_item_counts_as_held() {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone());
    let builder = builder.backoff(Backoff::fixed(SECOND));
    let builder = builder.fair_by(|item: &&str| item.as_bytes()[0]);
    let queue = filled(builder.max_held_per_key(2), "a1 a2 a3");
    queue.take().unwrap().nack();
    let second = queue.take().unwrap();
    assert!(queue.take().is_err());
    clock.advance(SECOND);
    let first = queue.take().unwrap();
    assert_eq!((*first, *second), ("a1", "a2"));
    assert!(queue.take().is_err());
    first.ack();
    assert_eq!(queue.pop(), Ok("a3"));
}

#[test]
fn each_end_wakes_a_waiter() {
    let queue = filled(names().max_held_per_key(2), "a1 a2 a3 a4");
    let held = [queue.take().unwrap(), queue.take().unwrap()];
    let mut waiters = [(); 2].map(|()| Task::new(queue.take_async()));
    for waiter in &mut waiters {
        assert!(waiter.poll().is_pending());
    }
    for delivery in held {
        delivery.ack();
    }
    for waiter in &mut waiters {
        assert!(waiter.was_woken());
        assert!(waiter.poll().is_ready());
    }
}

#[test]
fn threads_never_hold_more() {
    const KEYS: u32 = 3;
    const MOST: u32 = 2;
    const ITEMS: u32 = 6_000;
    let queue = Queue::builder()
        .fair_by(|item: &u32| item % KEYS)
        .max_held_per_key(MOST as usize);
    let queue = queue.build();
    let running = [(); KEYS as usize].map(|()| AtomicU32::new(0));
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for nth in 0..4 {
            let (queue, running, done) = (&queue, &running, &done);
            scope.spawn(move || {
                while let Ok(delivery) = queue.take_blocking() {
                    let of_key = &running[(*delivery % KEYS) as usize];
                    // ORDERING: SeqCst; the counts of all threads in one order.
                    assert!(of_key.fetch_add(1, Ordering::SeqCst) < MOST);
                    let fails = delivery.attempts() == 1 && *delivery % 7 == nth;
                    of_key.fetch_sub(1, Ordering::SeqCst);
                    if fails {
                        delivery.nack();
                    } else {
                        delivery.ack();
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        queue.handle().push_batch(0..ITEMS).unwrap();
        queue.close();
    });
    assert_eq!(done.into_inner(), ITEMS);
    assert_at_rest(&queue, 0, 0);
}

#[test]
#[should_panic(expected = "max_held_per_key is 0")]
fn a_limit_of_zero_is_refused() {
    let _ = names().max_held_per_key(0);
}
