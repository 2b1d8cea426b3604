//! A close concurrent with pushes, pops and commits of other threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread;

use crate::common::ends;
use crate::common::waits::{blocking_pops, BLOCKING_PUSHES};
use requeue::{Fifo, Handle, PopError, PushError, Queue};

const ROUNDS: usize = 60;

/// The results of the pushers, and the items received.
fn assert_results_are_true(mut accepted: Vec<u32>, mut received: Vec<u32>) {
    accepted.sort_unstable();
    received.sort_unstable();
    assert_eq!(accepted, received);
}

/// Pushes numbers until a push is refused, and returns the accepted ones.
fn push_until_closed(
    first: u32,
    mut push: impl FnMut(u32) -> Result<(), PushError<u32>>,
) -> Vec<u32> {
    let mut accepted = Vec::new();
    for number in first.. {
        if number % 4 == 0 {
            thread::yield_now();
        }
        match push(number) {
            Ok(()) => accepted.push(number),
            Err(PushError::Full(_)) => thread::yield_now(),
            Err(PushError::Closed(back)) => {
                assert_eq!(back, number);
                break;
            }
            Err(refused) => panic!("neither full nor closed: {refused:?}"),
        }
    }
    accepted
}

type Pusher = fn(&Queue<u32>, u32) -> Vec<u32>;

/// Threads that push until the queue is closed, each beginning with its own number.
const PUSHERS: [Pusher; 5] = [
    |queue, first| push_until_closed(first, |item| queue.push(item)),
    |queue, first| {
        let mut handle = queue.handle();
        push_until_closed(first, |item| handle.push(item))
    },
    |queue, first| {
        let mut handle = queue.handle();
        let mut forms = BLOCKING_PUSHES.iter().cycle();
        push_until_closed(first, |item| {
            let (_, push) = forms.next().expect("a cycle");
            push(&mut handle, item)
        })
    },
    |queue, first| {
        let mut handle = queue.handle();
        let mut first = first;
        let mut accepted = Vec::new();
        while let Ok(count) = handle.push_batch_blocking(first..first + 3) {
            assert_eq!(count, 3);
            accepted.extend(first..first + 3);
            first += 3;
        }
        accepted
    },
    stage_until_closed,
];

/// Commits the items that it has staged at the close, and stages its held items again.
fn stage_until_closed(queue: &Queue<u32>, first: u32) -> Vec<u32> {
    let mut handle = queue.handle();
    let mut accepted = Vec::new();
    let mut closed = false;
    let mut next = first;
    while !closed {
        let tx = handle.begin();
        let mut staged = Vec::new();
        while staged.len() < 2 && !closed {
            match tx.push_blocking(next) {
                Ok(()) => staged.push(next),
                Err(PushError::Closed(_)) => closed = true,
                Err(refused) => unreachable!("two fit: {refused:?}"),
            }
            next += 1;
        }
        if next % 7 == 0 {
            tx.abort();
        } else {
            tx.commit();
            accepted.append(&mut staged);
        }
    }
    accepted
}

/// Closes while all of them push and `drains` threads drain.
fn close_against_pushes(queue: &Queue<u32>, drains: usize, round: u64) {
    let start = Barrier::new(PUSHERS.len() + drains + 1);
    let (accepted, received) = thread::scope(|scope| {
        let pushers = PUSHERS.iter().zip(0u32..).map(|(push, number)| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                push(queue, number * 100_000_000)
            })
        });
        let pushers: Vec<_> = pushers.collect();
        let drains = (0..drains).map(|_| {
            scope.spawn(|| {
                start.wait();
                queue.iter().collect::<Vec<u32>>()
            })
        });
        let drains: Vec<_> = drains.collect();
        start.wait();
        while queue.stats().pushed < round * 8 {
            thread::yield_now();
        }
        assert!(queue.close());
        let join = |threads: Vec<thread::ScopedJoinHandle<'_, Vec<u32>>>| {
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        };
        let accepted = join(pushers);
        (accepted, join(drains))
    });
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert_results_are_true(accepted, received);
}

#[test]
fn accepted_items_are_received_and_refused_ones_are_not() {
    ends(|| {
        for (round, capacity) in (0..).zip(3..ROUNDS) {
            close_against_pushes(&Queue::unbounded(), 2, round);
            close_against_pushes(&Queue::bounded(capacity), 2, round);
        }
    });
}

