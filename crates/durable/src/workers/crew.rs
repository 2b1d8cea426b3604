//! What the workers of a pool share.

use crate::error::StoreError;
use crate::order::Order;
use crate::transaction;
use crate::Transaction;
use parking_lot::{Condvar, Mutex};
use requeue::{Backoff, Reason};
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// What one worker of a pool does, from [`Workers::status`](crate::Workers::status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// The name of the pool and the index of the worker.
    pub name: Arc<str>,
    /// Whether it runs; otherwise it waits for an item, or has ended.
    pub busy: bool,
    /// Runs that were committed.
    pub done: u64,
    /// Runs that returned an error, or could not be committed.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
}

/// The totals of a pool, from [`Workers::join`](crate::Workers::join) and [`stop`](crate::Workers::stop).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs that were committed.
    pub done: u64,
    /// Runs that returned an error, or could not be committed.
    pub failed: u64,
    /// Runs that panicked.
    pub panicked: u64,
}

/// A run that failed, for [`WorkersBuilder::on_error`](crate::WorkersBuilder::on_error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// The number of items that were given back.
    pub items: usize,
    /// How often one of them was delivered at most.
    pub attempts: u32,
    /// The `Debug` output of the error, or the message of the panic.
    pub error: String,
    /// Whether the run panicked.
    pub panicked: bool,
}

pub(super) type Hook = Arc<dyn Fn(&Failure) + Send + Sync>;

/// The workers of a pool.
pub(super) struct Crew {
    workers: Vec<Worker>,
    on_error: Option<Hook>,
    backoff: Backoff,
    stopping: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    running: usize,
    error: Option<StoreError>,
}

struct Worker {
    name: Arc<str>,
    busy: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
    /// Wakes it when it waits for an item.
    waker: Mutex<Option<Waker>>,
}

impl Crew {
    pub(super) fn new(name: &str, count: usize, on_error: Option<Hook>, backoff: Backoff) -> Self {
        let worker = |index| Worker {
            name: format!("{name}-{index}").into(),
            busy: AtomicBool::new(false),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            waker: Mutex::new(None),
        };
        Self {
            workers: (0..count).map(worker).collect(),
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

    /// Waits until all workers have ended.
    pub(super) fn wait(&self) -> Result<Report, StoreError> {
        let mut state = self.state.lock();
        while state.running > 0 {
            self.ended.wait(&mut state);
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let mut report = Report::default();
        for worker in self.status() {
            report.done += worker.done;
            report.failed += worker.failed;
            report.panicked += worker.panicked;
        }
        Ok(report)
    }

    pub(super) fn status(&self) -> Vec<WorkerStatus> {
        // Relaxed: counts, which publish nothing.
        let status = |worker: &Worker| WorkerStatus {
            name: Arc::clone(&worker.name),
            busy: worker.busy.load(Ordering::Relaxed),
            done: worker.done.load(Ordering::Relaxed),
            failed: worker.failed.load(Ordering::Relaxed),
            panicked: worker.panicked.load(Ordering::Relaxed),
        };
        self.workers.iter().map(status).collect()
    }

    fn fail(&self, error: StoreError) {
        self.state.lock().error.get_or_insert(error);
        self.stop();
    }
}

/// The life of one worker.
pub(super) struct Shift {
    crew: Arc<Crew>,
    index: usize,
}

/// Whether the worker goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Goes,
    Ends,
}

/// How a run ended.
pub(super) type Ran<E> = thread::Result<Result<(), E>>;

impl Shift {
    pub(super) fn all(crew: &Arc<Crew>) -> Vec<Self> {
        let shift = |index| Self {
            crew: Arc::clone(crew),
            index,
        };
        (0..crew.workers.len()).map(shift).collect()
    }

    fn worker(&self) -> &Worker {
        &self.crew.workers[self.index]
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.worker().name)
    }

    /// Waits for the future; `None` if the worker is stopped.
    pub(super) async fn wait<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            *self.worker().waker.lock() = Some(context.waker().clone());
            if self.crew.stopping.load(Ordering::Acquire) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    pub(super) fn begin_run(&self) {
        self.worker().busy.store(true, Ordering::Relaxed);
    }

    /// Judges a run. `Ok`: its transaction is to be committed. Otherwise it was aborted.
    pub(super) fn judge<'h, T: Send + 'static, O: Order<T>, E: Debug>(
        &self,
        mut tx: Transaction<'h, T, O>,
        ran: Ran<E>,
    ) -> Option<(Transaction<'h, T, O>, Deliveries)> {
        let deliveries = Deliveries::of(&mut tx);
        let (reason, error) = match ran {
            Ok(Ok(())) => {
                // An abort from here on is a failed commit.
                self.blame(&mut tx, Reason::Aborted, "the commit failed");
                return Some((tx, deliveries));
            }
            Ok(Err(error)) => (Reason::Aborted, text_of(error)),
            Err(payload) => (Reason::Panicked, text_of_panic(&*payload)),
        };
        self.blame(&mut tx, reason, error.clone());
        quietly(|| drop(tx));
        self.count_failure(deliveries, error, reason == Reason::Panicked);
        None
    }

    fn blame<T: Send + 'static, O: Order<T>>(
        &self,
        tx: &mut Transaction<'_, T, O>,
        reason: Reason,
        error: impl Into<Cow<'static, str>>,
    ) {
        tx.core_mut().local.failure = Some(transaction::Failure {
            reason,
            error: error.into(),
            backoff: self.crew.backoff,
        });
    }

