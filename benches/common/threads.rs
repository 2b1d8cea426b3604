//! Several producers and consumers.

use super::subjects::{Port, Subject};
use super::{Contender, ITEMS};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Producers push `ITEMS` items between them while consumers pop them, each its equal share.
pub(super) fn pass<S: Subject>(producers: usize, consumers: usize) -> Contender {
    let subject = S::default();
    let mut pushing: Vec<_> = (0..producers).map(|_| subject.port()).collect();
    let mut popping: Vec<_> = (0..consumers).map(|_| subject.port()).collect();
    Contender::new(S::NAME, move || {
        together(
            &mut pushing,
            |port| (0..ITEMS / producers).for_each(|item| port.push(item as u64)),
            &mut popping,
            |port| {
                for _ in 0..ITEMS / consumers {
                    black_box(pop_waiting(port));
                }
            },
        )
    })
}

/// The same in batches; the share of each is a multiple of the size.
pub(super) fn pass_batches<S: Subject>(
    producers: usize,
    consumers: usize,
    size: usize,
) -> Contender {
    let subject = S::default();
    let mut pushing: Vec<_> = (0..producers).map(|_| subject.port()).collect();
    let mut popping: Vec<_> = (0..consumers).map(|_| subject.port()).collect();
    Contender::new(S::NAME, move || {
        together(
            &mut pushing,
            |port| {
                for _ in 0..ITEMS / producers / size {
                    port.push_batch(size);
                }
            },
            &mut popping,
            |port| {
                let mut left = ITEMS / consumers;
                while left > 0 {
                    match port.pop_batch(size.min(left)) {
                        0 => thread::yield_now(),
                        popped => left -= popped,
                    }
                }
            },
        )
    })
}

/// Runs each port on a thread of its own and measures from the first start to the last end.
pub(crate) fn together<P: Send>(
    pushing: &mut [P],
    push: impl Fn(&mut P) + Sync,
    popping: &mut [P],
    pop: impl Fn(&mut P) + Sync,
) -> Duration {
    let barrier = &Barrier::new(pushing.len() + popping.len());
    let (push, pop) = (&push, &pop);
    thread::scope(|scope| {
        let pushing = pushing
            .iter_mut()
            .map(|port| scope.spawn(move || timed(barrier, || push(port))));
        let popping = popping
            .iter_mut()
            .map(|port| scope.spawn(move || timed(barrier, || pop(port))));
        let threads: Vec<_> = pushing.chain(popping).collect();
        let spans = threads.into_iter().map(|thread| thread.join().unwrap());
        let (starts, ends): (Vec<_>, Vec<_>) = spans.unzip();
        *ends.iter().max().unwrap() - *starts.iter().min().unwrap()
    })
}

/// When some work starts and ends that begins with the others'.
fn timed(barrier: &Barrier, work: impl FnOnce()) -> (Instant, Instant) {
    barrier.wait();
    let start = Instant::now();
    work();
    (start, Instant::now())
}

/// Pops an item; while there is none, others may run.
pub(crate) fn pop_waiting(port: &mut impl Port) -> u64 {
    loop {
        if let Some(item) = port.pop() {
            return item;
        }
        thread::yield_now();
    }
}
