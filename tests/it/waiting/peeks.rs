//! Peeks that wait for an item, and batches that wait for room with a timeout.

use std::mem;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::events::{ARRIVALS, ITEM};
use crate::common::failing::{clocked, SECOND};
use crate::common::futures::{block_on, Task};
use crate::common::{assert_at_rest, drain, ends, panics};
use requeue::{Handle, Peek, PopError, PushError, Queue};

/// Peeks at the next item, waiting for it.
type Look = fn(&mut Handle<u32>) -> Result<u32, PopError>;

const PEEKS: [Look; 3] = [
    |handle| handle.begin().peek_blocking().map(|item| *item),
    |handle| {
        let tx = handle.begin();
        let peeked = tx.peek_timeout(Duration::MAX);
        peeked.map(|item| *item)
    },
    |handle| {
        let tx = handle.begin();
        let peeked = block_on(Box::pin(tx.peek_async()));
        peeked.map(|item| *item)
    },
];

#[test]
fn a_push_wakes_a_waiting_peek_and_the_item_stays() {
    ends(|| {
        for (name, arrive) in ARRIVALS {
            for peek in PEEKS {
                let (queue, start) = (Queue::unbounded(), Barrier::new(2));
                thread::scope(|scope| {
                    let peeker = scope.spawn(|| {
                        start.wait();
                        peek(&mut queue.handle())
                    });
                    arrive(&queue, &mut || {
                        start.wait();
                        while queue.stats().waiting < 1 {
                            thread::yield_now();
                        }
                    });
                    assert_eq!(peeker.join().unwrap(), Ok(ITEM), "{name}");
                });
                assert_eq!(drain(&queue), [ITEM], "{name}");
                assert_at_rest(&queue, 0, 0);
            }
        }
    });
}

#[test]
fn a_waiting_peek_ends_on_close() {
    ends(|| {
        for peek in PEEKS {
            let queue = Queue::unbounded();
            thread::scope(|scope| {
                let peeker = scope.spawn(|| peek(&mut queue.handle()));
                queue.close();
                assert_eq!(peeker.join().unwrap(), Err(PopError::Closed));
            });
        }
    });
}

#[test]
fn a_holder_does_not_wait_for_its_own_end() {
    ends(|| {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert!(tx.pop().is_ok());
        queue.close();
        assert_eq!(tx.peek_blocking().err(), Some(PopError::Empty));
        assert_eq!(tx.peek_timeout(Duration::MAX).err(), Some(PopError::Empty));
        let mut task = Task::new(Box::pin(tx.peek_async()));
        assert_eq!(task.output().err(), Some(PopError::Empty));
        drop(task);
        assert_eq!(tx.held(), 1);
    });
}

#[test]
fn a_peek_waits_for_what_others_hold_when_the_queue_is_closed() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (holder, observer) = (a.begin(), b.begin());
    assert!(holder.pop().is_ok());
    queue.close();
    let mut task = Task::waiting(Box::pin(observer.peek_async()));
    holder.abort();
    assert!(task.was_woken());
    assert_eq!(*task.output().unwrap(), 1);
}

/// The wake-up of a peek is passed on when its item is put back, and not if it is taken.
#[test]
fn the_end_of_a_peek_wakes_the_next_waiter() {
    for takes in [false, true] {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let (first, second) = (a.begin(), b.begin());
        let mut one = Task::waiting(Box::pin(first.peek_async()));
        let mut other = Task::waiting(Box::pin(second.peek_async()));
        assert!(panics(|| first.held()), "borrowed");
        queue.push(1).unwrap();
        assert!(one.was_woken() && !other.was_woken());
        let peeked: Peek<'_, u32> = one.output().unwrap();
        assert!(panics(|| one.poll().is_ready()), "polled again");
        assert!(panics(|| first.held()), "borrowed by the peek");
        if takes {
            assert_eq!(*peeked.take(), 1);
            assert!(!other.was_woken());
        } else {
            drop(peeked);
            assert!(other.was_woken());
            assert_eq!(*other.output().unwrap(), 1);
        }
        drop((one, other));
        assert_eq!((first.held(), second.held()), (usize::from(takes), 0));
    }
}

#[test]
fn a_dropped_or_forgotten_peek_leaves_the_wait_queue() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    for forgets in [false, true] {
        let tx = a.begin();
        let peek = Task::waiting(Box::pin(tx.peek_async()));
        let mut next = Task::waiting(b.pop_async());
        queue.push(1).unwrap();
        assert!(peek.was_woken() && !next.was_woken());
        if forgets {
            mem::forget(peek);
            assert!(!next.was_woken());
            drop(tx);
        } else {
            drop(peek);
        }
        assert!(next.was_woken());
        assert_eq!(next.output(), Ok(1));
    }
}

#[test]
fn peeks_and_batches_time_out_by_the_clock_of_the_queue() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.capacity(2).build();
        let waits = |call: &(dyn Fn() + Sync)| {
            thread::scope(|scope| {
                let waiter = scope.spawn(call);
                // A wait for room is not counted in the statistics: it sleeps, or will find that the timeout has
                // elapsed.
                clock.advance(SECOND);
                while !waiter.is_finished() {
                    clock.advance(SECOND);
                    thread::yield_now();
                }
                waiter.join().unwrap();
            });
        };
        waits(&|| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            assert_eq!(tx.peek_timeout(SECOND).err(), Some(PopError::Empty));
        });
        queue.push(1).unwrap();
        let full = Err(PushError::Full(vec![2, 3]));
        waits(&|| assert_eq!(queue.push_batch_timeout([2, 3], SECOND), full));
        waits(&|| assert_eq!(queue.handle().push_batch_timeout([2, 3], SECOND), full));
        assert_eq!(queue.push_batch_timeout([2], Duration::ZERO), Ok(1));
        assert_eq!(drain(&queue), [1, 2]);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn room_that_is_free_in_time_is_used_by_a_batch() {
    ends(|| {
        let queue = Queue::bounded(2);
        queue.push_batch([1, 2]).unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.push_batch_timeout([3, 4], Duration::MAX));
            assert_eq!((queue.pop(), queue.pop()), (Ok(1), Ok(2)));
            assert_eq!(waiter.join().unwrap(), Ok(2));
        });
        assert_eq!(drain(&queue), [3, 4]);
    });
}
