//! The workers of a pool, and the wait for their end.

use super::failure::Hooks;
use super::pause::{for_at_most, sleep, BACKOFF};
use super::worker::{Command, Worker};
use super::{AnyQueue, Report, WorkerStatus};
use crate::sync::{lock, swallow_panic, Mutex};
use std::future::{poll_fn, Future};
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// The pause between two checks whether stopped workers are idle.
const IDLE_CHECK_PAUSE: Duration = Duration::from_millis(1);

/// How often stopped workers are checked. One that is idle for longer is blocked by user code outside of a run, such as a
/// clock, or is a task that is not polled.
const MAX_IDLE_CHECKS: usize = 1_000;

/// How long a `join` of a debug build waits until it reports for what.
const JOIN_REPORT_DELAY: Duration = Duration::from_secs(1);

/// The workers of a pool.
pub(super) struct WorkerPool {
    /// The workers' name, without their number.
    prefix: String,
    crew: Mutex<Crew>,
    pub(super) hooks: Hooks,
    /// The error of the queue that has ended the pool.
    error: Mutex<Option<Arc<str>>>,
    /// Woken when a worker has ended.
    waiter: Mutex<Option<Waker>>,
}

/// Who works for a pool. Nothing of a worker is called under its lock, except what only reads.
#[derive(Default)]
struct Crew {
    /// By index.
    workers: Vec<Arc<Worker>>,
    /// Those that end after their present run, since the pool has become smaller.
    leaving: Vec<Arc<Worker>>,
    /// The runs of those that have left.
    left: Report,
    /// Whether the pool has been stopped: then a new worker is, too.
    stopped: bool,
    /// Whether the size is 0: the only worker is paused.
    rests: bool,
}

impl Crew {
    /// All workers that may be running.
    fn all(&self) -> impl Iterator<Item = &Arc<Worker>> {
        self.workers.iter().chain(&self.leaving)
    }

    /// Forgets those that have left, except for their runs.
    fn forget_left(&mut self) {
        let Self { leaving, left, .. } = self;
        leaving.retain(|worker| {
            let ended = worker.has_ended();
            if ended {
                left.add(&worker.status(&|_| unreachable!("it has ended")));
            }
            !ended
        });
    }
}

impl WorkerPool {
    pub(super) fn new(prefix: String, hooks: Hooks) -> Arc<Self> {
        Arc::new(Self {
            prefix,
            crew: Mutex::default(),
            hooks,
            error: Mutex::default(),
            waiter: Mutex::default(),
        })
    }

    /// The number of workers.
    pub(super) fn size(&self) -> usize {
        let crew = lock(&self.crew);
        crew.workers.len() - usize::from(crew.rests)
    }

    /// Makes it a pool of so many workers, and returns those that are to be started. The others go on with their runs. One
    /// worker always stays, so that what it runs does.
    ///
    /// A stop that is concurrent sees a new worker, or is seen by it.
    pub(super) fn resize(&self, size: usize) -> Vec<Arc<Worker>> {
        let mut crew = lock(&self.crew);
        crew.forget_left();
        let count = crew.workers.len();
        let leaving = crew.workers.split_off(count.min(size.max(1)));
        crew.leaving.extend_from_slice(&leaving);
        for index in count..size {
            let worker = Worker::new(format!("{}-{index}", self.prefix).into());
            if crew.stopped {
                worker.command(Command::Stop); // it has no waker yet
            }
            crew.workers.push(Arc::new(worker));
        }
        let fresh = crew.workers.get(count..).unwrap_or_default().to_vec();
        let rested = mem::replace(&mut crew.rests, size == 0);
        let first = crew.workers.first().cloned();
        drop(crew);
        for worker in leaving {
            worker.command(Command::Stop);
        }
        if rested != (size == 0) {
            let command = [Command::Pause, Command::Work][usize::from(rested)];
            if let Some(first) = first {
                first.command(command);
            }
        }
        fresh
    }

    fn all(&self) -> Vec<Arc<Worker>> {
        lock(&self.crew).all().cloned().collect()
    }

    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub(super) fn worker(&self, index: usize) -> Arc<Worker> {
        let crew = lock(&self.crew);
        let Some(worker) = crew.workers.get(index).cloned() else {
            let (count, last) = (crew.workers.len(), crew.workers.len() - 1);
            drop(crew);
            panic!("no worker {index}: the pool has {count}, numbered 0 to {last}");
        };
        worker
    }

    pub(super) fn command_all(&self, command: Command) {
        let mut crew = lock(&self.crew);
        crew.stopped |= command == Command::Stop;
        let workers: Vec<_> = crew.all().cloned().collect();
        drop(crew);
        for worker in workers {
            worker.command(command);
        }
    }

    /// Of all workers, then of those that are leaving.
    pub(super) fn status(&self, queue: &AnyQueue<'_>) -> Vec<WorkerStatus> {
        let mut crew = lock(&self.crew);
        crew.forget_left();
        let workers: Vec<_> = crew.all().cloned().collect();
        drop(crew);
        let instant = |since| queue.0.instant(since);
        workers.iter().map(|it| it.status(&instant)).collect()
    }

