//! Pops that wait for an item and pushes that wait for room: the events that wake them, and their timeouts.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::ends;
use crate::common::events::{Event, ARRIVALS, DEPARTURES, ITEM};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops, ASYNC_PUSHES, BLOCKING_PUSHES};
use requeue::{Handle, PopError, PushError, Queue};

/// So short that it has elapsed when the deadline is first checked.
const MOMENT: Duration = Duration::from_nanos(1);

/// Runs `wait` on another thread while the event takes place; in later rounds the thread has more time to fall asleep
/// before.
fn blocked_during<R: Send>(
    queue: &Queue<u32>,
    event: Event,
    round: usize,
    wait: impl FnOnce(&mut Handle<u32>) -> R + Send,
) -> R {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut handle = queue.handle();
            start.wait();
            wait(&mut handle)
        });
        event(queue, &mut || {
            start.wait();
            (0..round * 40).for_each(|_| thread::yield_now());
        });
        waiter.join().unwrap()
    })
}

#[test]
fn every_arrival_wakes_a_blocked_pop() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            for (name, arrive) in ARRIVALS {
                for round in 0..4 {
                    let queue = Queue::unbounded();
                    let popped = blocked_during(&queue, arrive, round, pop);
                    assert_eq!(popped, Ok(ITEM), "{form} during {name}");
                }
            }
        }
    });
}

#[test]
fn every_departure_wakes_a_blocked_push() {
    ends(|| {
        for (form, push) in BLOCKING_PUSHES {
            for (name, depart) in DEPARTURES {
                for round in 0..4 {
                    let queue = Queue::bounded(1);
                    let wait = |handle: &mut Handle<u32>| push(handle, ITEM);
                    let pushed = blocked_during(&queue, depart, round, wait);
                    assert_eq!(pushed, Ok(()), "{form} during {name}");
                    assert_eq!(queue.pop(), Ok(ITEM));
                }
            }
        }
    });
}

#[test]
fn every_arrival_wakes_one_of_two_tasks() {
    for pop in async_pops() {
        for (name, arrive) in ARRIVALS {
            for queue in [Queue::unbounded(), Queue::bounded(1)] {
                let (mut a, mut b) = (queue.handle(), queue.handle());
                let (mut first, mut second) = (Task::new(pop(&mut a)), Task::new(pop(&mut b)));
                arrive(&queue, &mut || {
                    first.assert_waits();
                    second.assert_waits();
                });
                assert_eq!((first.rings(), second.rings()), (1, 0), "{name}");
                assert_eq!(first.output(), Ok(ITEM));
                second.assert_waits();
            }
        }
    }
}

#[test]
fn every_departure_wakes_one_of_two_tasks() {
    for push in ASYNC_PUSHES {
        for (name, depart) in DEPARTURES {
            let queue = Queue::bounded(1);
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let (mut first, mut second) = (Task::new(push(&mut a, 1)), Task::new(push(&mut b, 2)));
            depart(&queue, &mut || {
                first.assert_waits();
                second.assert_waits();
            });
            assert_eq!((first.rings(), second.rings()), (1, 0), "{name}");
            assert_eq!(first.output(), Ok(()));
            second.assert_waits();
            assert_eq!(queue.pop(), Ok(1));
        }
    }
}

#[test]
fn an_available_item_is_taken_at_once() {
    ends(|| {
        let queue = Queue::bounded(1);
        let mut handle = queue.handle();
        for (_, push) in BLOCKING_PUSHES {
            for (_, pop) in blocking_pops() {
                assert_eq!(push(&mut handle, ITEM), Ok(()));
                assert_eq!(pop(&mut handle), Ok(ITEM));
            }
        }
        for push in ASYNC_PUSHES {
            for pop in async_pops() {
                assert_eq!(Task::new(push(&mut handle, ITEM)).output(), Ok(()));
                assert_eq!(Task::new(pop(&mut handle)).output(), Ok(ITEM));
            }
        }
    });
}

/// Two threads pass one item back and forth, so that one of them nearly always sleeps.
#[test]
fn ping_pong() {
    for (pop, push) in blocking_pops().into_iter().zip(BLOCKING_PUSHES) {
        let ((_, pop), (_, push)) = (pop, push);
        ends(move || {
            let (there, back) = (Queue::bounded(1), Queue::bounded(1));
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut there, mut back) = (there.handle(), back.handle());
                    for round in 0..500 {
                        assert_eq!(pop(&mut there), Ok(round));
                        push(&mut back, round).unwrap();
                    }
                });
                let (mut there, mut back) = (there.handle(), back.handle());
                for round in 0..500 {
                    push(&mut there, round).unwrap();
                    assert_eq!(pop(&mut back), Ok(round));
                }
            });
        });
    }
}

