//! Threads, each of which takes what it has put in itself, as in a depth-first walk.

use super::{Contender, ITEMS};
use crossbeam_deque::Worker;
use requeue::{Lifo, Order, Queue};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// How many items a thread puts in before it takes them.
const DEPTH: u64 = 64;

/// Runs one closure of each thread, which together pass `ITEMS` items, and returns the longest time.
fn on_threads<R: FnMut(u64)>(threads: usize, start: impl Fn() -> R + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    let one = || {
        let mut round = start();
        barrier.wait();
        let begin = Instant::now();
        (0..(ITEMS / threads) as u64 / DEPTH).for_each(&mut round);
        begin.elapsed()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let times = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"));
        times.max().unwrap_or_default()
    })
}

fn queue<O>(name: &'static str, threads: usize, queue: Queue<u64, O>) -> Contender
where
    O: Order<u64> + 'static,
    Queue<u64, O>: Sync,
{
    Contender::new(name, move || {
        on_threads(threads, || {
            let mut handle = queue.handle();
            move |round| {
                for item in 0..DEPTH {
                    let _ = handle.push(round + item);
                }
                (0..DEPTH).for_each(|_| assert!(black_box(handle.pop()).is_ok()));
            }
        })
    })
}

pub(crate) fn contenders(threads: usize) -> Vec<Contender> {
    let deques = move || {
        on_threads(threads, || {
            let deque = Worker::new_lifo();
            move |round| {
                (0..DEPTH).for_each(|item| deque.push(round + item));
                (0..DEPTH).for_each(|_| assert!(black_box(deque.pop()).is_some()));
            }
        })
    };
    vec![
        queue::<Lifo>("newest first", threads, Queue::builder().lifo().build()),
        queue("default order", threads, Queue::<u64>::unbounded()),
        Contender::new("a deque each", deques),
    ]
}
