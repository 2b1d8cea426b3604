//! The loop of a worker thread, and its steps for one transaction.

use super::failure::{Payload, Trouble};
use super::others::sealed;
use super::pool::WorkerGuard;
use super::step::{give_back, give_back_after_panic, RunStep};
use super::worker::{Ran, Worker};
use super::Job;
use crate::future::{PopAsync, PopBatchAsync};
use crate::item::Items;
use crate::order::Order;
use crate::policy::telemetry::RunSpan;
use crate::sync::swallow_panic;
use crate::wait::{block, spin, Deadline};
use crate::{Expired, Handle, Item, PopError, Transaction};
use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// Works until it is stopped, or the queue is closed and drained.
pub(super) fn work<T, O: Order<T>>(
    guard: &WorkerGuard,
    mut handle: Handle<T, O>,
    mut step: impl FnMut(Transaction<'_, T, O>, &Worker) -> RunStep,
) {
    let worker = guard.worker();
    while worker.goes_on() {
        // Panics of runs are caught one by one: see `OpenRun`.
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            keep_running(&mut handle, worker, &mut step)
        }));
        if !settle(guard, stepped) {
            return;
        }
    }
}

/// Runs until a run fails, the worker is interrupted, or the queue is closed and drained.
fn keep_running<T, O: Order<T>>(
    handle: &mut Handle<T, O>,
    worker: &Worker,
    step: &mut impl FnMut(Transaction<'_, T, O>, &Worker) -> RunStep,
) -> RunStep {
    while !worker.is_interrupted() {
        match step(handle.begin(), worker) {
            RunStep::Ran(ran) => worker.end_run(ran),
            other => return other,
        }
    }
    RunStep::Interrupted
}

/// Records the outcome of a transaction. Returns whether the worker goes on.
pub(super) fn settle(guard: &WorkerGuard, stepped: thread::Result<RunStep>) -> bool {
    let worker = guard.worker();
    match stepped {
        Ok(RunStep::Ran(ran)) => worker.end_run(ran),
        Ok(RunStep::Failed(trouble)) => record_failure(guard, *trouble),
        Ok(RunStep::Interrupted) => {}
        Ok(RunStep::Closed) => return false,
        Err(payload) => record_failure(guard, Trouble::of_panic(worker, payload)),
    }
    true
}

#[cold]
fn record_failure(guard: &WorkerGuard, trouble: Trouble) {
    guard.worker().count(trouble.ran());
    guard.pool().report_failure(trouble);
    guard.worker().rest(); // after the hooks, which may block
}

/// One run, and its transaction. What panics while the transaction is open aborts it; what panics after that are
/// destructors, which do not change the outcome.
pub(super) struct OpenRun<'h, 'w, T, O: Order<T>> {
    /// `None` when the transaction has ended.
    tx: Option<Transaction<'h, T, O>>,
    worker: &'w Worker,
    /// How the run ended, if the transaction was committed.
    ran: Ran,
    /// The span of the run, from its beginning on.
    span: Cell<RunSpan>,
}

const OPEN: &str = "the run has not ended";

impl<'h, 'w, T, O: Order<T>> OpenRun<'h, 'w, T, O> {
    /// Does `work`, which ends the run or finds nothing to do.
    #[inline]
    pub(super) fn of(
        tx: Transaction<'h, T, O>,
        worker: &'w Worker,
        work: impl FnOnce(&mut Self) -> RunStep,
    ) -> RunStep {
        let (tx, ran) = (Some(tx), Ran::Done);
        let span = Cell::new(RunSpan::none());
        let mut run = Self {
            tx,
            worker,
            ran,
            span,
        };
        match catch_unwind(AssertUnwindSafe(|| work(&mut run))) {
            Ok(step) => step,
            Err(payload) => run.end_after_panic(payload),
        }
    }

    fn tx(&self) -> &Transaction<'h, T, O> {
        self.tx.as_ref().expect(OPEN)
    }

    /// Calls the function of the run, whose first item is at the given attempt, in the span of the run.
    #[inline]
    fn call<R>(&self, attempt: u32, call: impl FnOnce() -> R) -> R {
        let span = self.tx().run_span(self.worker.name(), attempt);
        self.span.set(span.clone());
        span.in_scope(call)
    }

    fn tx_mut(&mut self) -> &mut Transaction<'h, T, O> {
        self.tx.as_mut().expect(OPEN)
    }

    /// Commits or aborts, depending on the result of the run.
    #[inline]
    pub(super) fn end<R: Into<Ran>, E: Debug>(&mut self, ended: Result<R, E>) -> RunStep {
        match ended {
            Ok(ran) => self.commit(ran.into()),
            Err(error) => self.give_back(error),
        }
    }

    #[inline]
    fn commit(&mut self, ran: Ran) -> RunStep {
        let closed = self.tx_mut().close_leases();
        self.commit_by(ran, closed, |tx| drop(tx.try_commit()))
    }

    /// Commits if all lease tables could be closed, after which it cannot fail.
    #[inline]
    fn commit_by(
        &mut self,
        ran: Ran,
        closed: Result<(), Expired>,
        commit: impl FnOnce(Transaction<'h, T, O>),
    ) -> RunStep {
        if let Err(expired) = closed {
            return self.give_back(format_args!("{expired}"));
        }
        let mut tx = self.tx.take().expect(OPEN);
        if tx.has_given_up() {
            return self.commit_given_up(tx, ran, commit);
        }
        self.ran = ran;
        commit(tx);
        RunStep::Ran(ran)
    }

    /// Commits a run that has retried or failed items itself. A copy of the end of [`OpenRun::commit_by`], so that the
    /// outcome of all other runs is known where the worker counts it.
    #[cold]
    fn commit_given_up(
        &mut self,
        tx: Transaction<'h, T, O>,
        ran: Ran,
        commit: impl FnOnce(Transaction<'h, T, O>),
    ) -> RunStep {
        self.ran = if ran == Ran::Done { Ran::GivenUp } else { ran };
        commit(tx);
        RunStep::Ran(self.ran)
    }

    #[cold]
    fn give_back(&mut self, error: impl Debug) -> RunStep {
        let tx = self.tx.take().expect(OPEN);
        let span = self.span.replace(RunSpan::none());
        span.in_scope(|| give_back(tx, self.worker, error))
    }

    #[cold]
    fn end_after_panic(self, payload: Payload) -> RunStep {
        if let Some(tx) = self.tx {
            let span = self.span.replace(RunSpan::none());
            return span.in_scope(|| give_back_after_panic(tx, self.worker, payload));
        }
        swallow_panic(|| drop(payload));
        RunStep::Ran(self.ran)
    }
}

/// Takes an item, runs, and commits or aborts.
pub(super) fn each<T, O: Order<T>, E: Debug>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    call: impl for<'t> Fn(Item<'t, T>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) -> RunStep {
    OpenRun::of(tx, worker, |run| {
        let ended = match take(run.tx(), worker) {
            Ok(item) => run.call(item.attempts(), || call(item, run.tx())),
            Err(nothing) => return nothing,
        };
        run.end(ended)
    })
}