#[test]
fn a_timeout_of_zero_tries_once() {
    ends(|| {
        let queue = Queue::bounded(1);
        let mut handle = queue.handle();
        let zero = Duration::ZERO;
        assert_eq!(handle.pop_timeout(zero), Err(PopError::Empty));
        assert_eq!(handle.push_timeout(1, zero), Ok(()));
        assert_eq!(handle.push_timeout(2, zero), Err(PushError::Full(2)));
        assert_eq!(handle.pop_timeout(zero), Ok(1));
        let tx = handle.begin();
        assert_eq!(tx.pop_timeout(zero).err(), Some(PopError::Empty));
        assert_eq!(tx.push_timeout(3, zero), Ok(()));
        assert_eq!(tx.push_timeout(4, zero), Err(PushError::Full(4)));
        tx.commit();
        let tx = handle.begin();
        assert_eq!(tx.pop_timeout(zero).as_deref(), Ok(&3));
        assert_eq!(tx.pop_timeout(zero).err(), Some(PopError::Empty));
    });
}

#[test]
fn a_time_that_is_over_gives_the_item_back() {
    ends(|| {
        for time in [MOMENT, Duration::from_micros(300)] {
            let queue = Queue::bounded(1);
            let mut handle = queue.handle();
            assert_eq!(handle.pop_timeout(time), Err(PopError::Empty));
            assert_eq!(
                handle.begin().pop_timeout(time).err(),
                Some(PopError::Empty)
            );
            queue.push(0).unwrap();
            assert_eq!(handle.push_timeout(1, time), Err(PushError::Full(1)));
            let pushed = handle.begin().push_timeout(2, time);
            assert_eq!(pushed, Err(PushError::Full(2)));
            assert_eq!((queue.pop(), queue.pop()), (Ok(0), Err(PopError::Empty)));
        }
    });
}

#[test]
fn an_available_item_wins_over_an_elapsed_deadline() {
    ends(|| {
        let queue = Queue::bounded(1);
        let mut handle = queue.handle();
        for item in 0..100 {
            assert_eq!(handle.push_timeout(item, MOMENT), Ok(()));
            assert_eq!(handle.pop_timeout(MOMENT), Ok(item));
            let tx = handle.begin();
            assert_eq!(tx.push_timeout(item, MOMENT), Ok(()));
            tx.commit();
            let tx = handle.begin();
            assert_eq!(tx.pop_timeout(MOMENT).as_deref(), Ok(&item));
            tx.commit();
        }
    });
}

#[test]
fn no_duration_is_too_long() {
    let long = [
        Duration::MAX,
        Duration::MAX.saturating_sub(MOMENT),
        Duration::MAX / 2,
        Duration::from_secs(u64::MAX),
        Duration::from_secs(i64::MAX.unsigned_abs()),
        Duration::from_secs(1 << 40),
    ];
    for time in long {
        ends(move || {
            for (_, arrive) in &ARRIVALS[..2] {
                let queue = Queue::unbounded();
                let pop = |handle: &mut Handle<u32>| handle.pop_timeout(time);
                assert_eq!(blocked_during(&queue, *arrive, 2, pop), Ok(ITEM));
                let pop = |handle: &mut Handle<u32>| {
                    handle.transact(|tx| tx.pop_timeout(time).map(|item| *item))
                };
                assert_eq!(blocked_during(&queue, *arrive, 2, pop), Ok(ITEM));
            }
            for (_, depart) in &DEPARTURES[..2] {
                let queue = Queue::bounded(1);
                let push = |handle: &mut Handle<u32>| handle.push_timeout(1, time);
                assert_eq!(blocked_during(&queue, *depart, 2, push), Ok(()));
                queue.pop().unwrap();
                let push =
                    |handle: &mut Handle<u32>| handle.transact(|tx| tx.push_timeout(1, time));
                assert_eq!(blocked_during(&queue, *depart, 2, push), Ok(()));
            }
        });
    }
}