    /// Counts a run whose transaction has ended.
    pub(super) fn count(&self, committed: Result<(), StoreError>, deliveries: Deliveries) -> Next {
        match committed {
            Ok(()) => {
                self.worker().busy.store(false, Ordering::Relaxed);
                self.worker().done.fetch_add(1, Ordering::Relaxed);
                Next::Goes
            }
            Err(error) => {
                self.count_failure(deliveries, error.to_string(), false);
                let is_poisoned = matches!(error, StoreError::Poisoned(_));
                if is_poisoned {
                    self.crew.fail(error);
                    return Next::Ends;
                }
                Next::Goes
            }
        }
    }

    /// An item that could not be read.
    pub(super) fn unread<T: Send + 'static, O: Order<T>>(
        &self,
        tx: Transaction<'_, T, O>,
        error: StoreError,
    ) -> Next {
        let ran: Ran<String> = Ok(Err(error.to_string()));
        drop(self.judge(tx, ran));
        if matches!(error, StoreError::Poisoned(_)) {
            self.crew.fail(error);
            return Next::Ends;
        }
        Next::Goes
    }

    pub(super) fn count_failure(&self, deliveries: Deliveries, error: String, panicked: bool) {
        let worker = self.worker();
        worker.busy.store(false, Ordering::Relaxed);
        let count = if panicked {
            &worker.panicked
        } else {
            &worker.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(hook) = &self.crew.on_error {
            let failure = Failure {
                worker: self.name(),
                items: deliveries.items,
                attempts: deliveries.attempts,
                error,
                panicked,
            };
            quietly(|| hook(&failure));
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.crew.state.lock().running -= 1;
        self.crew.ended.notify_all();
    }
}

/// What a run held.
#[derive(Clone, Copy, Default)]
pub(super) struct Deliveries {
    items: usize,
    attempts: u32,
}

impl Deliveries {
    fn of<T: Send + 'static, O: Order<T>>(tx: &mut Transaction<'_, T, O>) -> Self {
        let items = tx.core_mut().ram.items();
        items.fold(Self::default(), |deliveries, item| Self {
            items: deliveries.items + 1,
            attempts: deliveries.attempts.max(item.attempts()),
        })
    }
}

/// Runs code of users whose panics are ignored.
pub(super) fn quietly(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// The text of an error.
pub(super) fn text_of(error: impl Debug) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| format!("{error:?}")));
    quietly(|| drop(error));
    text.unwrap_or_else(|_| "an error whose `Debug` panics".to_owned())
}

fn text_of_panic(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

/// Wakes a thread that waits for a future.
#[derive(Default)]
struct Signal {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.woken.lock() = true;
        self.wake.notify_one();
    }
}

/// Blocks the thread until the future is ready.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let mut woken = signal.woken.lock();
        while !*woken {
            signal.wake.wait(&mut woken);
        }
        *woken = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_poisoned_store_ends_all_workers() {
        let backoff = Backoff::fixed(Duration::ZERO);
        let crew = Arc::new(Crew::new("worker", 2, None, backoff));
        let mut shifts = Shift::all(&crew);
        let (first, second) = (shifts.remove(0), shifts.remove(0));
        let waiting = thread::spawn(move || block_on(second.wait(std::future::pending::<()>())));
        let full = first.count(Err(StoreError::DiskFull), Deliveries::default());
        assert!(full == Next::Goes);
        let poisoned = Err(StoreError::Poisoned("no such device".into()));
        assert!(first.count(poisoned, Deliveries::default()) == Next::Ends);
        assert_eq!(waiting.join().unwrap(), None);
        drop(first);
        assert!(matches!(crew.wait(), Err(StoreError::Poisoned(_))));
        assert_eq!(crew.status()[0].failed, 2);
    }
}