/// Like [`each`], with transactions of other queues that are committed together with that of the item.
pub(super) fn each_with<Q: sealed::Others, T, O: Order<T>, E: Debug>(
    tx: Transaction<'_, T, O>,
    handles: &mut Q::Handles,
    worker: &Worker,
    call: impl for<'t, 'h> Fn(
        Item<'t, T>,
        &'t Transaction<'t, T, O>,
        &'t Q::Transactions<'h>,
    ) -> Result<(), E>,
) -> RunStep {
    let mut others = None;
    let step = OpenRun::of(tx, worker, |run| {
        let item = match take(run.tx(), worker) {
            Ok(item) => item,
            Err(nothing) => return nothing,
        };
        let begun = others.insert(Q::begin(handles));
        let attempt = item.attempts();
        if let Err(error) = run.call(attempt, || call(item, run.tx(), begun)) {
            return run.give_back(error);
        }
        let closed = run.tx_mut().close_leases();
        let closed = closed.and_then(|()| Q::close_leases(begun));
        let ran = match closed {
            Ok(true) => Ran::GivenUp,
            _ => Ran::Done,
        };
        run.commit_by(ran, closed.map(drop), |tx| {
            let _ = others.take().map(|others| Q::commit_with(tx, others));
        })
    });
    swallow_panic(|| drop(others));
    step
}

/// The size of the batches of a pool, and how long a worker that holds an item waits for the others.
#[derive(Clone, Copy)]
pub(super) struct Batches {
    pub(super) max: usize,
    pub(super) linger: Duration,
}

/// Takes a batch of items, runs, and commits or aborts.
pub(super) fn batch<T, O: Order<T>, E: Debug>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    batches: Batches,
    call: impl for<'t> Fn(Vec<Item<'t, T>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) -> RunStep {
    OpenRun::of(tx, worker, |run| {
        let items = match take_batch(run.tx(), worker, batches) {
            Ok(items) => items,
            Err(nothing) => return nothing,
        };
        let attempt = items[0].attempts();
        let ended = run.call(attempt, || call(items, run.tx()));
        run.end(ended)
    })
}