/// A wait that times out while an item arrives takes it, or leaves it to the next waiter.
#[test]
fn a_deadline_swallows_no_wake_up() {
    ends(|| {
        for round in 0..400 {
            let queue = Queue::unbounded();
            let start = Barrier::new(3);
            thread::scope(|scope| {
                let timed = scope.spawn(|| {
                    let mut handle = queue.handle();
                    start.wait();
                    handle.pop_timeout(Duration::from_micros(round % 100))
                });
                let patient = scope.spawn(|| {
                    let mut handle = queue.handle();
                    start.wait();
                    handle.pop_blocking()
                });
                start.wait();
                queue.push(1).unwrap();
                if timed.join().unwrap().is_ok() {
                    queue.push(2).unwrap();
                }
                assert!(patient.join().unwrap().is_ok());
            });
            assert!(queue.is_empty());
        }
    });
}

#[test]
fn a_wait_that_timed_out_does_not_affect_other_waiters() {
    let queue = Queue::bounded(1);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    assert_eq!(a.pop_timeout(MOMENT), Err(PopError::Empty));
    let mut pop = Task::waiting(b.pop_async());
    queue.push(0).unwrap();
    assert_eq!((pop.rings(), pop.output()), (1, Ok(0)));
    drop(pop);

    queue.push(0).unwrap();
    assert_eq!(a.push_timeout(1, MOMENT), Err(PushError::Full(1)));
    let mut push = Task::waiting(b.push_async(2));
    queue.pop().unwrap();
    assert_eq!((push.rings(), push.output()), (1, Ok(())));
}

#[test]
fn a_waiter_keeps_the_queue_alive() {
    let queue = Queue::unbounded();
    let (mut waiter, mut pusher) = (queue.handle(), queue.handle());
    let mut pop = Task::waiting(waiter.pop_async());
    drop(queue);
    pop.assert_waits();
    pusher.push(1).unwrap();
    assert_eq!((pop.rings(), pop.output()), (1, Ok(1)));
}

#[test]
fn the_drop_of_the_last_pusher_is_not_a_close() {
    let queue = Queue::<u32>::unbounded();
    let (mut waiter, pusher) = (queue.handle(), queue.handle());
    let mut pop = Task::waiting(waiter.pop_async());
    drop((queue, pusher));
    assert!(!pop.was_woken());
    pop.assert_waits();
    drop(pop);
    assert_eq!(waiter.pop(), Err(PopError::Empty));
    assert_eq!(waiter.pop_timeout(MOMENT), Err(PopError::Empty));
}

#[test]
fn a_blocked_thread_goes_on_when_the_queue_is_dropped() {
    ends(|| {
        let queue = Queue::unbounded();
        let (mut waiter, mut pusher) = (queue.handle(), queue.handle());
        let start = Barrier::new(2);
        thread::scope(|scope| {
            let popped = scope.spawn(|| {
                start.wait();
                waiter.pop_blocking()
            });
            start.wait();
            drop(queue);
            pusher.push(1).unwrap();
            drop(pusher);
            assert_eq!(popped.join().unwrap(), Ok(1));
        });
    });
}

/// A transaction that can never fit gets `Full` at once, whatever its timeout.
#[test]
fn a_push_that_can_never_fit_does_not_wait() {
    ends(|| {
        let queue = Queue::bounded(2);
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.push(1).unwrap();
        tx.push(2).unwrap();
        assert_eq!(tx.push_blocking(3), Err(PushError::Full(3)));
        assert_eq!(tx.push_timeout(3, Duration::MAX), Err(PushError::Full(3)));
        let refused = Task::new(tx.push_async(3)).output();
        assert_eq!(refused, Err(PushError::Full(3)));
        tx.commit();
        assert_eq!(queue.len(), 2);
    });
}

/// The held items of a transaction make room for its own pushes, even if the queue is full.
#[test]
fn a_transaction_pushes_as_many_as_it_holds_without_waiting() {
    ends(|| {
        let queue = Queue::bounded(2);
        let mut handle = queue.handle();
        handle.push_batch([1, 2]).unwrap();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        assert_eq!(queue.push(9), Err(PushError::Full(9)));
        assert_eq!(tx.push_blocking(3), Ok(()));
        assert_eq!(Task::new(tx.push_async(4)).output(), Ok(()));
        tx.commit();
        assert_eq!((queue.pop(), queue.pop()), (Ok(3), Ok(4)));
    });
}
