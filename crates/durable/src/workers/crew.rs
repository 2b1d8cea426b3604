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

/// How long a stopped pool sleeps before it looks at its workers again.
const MOMENT: Duration = Duration::from_millis(1);

/// What a pool does with its queue as a whole.
pub(super) trait Pooled: Send + Sync {
    fn close(&self) -> Result<(), StoreError>;
    /// The number of items that are ready, delayed or held.
    fn left(&self) -> u64;
}

impl<T: Send + 'static, O: Order<T>> Pooled for DurableQueue<T, O> {
    fn close(&self) -> Result<(), StoreError> {
        Self::close(self).map(drop)
    }

    fn left(&self) -> u64 {
        let stats = self.stats();
        stats.ready + stats.delayed + stats.held
    }
}

/// The workers of a pool.
pub(super) struct Crew {
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
    pub(super) failed: AtomicU64,
    pub(super) panicked: AtomicU64,
    /// Written under the lock of the crew's state.
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
            failed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
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
            failed: self.failed.load(Ordering::Relaxed),
            panicked: self.panicked.load(Ordering::Relaxed),
        }
    }
}

impl Crew {
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

    /// Waits until each worker runs or has ended, after a stop. So a worker that only waited for an item is not taken for a
    /// stuck one.
    pub(super) fn wait_for_idle(&self) {
        // Relaxed: it publishes nothing.
        let is_idle = |worker: &Worker| !worker.has_ended() && !worker.busy.load(Ordering::Relaxed);
        let mut state = self.state.lock();
        while self.workers.iter().any(is_idle) {
            // The end of a worker is notified, the begin of a run is not.
            self.ended.wait_for(&mut state, MOMENT);
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::default();
        for worker in &self.workers {
            let status = worker.status();
            report.done += status.done;
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
