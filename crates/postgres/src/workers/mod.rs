//! Worker pools: tasks that wait for items, run a function on each, and commit or abort.

mod builder;
mod caught;
mod task;
mod tasks;

pub use builder::{Failure, WorkersBuilder};
pub(crate) use caught::text_of_panic;
pub use task::{RunGuard, RunTransaction};
pub use tasks::{Report, Tasks};
