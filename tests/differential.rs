//! Random sequences of operations, run on the queues and on a plain model.
//!
//! `REQUEUE_CASES` says how many; `REQUEUE_SEED` runs one case only, as a failure names it.

#[path = "../fuzz/model/mod.rs"]
mod model;

use arbitrary::{Arbitrary, Unstructured};
use model::Case;
use std::panic::catch_unwind;

/// The next of a well-mixed sequence of numbers (`SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Between 0 and 512 words of random bytes, read as operations.
fn case(seed: u64) -> Case {
    let mut state = seed;
    let words = next(&mut state) % 512;
    let bytes: Vec<u8> = (0..words)
        .flat_map(|_| next(&mut state).to_le_bytes())
        .collect();
    Case::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are operations")
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {value}")),
    )
}

#[test]
fn operations_agree_with_the_model() {
    let seeds = match variable("REQUEUE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("REQUEUE_CASES").unwrap_or(2_000),
    };
    for seed in seeds {
        let case = case(seed);
        let outcome = catch_unwind(|| model::run(&case));
        assert!(outcome.is_ok(), "REQUEUE_SEED={seed} fails: {case:?}");
    }
}
