//! Scenarios of one thread. A round begins and ends with an empty queue.

use super::subjects::{Endpoint, Subject};
use super::{Contender, ITEMS};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measures a closure.
pub(super) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn fill(endpoint: &mut impl Endpoint) {
    (0..ITEMS).for_each(|item| endpoint.push(item as u64));
}

fn drain(endpoint: &mut impl Endpoint) {
    while let Some(item) = endpoint.pop() {
        black_box(item);
    }
}

pub(super) fn push<S: Subject>() -> Contender {
    let mut endpoint = S::default().endpoint();
    Contender::new(S::NAME, move || {
        let elapsed = time(|| fill(&mut endpoint));
        drain(&mut endpoint);
        elapsed
    })
}

pub(super) fn pop<S: Subject>() -> Contender {
    let mut endpoint = S::default().endpoint();
    Contender::new(S::NAME, move || {
        fill(&mut endpoint);
        time(|| drain(&mut endpoint))
    })
}

/// Each item is popped right after its push.
pub(super) fn pair<S: Subject>() -> Contender {
    let mut endpoint = S::default().endpoint();
    Contender::new(S::NAME, move || {
        time(|| {
            for item in 0..ITEMS {
                endpoint.push(item as u64);
                black_box(endpoint.pop());
            }
        })
    })
}

/// Each batch is popped right after its push, both in one call.
pub(super) fn batch<S: Subject>(size: usize) -> Contender {
    let mut endpoint = S::default().endpoint();
    Contender::new(S::NAME, move || {
        time(|| {
            for _ in 0..ITEMS / size {
                endpoint.push_batch(size);
                let mut left = size;
                while left > 0 {
                    left -= endpoint.pop_batch(left);
                }
            }
        })
    })
}
