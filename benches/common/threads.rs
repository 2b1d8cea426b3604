//! Scenarios of several producers and consumers.

use super::subjects::{Endpoint, Subject};
use super::{Contender, ITEMS};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Producers push `ITEMS` items while consumers pop them, each thread an equal share.
pub(super) fn pass<S: Subject>(producers: usize, consumers: usize) -> Contender {
    let subject = S::default();
    let mut pushing: Vec<_> = (0..producers).map(|_| subject.endpoint()).collect();
    let mut popping: Vec<_> = (0..consumers).map(|_| subject.endpoint()).collect();
    Contender::new(S::NAME, move || {
        together(
            &mut pushing,
            |endpoint| (0..ITEMS / producers).for_each(|item| endpoint.push(item as u64)),
            &mut popping,
            |endpoint| {
                for _ in 0..ITEMS / consumers {
                    black_box(pop_waiting(endpoint));
                }
            },
        )
    })
}

/// The same in batches; each share is a multiple of the batch size.
pub(super) fn pass_batches<S: Subject>(
    producers: usize,
    consumers: usize,
    size: usize,
) -> Contender {
    let subject = S::default();
    let mut pushing: Vec<_> = (0..producers).map(|_| subject.endpoint()).collect();
    let mut popping: Vec<_> = (0..consumers).map(|_| subject.endpoint()).collect();
    Contender::new(S::NAME, move || {
        together(
            &mut pushing,
            |endpoint| {
                for _ in 0..ITEMS / producers / size {
                    endpoint.push_batch(size);
                }
            },
            &mut popping,
            |endpoint| {
                let mut left = ITEMS / consumers;
                while left > 0 {
                    match endpoint.pop_batch(size.min(left)) {
                        0 => thread::yield_now(),
                        popped => left -= popped,
                    }
                }
            },
        )
    })
}

/// Runs each endpoint on its own thread and measures from the first start to the last end.
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
            .map(|endpoint| scope.spawn(move || timed(barrier, || push(endpoint))));
        let popping = popping
            .iter_mut()
            .map(|endpoint| scope.spawn(move || timed(barrier, || pop(endpoint))));
        let threads: Vec<_> = pushing.chain(popping).collect();
        let spans = threads.into_iter().map(|thread| thread.join().unwrap());
        let (starts, ends): (Vec<_>, Vec<_>) = spans.unzip();
        *ends.iter().max().unwrap() - *starts.iter().min().unwrap()
    })
}

/// The start and end of some work that begins together with the others'.
fn timed(barrier: &Barrier, work: impl FnOnce()) -> (Instant, Instant) {
    barrier.wait();
    let start = Instant::now();
    work();
    (start, Instant::now())
}

/// Pops an item; yields while there is none.
pub(crate) fn pop_waiting(endpoint: &mut impl Endpoint) -> u64 {
    loop {
        if let Some(item) = endpoint.pop() {
            return item;
        }
        thread::yield_now();
    }
}
