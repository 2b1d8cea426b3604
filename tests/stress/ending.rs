//! Threads that push without a handle and end, while one consumer pops: each thread leaves its items behind, in order.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled};
use requeue::{Handle, PopError, Queue};
use std::thread;

/// An item: the number of its thread, and its place among the items of this thread.
type Stamp = (usize, usize);

/// Threads that push some items each and end, at most `width` at a time; the number of items of each.
fn push_by_ending_threads(
    queue: &Queue<Stamp>,
    threads: usize,
    width: usize,
    rng: &mut Rng,
) -> Vec<usize> {
    let counts: Vec<usize> = (0..threads).map(|_| rng.below(5) * rng.below(20)).collect();
    let numbered: Vec<_> = counts.iter().copied().enumerate().collect();
    for wave in numbered.chunks(width) {
        thread::scope(|scope| {
            for &(number, count) in wave {
                scope.spawn(move || {
                    for place in 0..count {
                        queue.push((number, place)).unwrap();
                    }
                });
            }
        });
    }
    counts
}

/// Pops until the queue is closed and drained; how many items of each thread came.
fn pop_all(
    worker: &mut Handle<Stamp>,
    threads: usize,
    mut waits: impl FnMut() -> bool,
) -> Vec<usize> {
    let mut next = vec![0; threads];
    loop {
        let popped = if waits() {
            worker.pop_blocking()
        } else {
            worker.pop()
        };
        match popped {
            Ok((number, place)) => {
                assert_eq!(place, next[number], "out of order");
                next[number] += 1;
            }
            Err(PopError::Empty) => thread::yield_now(),
            Err(PopError::Closed) => return next,
        }
    }
}

/// `chance`: in how many of a hundred pops the consumer waits.
fn threads_that_end(chance: usize) {
    on_all_threads(|width, rng| {
        let threads = scaled(200);
        let queue = Queue::unbounded();
        let (mut worker, mut choice) = (queue.handle(), rng.fork());
        let consumer =
            thread::spawn(move || pop_all(&mut worker, threads, || choice.percent(chance)));
        let pushed = push_by_ending_threads(&queue, threads, width, rng);
        queue.close();
        assert_eq!(consumer.join().unwrap(), pushed);
    });
}

#[test]
fn threads_push_and_end_while_another_pops() {
    threads_that_end(0);
}

#[test]
fn threads_push_and_end_while_another_waits() {
    threads_that_end(100);
}

#[test]
fn threads_push_and_end_while_another_waits_now_and_then() {
    threads_that_end(30);
}
