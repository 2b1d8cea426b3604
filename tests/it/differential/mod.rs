//! Random sequences of operations, run on the queues and on a sequential model.
//!
//! `REQUEUE_CASES` sets the number of cases for each kind of queue; `REQUEUE_SEED` runs only one case of each, as
//! named by a failure.

pub(crate) mod model;

use arbitrary::{Arbitrary, Unstructured};
use std::fmt::Debug;
use std::ops::Deref;
use std::panic::catch_unwind;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Longer than any case takes unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The next number of a pseudo-random sequence (`SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Between 0 and 512 words of random bytes, decoded as operations.
fn case<C: for<'a> Arbitrary<'a>>(seed: u64) -> C {
    let mut state = seed;
    let words = next(&mut state) % 512;
    let bytes: Vec<u8> = (0..words)
        .flat_map(|_| next(&mut state).to_le_bytes())
        .collect();
    C::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are operations")
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {value}")),
    )
}

/// Runs cases of one kind.
fn agree<C>()
where
    C: Debug + for<'a> Arbitrary<'a> + Deref<Target = model::Case>,
{
    let seeds = match variable("REQUEUE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("REQUEUE_CASES").unwrap_or(400),
    };
    let (done, finished) = channel();
    let all = seeds.clone();
    thread::spawn(move || {
        for seed in all {
            let outcome = catch_unwind(|| model::run(&case::<C>(seed)));
            if done.send(outcome.is_ok()).is_err() || outcome.is_err() {
                return;
            }
        }
    });
    for seed in seeds {
        let agrees = finished.recv_timeout(PATIENCE);
        assert_eq!(
            agrees,
            Ok(true),
            "REQUEUE_SEED={seed} fails: {:?}",
            case::<C>(seed)
        );
    }
}

#[test]
fn plain_queues_agree_with_the_model() {
    agree::<model::Plain>();
}

#[test]
fn fair_queues_agree_with_the_model() {
    agree::<model::Fair>();
}

#[test]
fn queues_by_priority_agree_with_the_model() {
    agree::<model::ByPriority>();
}
