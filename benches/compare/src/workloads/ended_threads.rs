//! A queue that many threads have used, which have ended: neither a call nor the memory may depend on how many there were.

use super::crowd::{both, push_pop_empty};
use super::memory::bytes;
use super::{items, Sizes};
use crate::alloc;
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Receiver, Sender, WithHandle};
use crate::tally::Tally;
use crate::threads::Load;
use requeue::Queue;
use std::sync::Barrier;
use std::thread;

/// Threads that live at the same time, and all threads of the first queue.
const AT_ONCE: usize = 64;
const PAIRS: u64 = 1000;
/// Handles after the last thread, whose use frees what was retired before.
const HANDLES: u64 = 10_000;
const COLUMNS: &[&str] = &["64 threads", "10,000 threads"];

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let (threads, load) = ([AT_ONCE, sizes.handles.max(AT_ONCE)], sizes.load_of(10));
    let calls = Workload::new("push, pop, Empty after ended threads", move || {
        vec![
            calls("requeue", threads, load, WithHandle::of),
            calls("requeue, no handle", threads, load, Queue::clone),
        ]
    });
    let memory = Workload::new("memory after ended threads", move || {
        vec![
            memory("requeue", threads, WithHandle::of),
            memory("requeue, no handle", threads, Queue::clone),
        ]
    });
    let memory = memory.unit("bytes").once();
    vec![calls.columns(COLUMNS), memory.columns(COLUMNS)]
}

/// Opens an end of a queue, for pushes and pops.
type Open<E> = fn(&Queue<u64>) -> E;

/// Lets so many threads use the queue, each with an end of its own, and opens two ends for this thread.
fn used<E>(queue: &Queue<u64>, threads: usize, open: Open<E>) -> (E, E)
where
    E: Sender<u64> + Receiver<u64>,
{
    let mut left = threads;
    while left > 0 {
        let wave = left.min(AT_ONCE);
        let barrier = &Barrier::new(wave);
        thread::scope(|scope| {
            let work = || {
                let mut end = open(queue);
                end.push_retrying(0);
                barrier.wait();
                while end.pop().is_some() {}
            };
            let threads: Vec<_> = (0..wave).map(|_| scope.spawn(work)).collect();
            // The scope alone does not wait for what a thread gives back at its very end.
            for thread in threads {
                thread.join().expect("no thread panics");
            }
        });
        left -= wave;
    }
    (open(queue), open(queue))
}

fn calls<E>(name: &'static str, threads: [usize; 2], load: Load, open: Open<E>) -> Subject
where
    E: Sender<u64> + Receiver<u64>,
{
    let mut queues = threads.map(|threads| used(&Queue::unbounded(), threads, open));
    Subject::new(name, move || {
        both(queues.each_mut().map(|ends| push_pop_empty(ends, load)))
    })
}

/// Opens and drops handles, which frees what was retired before.
fn reclaim(queue: &Queue<u64>) {
    for number in 0..HANDLES {
        let mut handle = queue.handle();
        handle.push(number).expect("the queue is open");
        handle.pop().expect("it has an item");
    }
}

/// The bytes that a queue keeps when its threads have ended.
fn memory<E>(name: &'static str, threads: [usize; 2], open: Open<E>) -> Subject
where
    E: Sender<u64> + Receiver<u64>,
{
    Subject::new(name, move || {
        let (mut values, mut received) = (Vec::new(), Tally::default());
        for threads in threads {
            reclaim(&Queue::unbounded());
            alloc::start();
            let queue = Queue::unbounded();
            let (mut sender, mut receiver) = used(&queue, threads, open);
            reclaim(&queue);
            received += items((0..PAIRS).map_while(|number| {
                sender.push_retrying(number);
                receiver.pop()
            }));
            values.push(bytes());
            alloc::stop();
        }
        let mut sent = Tally::of(0..PAIRS);
        sent += sent;
        Round::new(values, sent, received)
    })
}
