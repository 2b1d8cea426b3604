//! Pops from the first of several queues with an item.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::events::{ARRIVALS, ITEM};
use crate::common::futures::Task;
use crate::common::{ends, panics};
use requeue::{pop_any, pop_any_async, Handle, Limiter, Pace, PopError, Queue, RateSlot};

fn queues<const N: usize>() -> [Queue<u32>; N] {
    [(); N].map(|()| Queue::unbounded())
}

fn handles<const N: usize>(queues: &[Queue<u32>; N]) -> [Handle<u32>; N] {
    std::array::from_fn(|place| queues[place].handle())
}

#[test]
fn earlier_queues_are_preferred() {
    ends(|| {
        let queues = queues::<3>();
        let mut handles = handles(&queues);
        queues[2].push(20).unwrap();
        queues[1].push(10).unwrap();
        queues[1].push(11).unwrap();
        assert_eq!(pop_any(&mut handles), Ok((1, 10)));
        queues[0].push(0).unwrap();
        assert_eq!(pop_any(&mut handles), Ok((0, 0)));
        assert_eq!(pop_any(&mut handles), Ok((1, 11)));
        assert_eq!(pop_any(&mut handles), Ok((2, 20)));
    });
}

/// A limiter that allows no start until a waiter is at the queue, and then panics.
struct Fuse(Queue<u32>);

impl Limiter for Fuse {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        assert_eq!(self.0.stats().waiting, 0, "the limiter fails");
        Err(now + Duration::from_secs(1))
    }
}

#[test]
fn a_panicking_wait_leaves_all_wait_queues() {
    ends(|| {
        let [first] = queues::<1>();
        let pace = Pace::shared(Fuse(first.clone()));
        let paced = Queue::builder().pace(pace).build();
        paced.push(1).unwrap();
        let mut handles = [first.handle(), paced.handle()];
        assert!(panics(|| pop_any(&mut handles)));
        assert_eq!(first.stats().waiting, 0);
        let mut other = first.handle();
        let mut task = Task::waiting(other.pop_async());
        first.push(2).unwrap();
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(2));
    });
}

#[test]
fn handles_may_be_borrowed_from_several_places() {
    ends(|| {
        let queues = queues::<2>();
        let [mut a, mut b] = handles(&queues);
        queues[1].push(1).unwrap();
        assert_eq!(pop_any(&mut [&mut a, &mut b]), Ok((1, 1)));
        queues[0].push(2).unwrap();
        assert_eq!(pop_any(&mut [&mut a]), Ok((0, 2)));
        assert_eq!(a.pop(), Err(PopError::Empty));
    });
}

#[test]
fn the_end_comes_when_all_are_closed_and_drained() {
    ends(|| {
        let queues = queues::<3>();
        let mut handles = handles(&queues);
        queues[0].close();
        queues[2].push(1).unwrap();
        queues[2].close();
        assert_eq!(pop_any(&mut handles), Ok((2, 1)));
        queues[1].push(2).unwrap();
        queues[1].close();
        assert_eq!(pop_any(&mut handles), Ok((1, 2)));
        assert_eq!(pop_any(&mut handles), Err(PopError::Closed));
    });
}

/// Runs `pop_any` on another thread while the event takes place.
fn popped_during(
    queues: &[Queue<u32>; 3],
    round: usize,
    event: impl FnOnce(&mut dyn FnMut()),
) -> Result<(usize, u32), PopError> {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut handles = handles(queues);
            start.wait();
            pop_any(&mut handles)
        });
        event(&mut || {
            start.wait();
            (0..round * 40).for_each(|_| thread::yield_now());
        });
        waiter.join().unwrap()
    })
}

#[test]
fn an_arrival_in_any_queue_wakes() {
    ends(|| {
        for (name, arrive) in ARRIVALS {
            for round in 0..6 {
                let (queues, place) = (queues(), round % 3);
                let popped = popped_during(&queues, round, |meanwhile| {
                    arrive(&queues[place], meanwhile);
                });
                assert_eq!(popped, Ok((place, ITEM)), "{name}");
            }
        }
    });
}

#[test]
fn the_last_close_wakes() {
    ends(|| {
        for round in 0..30 {
            let queues = queues();
            queues[(round + 1) % 3].close();
            let popped = popped_during(&queues, round, |meanwhile| {
                meanwhile();
                queues[round % 3].close();
                queues[(round + 2) % 3].close();
            });
            assert_eq!(popped, Err(PopError::Closed));
        }
    });
}

/// The wake-ups of the queues that were not popped go to their other waiters.
#[test]
fn it_leaves_no_waiter_in_any_wait_queue() {
    ends(|| {
        for round in 0..30 {
            let queues = queues();
            let popped = popped_during(&queues, round, |meanwhile| {
                meanwhile();
                queues[1].push(1).unwrap();
            });
            assert_eq!(popped, Ok((1, 1)));
            for queue in &queues {
                let mut handle = queue.handle();
                let mut task = Task::waiting(handle.pop_async());
                queue.push(2).unwrap();
                assert_eq!((task.rings(), task.output()), (1, Ok(2)));
            }
        }
    });
}

/// Items arrive in all queues at once, while other threads wait in one of them: all items are received.
#[test]
fn many_wait_for_many() {
    ends(|| {
        let queues = queues::<3>();
        let mut received = thread::scope(|scope| {
            let any = [(); 2].map(|()| {
                scope.spawn(|| {
                    let mut handles = handles(&queues);
                    let next = || pop_any(&mut handles).ok().map(|(_, item)| item);
                    std::iter::from_fn(next).collect::<Vec<_>>()
                })
            });
            let one = [0, 1, 2].map(|place| {
                let queue = &queues[place];
                scope.spawn(move || queue.iter().collect::<Vec<_>>())
            });
            for item in 0..3_000 {
                queues[item as usize % 3].push(item).unwrap();
                if item % 7 == 0 {
                    thread::yield_now();
                }
            }
            for queue in &queues {
                queue.close();
            }
            let any = any.map(|thread| thread.join().unwrap()).concat();
            let one = one.map(|thread| thread.join().unwrap()).concat();
            [any, one].concat()
        });
        received.sort_unstable();
        assert!(received.into_iter().eq(0..3_000));
    });
}

/// A task that was woken in vain, and then again, is not polled: so its queue goes on serving it.
#[test]
fn a_drained_queue_among_others_wakes_its_visitor_once() {
    let queues = queues::<2>();
    let [drained, open] = &queues;
    let mut idle = Task::waiting(drained.pop_async());
    drained.push(0).unwrap();
    assert_eq!(drained.pop(), Ok(0));
    idle.assert_waits();
    drained.push(1).unwrap();
    drained.close();
    let mut handles = handles(&queues);
    assert_eq!(Task::new(pop_any_async(&mut handles)).output(), Ok((0, 1)));

    let mut waiting = Task::waiting(pop_any_async(&mut handles));
    for _ in 0..3 {
        waiting.renew_waker(); // it may be the one that has found out
        waiting.assert_waits();
    }
    assert!(!waiting.was_woken());
    open.push(2).unwrap();
    assert!(waiting.was_woken());
    assert_eq!(waiting.output(), Ok((1, 2)));
}
