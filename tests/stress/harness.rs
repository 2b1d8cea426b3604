//! The amount of work, the seed, and the numbers of threads.

use crate::common::rng::Rng;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Barrier;
use std::thread;

const THREADS: &[usize] = if cfg!(miri) { &[3] } else { &[2, 4, 8, 16] };

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

/// This amount of work, times `REQUEUE_STRESS`; a very small part of it under Miri.
pub(crate) fn scaled(work: usize) -> usize {
    let work = if cfg!(miri) { work.div_ceil(200) } else { work };
    let factor = variable("REQUEUE_STRESS").unwrap_or(1);
    work * usize::try_from(factor).unwrap()
}

/// Prints the settings that reproduce a failure.
struct OnFailure {
    seed: u64,
    threads: usize,
}

impl Drop for OnFailure {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { seed, threads } = self;
            eprintln!("failed with {threads} threads; to repeat: REQUEUE_SEED={seed}");
        }
    }
}

/// Runs a test once for every number of threads.
pub(crate) fn on_all_threads(test: impl Fn(usize, &mut Rng)) {
    let random = || RandomState::new().build_hasher().finish();
    let seed = variable("REQUEUE_SEED").unwrap_or_else(random);
    for &threads in THREADS {
        let _on_failure = OnFailure { seed, threads };
        test(threads, &mut Rng::new(seed));
    }
}

/// Runs `work` on this many threads that start at once; each gets its number.
pub(crate) fn together(threads: usize, rng: &mut Rng, work: impl Fn(usize, &mut Rng) + Sync) {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, start, mut rng) = (&work, &start, rng.fork());
            scope.spawn(move || {
                start.wait();
                work(number, &mut rng);
            });
        }
    });
}

/// A planned panic of the test. It prints nothing.
struct Planned;

pub(crate) fn panic_as_planned() -> ! {
    resume_unwind(Box::new(Planned))
}

/// The result of `call`; `None` if it panicked as planned.
pub(crate) fn unless_planned<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Planned>() => None,
        Err(panic) => resume_unwind(panic),
    }
}
