//! A pool of tasks.

use crate::queue::Core;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a stop waits until items are given back.
const RELEASE: Duration = Duration::from_secs(5);

/// Counts of runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) panicked: AtomicU64,
}

/// The totals of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs whose transaction was committed.
    pub done: u64,
    /// Runs that returned an error, or whose commit failed.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
    /// Tasks that were still running at the deadline of [`Tasks::shutdown`].
    pub stuck: usize,
}

/// Tasks that wait for the items of a queue, run a function on each, and commit if it succeeds; from
/// [`run_async`](crate::WorkersBuilder::run_async).
///
/// Dropping the pool aborts the tasks: their items are given back.
#[must_use = "tasks are aborted when they are dropped"]
pub struct Tasks {
    spawned: JoinSet<()>,
    stop: watch::Sender<bool>,
    counts: Arc<Counts>,
    queue: Arc<Core>,
}

impl Tasks {
    pub(super) fn new(
        spawned: JoinSet<()>,
        stop: watch::Sender<bool>,
        counts: Arc<Counts>,
        queue: Arc<Core>,
    ) -> Self {
        Self {
            spawned,
            stop,
            counts,
            queue,
        }
    }

    /// Returns the totals so far.
    pub fn report(&self) -> Report {
        // ORDERING: Relaxed; counts.
        Report {
            done: self.counts.done.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            panicked: self.counts.panicked.load(Ordering::Relaxed),
            stuck: 0,
        }
    }

    /// Stops all tasks, and waits until they have finished their runs. Ready items stay in the queue, and those that are
    /// [prefetched](crate::Builder::prefetch) return to it.
    pub async fn stop(mut self) -> Report {
        self.stop.send_replace(true);
        self.all_ended().await;
        let _ = timeout(RELEASE, self.queue.release_prefetched()).await; // or in the background
        self.report()
    }

    /// Stops all tasks, waits for them for at most `limit`, and then aborts those that are still running at their next `.await`.
    /// Their items are given back.
    pub async fn shutdown(mut self, limit: Duration) -> Report {
        self.stop.send_replace(true);
        let in_time = timeout(limit, self.all_ended()).await.is_ok();
        let stuck = if in_time { 0 } else { self.spawned.len() };
        self.spawned.abort_all();
        self.all_ended().await;
        Report {
            stuck,
            ..self.report()
        }
    }

    async fn all_ended(&mut self) {
        while self.spawned.join_next().await.is_some() {}
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.spawned.abort_all();
        self.queue.give_back_prefetched();
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("report", &self.report())
            .finish()
    }
}