/// Consumers of all forms end, each exactly when no item is left.
#[test]
fn all_consumers_end() {
    ends(|| {
        for round in 0..ROUNDS {
            let queue = Queue::unbounded();
            let items = u32::try_from(round * 3).unwrap();
            queue.handle().push_batch(0..items).unwrap();
            let start = Barrier::new(blocking_pops::<Fifo>().len() + 1);
            let received = thread::scope(|scope| {
                let consumers = blocking_pops().map(|(_, pop)| {
                    let (queue, start) = (&queue, &start);
                    scope.spawn(move || {
                        let mut handle = queue.handle();
                        start.wait();
                        std::iter::from_fn(|| pop(&mut handle).ok()).collect::<Vec<_>>()
                    })
                });
                start.wait();
                (0..round).for_each(|_| thread::yield_now());
                queue.close();
                consumers.map(|consumer| consumer.join().unwrap()).concat()
            });
            assert_results_are_true((0..items).collect(), received);
        }
    });
}

/// Takes items and aborts every third time, until the queue is drained.
fn work(handle: &mut Handle<u32>, number: usize) -> Vec<u32> {
    let mut done = Vec::new();
    for round in number.. {
        let tx = handle.begin();
        match tx.pop_blocking() {
            Ok(_) => {}
            Err(PopError::Closed) => break,
            Err(PopError::Empty) => panic!("a blocking pop that holds nothing said Empty"),
        }
        if round % 2 == 0 {
            // Takes more ready items, but a holder does not wait for others on a closed queue.
            tx.pop_batch(round % 4);
        }
        if round % 3 == 0 {
            tx.abort();
        } else {
            done.extend(tx.commit());
        }
    }
    done
}

#[test]
fn aborts_return_items_to_waiters() {
    ends(|| {
        for round in 0..ROUNDS {
            let queue = Queue::unbounded();
            queue.handle().push_batch(0..40).unwrap();
            let start = Barrier::new(5);
            let received = thread::scope(|scope| {
                let workers = [0, 1, 2, 3].map(|number| {
                    let (queue, start) = (&queue, &start);
                    scope.spawn(move || {
                        let mut handle = queue.handle();
                        start.wait();
                        work(&mut handle, number)
                    })
                });
                start.wait();
                (0..round).for_each(|_| thread::yield_now());
                queue.close();
                workers.map(|worker| worker.join().unwrap()).concat()
            });
            assert_results_are_true((0..40).collect(), received);
        }
    });
}

/// Two transactions that hold one item each and wait for another both return.
#[test]
fn two_that_hold_do_not_wait_for_each_other() {
    ends(|| {
        for round in 0..ROUNDS {
            let queue = Queue::unbounded();
            queue.handle().push_batch([1, 2]).unwrap();
            let both_hold = Barrier::new(3);
            let ends = thread::scope(|scope| {
                let holders = [(); 2].map(|()| {
                    scope.spawn(|| {
                        let mut handle = queue.handle();
                        let tx = handle.begin();
                        tx.pop().unwrap();
                        both_hold.wait();
                        let end = tx.pop_blocking().err();
                        both_hold.wait();
                        end
                    })
                });
                both_hold.wait();
                (0..round * 5).for_each(|_| thread::yield_now());
                queue.close();
                both_hold.wait();
                holders.map(|holder| holder.join().unwrap())
            });
            assert_eq!(ends, [Some(PopError::Empty); 2]);
        }
    });
}

#[test]
fn blocked_pops_learn_the_end_from_the_last_transaction() {
    ends(|| {
        for round in 0..ROUNDS {
            let queue = Queue::unbounded();
            queue.push(1).unwrap();
            let mut holder = queue.handle();
            let tx = holder.begin();
            tx.pop().unwrap();
            let start = Barrier::new(blocking_pops::<Fifo>().len() + 1);
            thread::scope(|scope| {
                let waiters = blocking_pops().map(|(_, pop)| {
                    let (queue, start) = (&queue, &start);
                    scope.spawn(move || {
                        let mut handle = queue.handle();
                        start.wait();
                        pop(&mut handle)
                    })
                });
                start.wait();
                (0..round * 5).for_each(|_| thread::yield_now());
                queue.close();
                (0..round * 5).for_each(|_| thread::yield_now());
                tx.commit();
                for waiter in waiters {
                    assert_eq!(waiter.join().unwrap(), Err(PopError::Closed));
                }
            });
        }
    });
}

#[test]
fn of_closes_that_race_one_is_the_first() {
    for _ in 0..ROUNDS {
        let queue = Queue::<u32>::unbounded();
        let start = Barrier::new(4);
        let first = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    first.fetch_add(usize::from(queue.close()), Ordering::SeqCst);
                    assert!(queue.is_closed());
                    assert_eq!(queue.push(1), Err(PushError::Closed(1)));
                });
            }
        });
        assert_eq!(first.into_inner(), 1);
    }
}
