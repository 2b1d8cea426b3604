//! The status of workers, and the report of a pool.

use std::sync::Arc;

/// What one worker of a pool does, from [`Workers::status`](crate::Workers::status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// The name of the pool and the index of the worker.
    pub name: Arc<str>,
    /// Whether it runs; otherwise it waits for an item, or has ended.
    pub busy: bool,
    /// Runs that were committed with all of their items.
    pub done: u64,
    /// Runs that were committed, but [retried](crate::Transaction::retry) or [failed](crate::Transaction::fail) at least
    /// one item themselves.
    pub given_up: u64,
    /// Runs that returned an error, or could not be committed.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
}

/// The totals of a pool, from [`Workers::join`](crate::Workers::join) and [`stop`](crate::Workers::stop).
///
/// Each run that has ended counts once: as done, given up, failed or panicked. A run of several items is one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs that were committed with all of their items.
    pub done: u64,
    /// Runs that were committed, but [retried](crate::Transaction::retry) or [failed](crate::Transaction::fail) at least
    /// one item themselves.
    pub given_up: u64,
    /// Runs that returned an error, or could not be committed.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
    /// Workers that were still running when the timeout of [`shutdown`](crate::Workers::shutdown) or
    /// [`finish`](crate::Workers::finish) had elapsed.
    pub stuck: Vec<WorkerStatus>,
    /// Items that were left in the queue: ready, delayed, or held by workers that are stuck and by others. So 0 if all
    /// accepted work is done.
    pub left: u64,
}
