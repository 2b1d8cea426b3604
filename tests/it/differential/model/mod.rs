//! A sequential model of a few queues, and the operations that are run on both.
//!
//! The fuzz targets and the test `differential` share it. The items of a plain queue may be dequeued in many orders;
//! the model checks the properties that these have in common. The order of fair and priority queues is checked
//! exactly.

mod acts;
#[allow(dead_code)] // each fuzz target runs cases of one kind
mod cases;
mod counts;
mod disciplines;
mod ends;
mod failures;
mod item;
mod keys;
mod line;
mod looks;
mod open;
mod ops;
mod order;
mod priorities;
mod queues;
mod retries;
mod rounds;
mod rules;
mod settings;
mod shapes;
mod sorted;
mod stock;
mod transactions;
mod verbs;
mod waits;
mod wishes;
mod work;
mod world;

#[allow(unused_imports)] // as above
pub(crate) use cases::{ByPriority, Fair, Plain};

pub(crate) use ops::Case;
use queues::{Kept, Lent};
use world::World;

/// Runs a case and panics if the queues and the model disagree.
pub(crate) fn run(case: &Case) {
    if case.leases {
        World::<0, Lent>::new(case).run(case);
    } else if case.large {
        World::<4096, Kept>::new(case).run(case);
    } else {
        World::<0, Kept>::new(case).run(case);
    }
}