/// Takes a job, runs it, and commits, even if it panicked.
pub(super) fn job<O: Order<Job>>(tx: Transaction<'_, Job, O>, worker: &Worker) -> RunStep {
    OpenRun::of(tx, worker, |run| {
        let ran = match take(run.tx(), worker) {
            Ok(mut job) => Ran::of_job(run.call(job.attempts(), || job.run())),
            Err(nothing) => return nothing,
        };
        run.commit(ran)
    })
}

/// Takes an item, waiting for one until the worker is interrupted, and begins a run.
#[inline]
fn take<'t, T, O: Order<T>>(
    tx: &'t Transaction<'_, T, O>,
    worker: &Worker,
) -> Result<Item<'t, T>, RunStep> {
    let popped = match tx.pop_watched() {
        Err(PopError::Empty) => wait(tx, worker).ok_or(RunStep::Interrupted)?,
        popped => popped,
    };
    let (item, since) = popped.map_err(|_| RunStep::Closed)?;
    worker.begin_run(since);
    Ok(item)
}

/// Takes the items of a batch, and begins a run. Waits for the first one until the worker is interrupted, and then for the
/// others as long as it lingers.
fn take_batch<'t, T, O: Order<T>>(
    tx: &'t Transaction<'_, T, O>,
    worker: &Worker,
    Batches { max, linger }: Batches,
) -> Result<Vec<Item<'t, T>>, RunStep> {
    if linger.is_zero() {
        let mut items = vec![take(tx, worker)?];
        items.extend(tx.pop_batch(max - 1));
        return Ok(items);
    }
    let mut pop = tx.pop_batch_lingering(max, linger);
    let popped = block(Deadline::NEVER, |wake_target| {
        poll_batch(&mut pop, worker, wake_target.waker)
    });
    worker.end_wait();
    let items = popped.flatten().ok_or(RunStep::Interrupted)?;
    if items.len() == 0 {
        return Err(RunStep::Closed);
    }
    worker.begin_run(tx.since());
    Ok(items.collect())
}

/// Waits for an item; `None` if the worker is interrupted.
#[cold]
fn wait<'t, T, O: Order<T>>(
    tx: &'t Transaction<'_, T, O>,
    worker: &Worker,
) -> Option<Result<(Item<'t, T>, u64), PopError>> {
    let attempt = |(): &mut ()| match tx.pop() {
        Err(PopError::Empty) => None,
        popped => Some(popped),
    };
    let popped = spin(&mut (), |()| !worker.is_interrupted(), attempt).or_else(|| {
        let mut pop = tx.pop_async();
        let popped = block(Deadline::NEVER, |wake_target| {
            poll_pop(&mut pop, worker, wake_target.waker)
        });
        worker.end_wait();
        popped.flatten()
    })?;
    Some(popped.map(|item| (item, tx.since())))
}

/// Polls for an item; `None` if the worker is interrupted. After a poll that was pending, the caller
/// [ends the wait](Worker::end_wait).
pub(super) fn poll_pop<'t, T, O: Order<T>>(
    pop: &mut PopAsync<'t, T, O>,
    worker: &Worker,
    waker: &Waker,
) -> Poll<Option<Result<Item<'t, T>, PopError>>> {
    if worker.is_interrupted() {
        return Poll::Ready(None);
    }
    let popped = Pin::new(pop).poll(&mut Context::from_waker(waker));
    if popped.is_pending() && worker.poll_interrupted(waker).is_ready() {
        return Poll::Ready(None);
    }
    popped.map(Some)
}

/// As [`poll_pop`], for a batch. A worker that is interrupted goes on with the items that it holds, if any.
pub(super) fn poll_batch<'t, T, O: Order<T>>(
    pop: &mut PopBatchAsync<'t, T, O>,
    worker: &Worker,
    waker: &Waker,
) -> Poll<Option<Items<'t, T, O>>> {
    if worker.is_interrupted() && !pop.has_items() {
        return Poll::Ready(None);
    }
    let popped = Pin::new(&mut *pop).poll(&mut Context::from_waker(waker));
    if popped.is_pending() && worker.poll_interrupted(waker).is_ready() {
        return Poll::Ready(pop.has_items().then(|| pop.end()));
    }
    popped.map(Some)
}
