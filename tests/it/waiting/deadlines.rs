//! Waits until an instant.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::ends;
use crate::common::failing::{clocked, SECOND};
use requeue::{
    channel, hold_any_deadline, pop_any_deadline, Job, ManualClock, PopError, PriorityQueue,
    PushError, Queue,
};

/// A call that waits until an instant; returns the item that it got, or whether it succeeded as 0.
type Call = fn(&Queue<u32>, Instant) -> Option<u32>;

const POPS: [Call; 9] = [
    |queue, at| popped(queue.pop_deadline(at)),
    |queue, at| popped(queue.handle().pop_deadline(at)),
    |queue, at| popped(queue.handle().begin().pop_deadline(at).map(|item| *item)),
    |queue, at| popped(queue.handle().begin().peek_deadline(at).map(|item| *item)),
    |queue, at| {
        let mut items = Vec::new();
        assert!(queue.pop_batch_deadline(1, 2, &mut items, at) <= 1);
        items.pop()
    },
    |queue, at| {
        let mut items = Vec::new();
        assert!(queue.handle().pop_batch_deadline(1, 2, &mut items, at) <= 1);
        items.pop()
    },
    |queue, at| {
        let (mut handle, mut items) = (queue.handle(), Vec::new());
        let tx = handle.begin();
        items.extend(tx.pop_batch_deadline(1, 2, at).map(|item| *item));
        items.pop()
    },
    |queue, at| popped(pop_any_deadline(&mut [queue.handle()], at).map(|(_, item)| item)),
    |queue, at| {
        let mut handle = queue.handle();
        let held = hold_any_deadline([&handle.begin()], at).map(|(_, item)| *item);
        popped(held)
    },
];

/// Calls that cannot succeed while the queue holds 1 item, its capacity.
const PUSHES: [Call; 7] = [
    |queue, at| pushed(queue.push_deadline(2, at)),
    |queue, at| pushed(queue.handle().push_deadline(2, at)),
    |queue, at| pushed(queue.handle().transact(|tx| tx.push_deadline(2, at))),
    |queue, at| pushed(queue.push_batch_deadline([2], at)),
    |queue, at| pushed(queue.handle().push_batch_deadline([2], at)),
    |queue, at| {
        pushed(
            queue
                .handle()
                .transact(|tx| tx.push_batch_deadline([2], at)),
        )
    },
    |queue, at| queue.wait_idle_deadline(at).then_some(0),
];

fn popped(result: Result<u32, PopError>) -> Option<u32> {
    assert_ne!(result, Err(PopError::Closed));
    result.ok()
}

fn pushed<R, I>(result: Result<R, PushError<I>>) -> Option<u32> {
    match result {
        Ok(_) => Some(0),
        Err(error) => {
            assert!(error.is_full());
            None
        }
    }
}

/// Checks that the call waits until the clock shows the deadline, and is in vain.
fn waits(clock: &ManualClock, call: impl Fn(Instant) -> bool + Sync) {
    let deadline = clock.now() + SECOND;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            assert!(!call(deadline));
            assert!(clock.now() >= deadline);
        });
        (0..100).for_each(|_| thread::yield_now()); // so that it mostly waits before the time passes
        while !waiter.is_finished() {
            clock.advance(SECOND / 4);
            thread::yield_now();
        }
        waiter.join().unwrap();
    });
}

#[test]
fn a_wait_ends_at_its_deadline_by_the_clock_of_the_queue() {
    ends(|| {
        for pop in POPS {
            let (clock, builder) = clocked();
            let queue = builder.build();
            waits(&clock, |deadline| pop(&queue, deadline).is_some());
        }
        for push in PUSHES {
            let (clock, builder) = clocked();
            let queue = builder.capacity(1).build();
            queue.push(1).unwrap();
            waits(&clock, |deadline| push(&queue, deadline).is_some());
            assert_eq!(queue.pop(), Ok(1));
        }
    });
}

#[test]
fn an_item_before_the_deadline_ends_the_wait() {
    ends(|| {
        for pop in POPS {
            let (clock, builder) = clocked();
            let queue = builder.build();
            let deadline = clock.now() + SECOND;
            thread::scope(|scope| {
                let waiter = scope.spawn(|| pop(&queue, deadline));
                clock.advance(SECOND / 2);
                queue.push(7).unwrap();
                assert_eq!(waiter.join().unwrap(), Some(7));
            });
        }
        for push in PUSHES {
            let (clock, builder) = clocked();
            let queue = builder.capacity(1).build();
            queue.push(1).unwrap();
            let deadline = clock.now() + SECOND;
            thread::scope(|scope| {
                let waiter = scope.spawn(|| push(&queue, deadline));
                clock.advance(SECOND / 2);
                assert_eq!(queue.pop(), Ok(1));
                assert_eq!(waiter.join().unwrap(), Some(0));
            });
        }
    });
}

#[test]
fn a_past_deadline_tries_once() {
    ends(|| {
        for past in [Duration::ZERO, SECOND, 100 * SECOND] {
            for pop in POPS {
                let (clock, builder) = clocked();
                clock.advance(2 * SECOND);
                let queue = builder.build();
                let deadline = clock.now().checked_sub(past).unwrap();
                assert_eq!(pop(&queue, deadline), None);
                queue.push(7).unwrap();
                assert_eq!(pop(&queue, deadline), Some(7));
            }
            for push in PUSHES {
                let (clock, builder) = clocked();
                let queue = builder.capacity(1).build();
                queue.push(1).unwrap();
                let deadline = clock.now().checked_sub(past).unwrap();
                assert_eq!(push(&queue, deadline), None);
                assert_eq!(queue.pop(), Ok(1));
                assert_eq!(push(&queue, deadline), Some(0));
            }
        }
    });
}

#[test]
fn views_channels_and_outcomes_have_deadlines() {
    ends(|| {
        let clock = ManualClock::new();
        let builder = Queue::builder().by_priority().clock(clock.clone());
        let queue: PriorityQueue<u32> = builder.capacity(1).build();
        queue.push(1).unwrap();
        let urgent = queue.priority(1);
        waits(&clock, |at| urgent.push_deadline(2, at).is_ok());
        waits(&clock, |at| urgent.push_batch_deadline([2], at).is_ok());
        assert_eq!(queue.pop(), Ok(1));
        assert!(urgent.push_deadline(2, clock.now()).is_ok());

        let (sender, receiver) = channel::bounded(1);
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(receiver.pop_deadline(soon()), Err(PopError::Empty));
        assert_eq!(
            receiver.pop_batch_deadline(1, 2, &mut Vec::new(), soon()),
            0
        );
        assert_eq!(sender.push_deadline(1, soon()), Ok(()));
        assert_eq!(sender.push_deadline(2, soon()), Err(PushError::Full(2)));
        let full = Err(PushError::Full(vec![2]));
        assert_eq!(sender.push_batch_deadline([2], soon()), full);

        let (mut job, outcome) = Job::new(|| 7);
        let outcome = outcome.wait_deadline(soon()).unwrap_err();
        job.run();
        assert_eq!(outcome.wait_deadline(soon()).unwrap().unwrap(), 7);
    });
}
