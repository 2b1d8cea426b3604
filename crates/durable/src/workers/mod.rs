//! Worker pools: what those of `requeue` lack.

mod jobs;
mod others;

pub use jobs::Jobs;

use crate::{DurableQueue, Fifo, OwnedTransaction};

/// The settings of a pool of workers, from [`Workers::builder`](requeue::Workers::builder).
pub type WorkersBuilder<T, O = Fifo> = requeue::workers::PoolBuilder<DurableQueue<T, O>>;

/// The item of a run by a task.
pub type RunItem<T, O = Fifo> = requeue::workers::KeptItem<OwnedTransaction<T, O>>;

/// The transaction of a run by a task.
pub type RunTransaction<T, O = Fifo> = requeue::workers::KeptTransaction<OwnedTransaction<T, O>>;
