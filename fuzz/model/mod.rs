//! A plain, single-threaded model of a few queues, and the operations that are run on both.
//!
//! The fuzz target `operations` and the test `differential` share it.

mod acts;
mod counts;
mod ends;
mod failures;
mod item;
mod line;
mod looks;
mod open;
mod ops;
mod order;
mod retries;
mod rules;
mod settings;
mod shapes;
mod transactions;
mod waits;
mod work;
mod world;

pub(crate) use ops::Case;

use world::World;

/// Runs a case and panics where the queues and the model disagree.
pub(crate) fn run(case: &Case) {
    if case.large {
        World::<4096>::new(case).run(case);
    } else {
        World::<0>::new(case).run(case);
    }
}
