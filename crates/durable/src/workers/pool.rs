//! The workers of a pool, and the wait for their end.

use super::failure::Hook;
use super::{Report, WorkerStatus};
use crate::error::StoreError;
use crate::order::Order;
use crate::DurableQueue;
use parking_lot::{Condvar, Mutex};
use requeue::Backoff;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The pause between two checks whether stopped workers are idle.
const IDLE_CHECK_PAUSE: Duration = Duration::from_millis(1);

/// How often they are checked. One that is idle for longer is a task that is not polled, or waits for the disk.
const MAX_IDLE_CHECKS: usize = 1_000;

/// How long a `join` of a debug build waits until it reports for what.
pub(super) const JOIN_REPORT_DELAY: Duration = Duration::from_secs(1);

/// What a pool does with its queue as a whole.
pub(super) trait Pooled: Send + Sync {
    fn close(&self) -> Result<(), StoreError>;
    fn is_closed(&self) -> bool;
    /// The number of items that are ready, delayed or held.
    fn left(&self) -> u64;
}

impl<T: Send + 'static, O: Order<T>> Pooled for DurableQueue<T, O> {
    fn close(&self) -> Result<(), StoreError> {
        Self::close(self).map(drop)
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }

    fn left(&self) -> u64 {
        let stats = self.stats();
        stats.ready + stats.delayed + stats.held
    }
}

/// The workers of a pool.
pub(super) struct WorkerPool {
    pub(super) workers: Vec<Worker>,
    pub(super) on_error: Option<Hook>,
    pub(super) backoff: Backoff,
    stopping: AtomicBool,
    state: Mutex<State>,
    /// A worker has ended.
    ended: Condvar,
}

struct State {
    running: usize,
    error: Option<StoreError>,
}

pub(super) struct Worker {
    pub(super) name: Arc<str>,
    pub(super) busy: AtomicBool,
    pub(super) done: AtomicU64,
    pub(super) given_up: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) panicked: AtomicU64,
    /// Written under the lock of the pool's state.
    ended: AtomicBool,
    /// Wakes it when it waits for an item.
    waker: Mutex<Option<Waker>>,
}

impl Worker {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            busy: AtomicBool::new(false),
            done: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn is_idle(&self) -> bool {
        // Relaxed: it publishes nothing.
        !self.has_ended() && !self.busy.load(Ordering::Relaxed)
    }

    /// Replaces the waker that a stop calls. Wakers are code of users, so they are dropped outside of the lock.
    pub(super) fn leave_waker(&self, waker: Waker) {
        let unused = self.waker.lock().replace(waker);
        drop(unused);
    }

    fn status(&self) -> WorkerStatus {
        // Relaxed: counts, which publish nothing.
        WorkerStatus {
            name: Arc::clone(&self.name),
            busy: self.busy.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            given_up: self.given_up.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            panicked: self.panicked.load(Ordering::Relaxed),
        }
    }
}

impl WorkerPool {
    pub(super) fn new(name: &str, count: usize, on_error: Option<Hook>, backoff: Backoff) -> Self {
        let name = |index| format!("{name}-{index}").into();
        Self {
            workers: (0..count).map(name).map(Worker::new).collect(),
            on_error,
            backoff,
            stopping: AtomicBool::new(false),
            state: Mutex::new(State {
                running: count,
                error: None,
            }),
            ended: Condvar::new(),
        }
    }

    pub(super) fn stop(&self) {
        // Release, with the lock of the waker: a worker that waits either sees it or is woken.
        self.stopping.store(true, Ordering::Release);
        for worker in &self.workers {
            let waker = worker.waker.lock().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Stops all workers because of an error, which [`wait`](Self::wait) returns.
    pub(super) fn fail(&self, error: StoreError) {
        self.state.lock().error.get_or_insert(error);
        self.stop();
    }

    /// A worker has ended.
    pub(super) fn end(&self, worker: &Worker) {
        let mut state = self.state.lock();
        // Release: what it did was before its end.
        worker.ended.store(true, Ordering::Release);
        state.running -= 1;
        self.ended.notify_all();
    }

    /// Waits until all workers have ended, or the timeout elapses.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Report, StoreError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state.lock();
        while state.running > 0 {
            match deadline {
                None => self.ended.wait(&mut state),
                Some(deadline) if self.ended.wait_until(&mut state, deadline).timed_out() => break,
                Some(_) => {}
            }
        }
        match &state.error {
            Some(error) => Err(error.clone()),
            None => Ok(self.report()),
        }
    }

    /// Waits until each worker runs or has ended, after a stop, but not for long. So a worker that only waited for an item is not
    /// taken for a stuck one.
    pub(super) fn wait_for_idle(&self) {
        let mut state = self.state.lock();
        for _ in 0..MAX_IDLE_CHECKS {
            if !self.workers.iter().any(Worker::is_idle) {
                return;
            }
            // The end of a worker is notified, the begin of a run is not.
            self.ended.wait_for(&mut state, IDLE_CHECK_PAUSE);
        }
    }

    /// What a `join` waits for that might not come, if all workers have waited for a while.
    pub(super) fn what_a_join_waits_for(
        &self,
        queue: &dyn Pooled,
        delay: Duration,
    ) -> Option<String> {
        loop {
            let report = self.wait(delay).ok()?;
            let first = report.stuck.first()?;
            if queue.is_closed() || !self.workers.iter().all(Worker::is_idle) {
                continue;
            }
            return Some(format!(
                "`join` waits for {} idle workers, the first of which is `{}`: they end when their queue is closed, and \
                 nobody has called `close`",
                report.stuck.len(),
                first.name
            ));
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::default();
        for worker in &self.workers {
            let status = worker.status();
            report.done += status.done;
            report.given_up += status.given_up;
            report.failed += status.failed;
            report.panicked += status.panicked;
            if !worker.has_ended() {
                report.stuck.push(status);
            }
        }
        report
    }

    pub(super) fn status(&self) -> Vec<WorkerStatus> {
        self.workers.iter().map(Worker::status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_reports_an_open_queue_whose_workers_are_idle() {
        let files = tempfile::tempdir().unwrap();
        let store = crate::Store::open(files.path()).unwrap();
        let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
        let pool = WorkerPool::new("sum", 2, None, Backoff::fixed(Duration::ZERO));
        let report = || pool.what_a_join_waits_for(&queue, Duration::ZERO);
        let waits = "`join` waits for 2 idle workers, the first of which is `sum-0`";
        assert!(report().unwrap().starts_with(waits));
        for worker in &pool.workers {
            pool.end(worker);
        }
        assert_eq!(report(), None);
    }
}
