//! Two threads, each of which takes what it has put in itself, as in a depth-first walk.

use super::{Contender, ITEMS};
use crossbeam_deque::Worker;
use requeue::{Lifo, Order, Queue};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 2;
/// How many items a thread puts in before it takes them.
const DEPTH: u64 = 64;

/// Runs one closure of each thread, which passes `ITEMS / THREADS` items, and returns the longest time.
fn on_threads<R: FnMut(u64)>(start: impl Fn() -> R + Sync) -> Duration {
    let barrier = Barrier::new(THREADS);
    let one = || {
        let mut round = start();
        barrier.wait();
        let begin = Instant::now();
        (0..(ITEMS / THREADS) as u64 / DEPTH).for_each(&mut round);
        begin.elapsed()
    };
    thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(one));
        let times = threads.map(|thread| thread.join().expect("no thread panics"));
        times.into_iter().max().unwrap_or_default()
    })
}

fn queue<O>(name: &'static str, queue: Queue<u64, O>) -> Contender
where
    O: Order<u64> + 'static,
    Queue<u64, O>: Sync,
{
    Contender::new(name, move || {
        on_threads(|| {
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

pub(crate) fn contenders() -> Vec<Contender> {
    let deques = || {
        on_threads(|| {
            let deque = Worker::new_lifo();
            move |round| {
                (0..DEPTH).for_each(|item| deque.push(round + item));
                (0..DEPTH).for_each(|_| assert!(black_box(deque.pop()).is_some()));
            }
        })
    };
    vec![
        queue::<Lifo>("newest first", Queue::builder().lifo().build()),
        queue("default order", Queue::<u64>::unbounded()),
        Contender::new("a deque each", deques),
    ]
}
