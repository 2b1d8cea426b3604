//! One thread. A round begins and ends with an empty queue.

use super::subjects::{Port, Subject};
use super::{Contender, ITEMS};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The time that some work takes.
pub(super) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn fill(port: &mut impl Port) {
    (0..ITEMS).for_each(|item| port.push(item as u64));
}

fn drain(port: &mut impl Port) {
    while let Some(item) = port.pop() {
        black_box(item);
    }
}

pub(super) fn push<S: Subject>() -> Contender {
    let mut port = S::default().port();
    Contender::new(S::NAME, move || {
        let elapsed = time(|| fill(&mut port));
        drain(&mut port);
        elapsed
    })
}

pub(super) fn pop<S: Subject>() -> Contender {
    let mut port = S::default().port();
    Contender::new(S::NAME, move || {
        fill(&mut port);
        time(|| drain(&mut port))
    })
}

/// Each item is popped right after its push.
pub(super) fn pair<S: Subject>() -> Contender {
    let mut port = S::default().port();
    Contender::new(S::NAME, move || {
        time(|| {
            for item in 0..ITEMS {
                port.push(item as u64);
                black_box(port.pop());
            }
        })
    })
}

/// Each batch is popped, at once, right after it was pushed, at once.
pub(super) fn batch<S: Subject>(size: usize) -> Contender {
    let mut port = S::default().port();
    Contender::new(S::NAME, move || {
        time(|| {
            for _ in 0..ITEMS / size {
                port.push_batch(size);
                let mut left = size;
                while left > 0 {
                    left -= port.pop_batch(left);
                }
            }
        })
    })
}

/// Two queues, an item for each in turn; popping is not counted.
pub(super) fn two<S: Subject>() -> Contender {
    let mut ports = [S::default().port(), S::default().port()];
    Contender::new(S::NAME, move || {
        let elapsed = time(|| {
            for item in 0..ITEMS / 2 {
                for port in &mut ports {
                    port.push(item as u64);
                }
            }
        });
        ports.iter_mut().for_each(drain);
        elapsed
    })
}