    /// The report of a pool that has ended, with what is left in the queue.
    pub(super) async fn report(&self, queue: &AnyQueue<'_>) -> Report {
        queue.0.pool_ended().await;
        let left = queue.0.left().await;
        let status = self.status(queue);
        let mut report = Report::of(lock(&self.crew).left.clone(), status);
        let fatal = lock(&self.error).clone();
        match left {
            Ok(left) => (report.left, report.error) = (left, fatal),
            Err(error) => report.error = fatal.or(Some(error)),
        }
        report
    }

    /// Stops all workers because of an error of the queue.
    pub(super) fn end_by(&self, error: &Arc<str>) {
        lock(&self.error).get_or_insert_with(|| Arc::clone(error));
        self.command_all(Command::Stop);
    }

    /// Marks a worker as ended.
    pub(super) fn end(&self, worker: &Worker) {
        worker.end();
        let waiter = lock(&self.waiter).take();
        swallow_panic(|| waiter.into_iter().for_each(Waker::wake));
    }

    /// Waits until all workers have ended. One that ends is seen, or wakes the waiter, which was there before.
    pub(super) fn all_ended(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            let last = lock(&self.waiter).replace(context.waker().clone());
            drop(last);
            if lock(&self.crew).all().all(|worker| worker.has_ended()) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
    }

    /// Waits until all workers have ended. Reports once, if asked to, when they wait for the close of the queue: all
    /// workers of an open queue are idle.
    pub(super) async fn join(&self, queue: &AnyQueue<'_>, may_report: bool) {
        let may_report = cfg!(debug_assertions) && may_report;
        while may_report
            && for_at_most(JOIN_REPORT_DELAY, self.all_ended())
                .await
                .is_none()
        {
            if !queue.0.is_closed() && self.all().iter().all(|worker| worker.is_idle()) {
                self.report_wait();
                break;
            }
        }
        self.all_ended().await;
    }

    /// By an event of `tracing` if that feature is enabled, otherwise on the standard error.
    fn report_wait(&self) {
        let workers = self.all();
        let (count, first) = (workers.len(), workers[0].name());
        let what = format!(
            "`join` waits for {count} idle workers, the first of which is `{first}`: they end when their queue is \
             closed, and nobody has called `close`"
        );
        swallow_panic(|| {
            #[cfg(feature = "tracing")]
            tracing::warn!(target: "requeue", "{what}");
            #[cfg(not(feature = "tracing"))]
            eprintln!("requeue: {what}");
        });
    }

    /// Closes the queue and waits until nothing is left in it and all workers have ended, for at most `limit`; then stops the
    /// workers, and waits until each runs or has ended, but not for long. So a worker that only waited for an item is not taken for a
    /// stuck one.
    pub(super) async fn finish(&self, queue: &AnyQueue<'_>, limit: Duration) {
        let closed = queue.0.close().await;
        // After the close: a worker that is not paused notices it.
        self.command_all(Command::Work);
        match closed {
            Ok(true) => _ = for_at_most(limit, self.all_ended()).await,
            Ok(false) => {
                // When nothing is left, the last commits may not have been answered.
                let ended = async {
                    nothing_left(queue).await;
                    self.command_all(Command::Stop);
                    self.all_ended().await;
                };
                let _ = for_at_most(limit, ended).await;
            }
            Err(error) => self.end_by(&error),
        }
        self.command_all(Command::Stop);
        let is_idle = |worker: &Arc<Worker>| worker.is_idle();
        for _ in 0..MAX_IDLE_CHECKS {
            if !self.all().iter().any(is_idle) {
                break;
            }
            // The end of a worker is noticed; the begin of a run is not, to keep that cheap.
            for_at_most(IDLE_CHECK_PAUSE, self.all_ended()).await;
        }
    }
}

/// Waits until nothing is left in the queue, by asking from time to time.
async fn nothing_left(queue: &AnyQueue<'_>) {
    let mut asked = 0;
    while !matches!(queue.0.left().await, Ok(0)) {
        asked += 1;
        sleep(BACKOFF.delay(asked)).await;
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::{Command, Hooks, WorkerPool};
    use crate::sync::model::model;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn a_stop_reaches_workers_that_join_and_leave_meanwhile() {
        for size in [0, 1, 3] {
            model(move || {
                let pool = WorkerPool::new("worker".into(), Hooks::default());
                let mut workers = pool.resize(2);
                let stop = thread::spawn({
                    let pool = Arc::clone(&pool);
                    move || pool.command_all(Command::Stop)
                });
                workers.extend(pool.resize(size));
                stop.join().unwrap();
                workers.extend(pool.resize(4));
                assert!(workers.len() >= 4);
                for worker in workers {
                    worker.command(Command::Work); // which ends a pause alone
                    assert!(worker.is_interrupted());
                }
            });
        }
    }
}
