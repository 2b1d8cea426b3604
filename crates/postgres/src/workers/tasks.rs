//! A pool of tasks.

use crate::error::Error;
use crate::queue::Core;
use requeue::Backoff;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a stop waits until items are given back.
const RELEASE: Duration = Duration::from_secs(5);
/// How long a stopped pool sleeps before it looks at its tasks again.
const MOMENT: Duration = Duration::from_millis(1);
/// How long a finish sleeps before it counts what is left again: counting costs as much as the queue is long.
const PAUSES: Backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// Counts what is left in the queue of a pool.
pub(super) type CountLeft =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> + Send + Sync>;

/// Counts of runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) panicked: AtomicU64,
    /// Tasks that are in a run.
    pub(super) busy: AtomicUsize,
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
    /// Tasks that were still running at the deadline of [`Tasks::shutdown`] or [`Tasks::finish`].
    pub stuck: usize,
    /// Items that were left in the queue: ready, delayed, or held by anybody. Only [`Tasks::finish`] counts them; `None` also
    /// if the database could not be reached.
    pub left: Option<u64>,
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
    count_left: CountLeft,
}

impl Tasks {
    pub(super) fn new(
        spawned: JoinSet<()>,
        stop: watch::Sender<bool>,
        counts: Arc<Counts>,
        queue: Arc<Core>,
        count_left: CountLeft,
    ) -> Self {
        Self {
            spawned,
            stop,
            counts,
            queue,
            count_left,
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
            left: None,
        }
    }

    /// Works until nothing is left in the queue, for at most `limit`, and stops all tasks.
    ///
    /// What is left are the items that are ready, delayed or held, by other processes too: [`Report::left`] counts them at the
    /// end, and a part of the work was not done if that is not `Some(0)`. A queue in a database is not closed, since other
    /// processes may use it: stop your producers before. Tasks that are in a run at the deadline are aborted at their next
    /// `.await`, as by [`shutdown`](Self::shutdown).
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let jobs: PgQueue<u32> = db.queue("jobs");
    /// let workers = jobs.workers().run_async(|_job, _tx| async { Ok::<(), ()>(()) });
    /// jobs.push_batch(0..100).await?;
    /// assert_eq!(workers.finish(Duration::from_secs(30)).await.left, Some(0));
    /// # Ok(()) }
    /// ```
    pub async fn finish(mut self, limit: Duration) -> Report {
        let _ = timeout(limit, self.nothing_left()).await;
        self.stop.send_replace(true);
        // A task that only waited for an item ends now, and is not stuck. ORDERING: Relaxed; a count.
        while self.spawned.len() > self.counts.busy.load(Ordering::Relaxed) {
            // The end of a task is noticed, the begin of a run is not.
            let _ = timeout(MOMENT, self.spawned.join_next()).await;
        }
        let report = self.abort().await;
        let _ = timeout(RELEASE, self.queue.release_prefetched()).await; // or in the background
        let left = (self.count_left)().await.ok();
        Report { left, ..report }
    }

    /// Waits until the queue is idle. After an error of the database it asks again.
    async fn nothing_left(&self) {
        let mut asked = 0;
        while !matches!((self.count_left)().await, Ok(0)) {
            asked += 1;
            sleep(PAUSES.delay(asked)).await;
        }
    }

    /// Stops all tasks, and waits until they have finished their runs. Ready items stay in the queue: see
    /// [`finish`](Self::finish). Those that are
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
        let _ = timeout(limit, self.all_ended()).await;
        self.abort().await
    }

    /// Aborts the tasks that are left.
    async fn abort(&mut self) -> Report {
        let stuck = self.spawned.len();
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
