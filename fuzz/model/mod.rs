//! A plain, single-threaded model of a few queues, and the operations that are run on both.
//!
//! The fuzz target `operations` and the test `differential` share it.

mod acts;
mod item;
mod open;
mod ops;
mod order;
mod rules;
mod transactions;
mod waits;
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
