//! The loop of a worker thread, and its steps for one transaction.

use super::crew::Shift;
use super::failure::{give_back, give_back_after_panic, Trouble};
use super::others::sealed;
use super::worker::{Ran, Worker};
use super::Job;
use crate::order::Order;
use crate::sync::swallow_panic;
use crate::wait::{block, spin, Deadline};
use crate::{Handle, Item, PopAsync, PopError, Transaction};
use std::fmt::Debug;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

/// The outcome of one transaction.
pub(super) enum RunStep {
    Ran(Ran),
    /// The items were given back.
    Failed(Box<Trouble>),
    /// No item was taken: the worker was interrupted by a command.
    Interrupted,
    /// No item was taken: the queue is closed and drained.
    Closed,
}

/// Works until it is stopped, or the queue is closed and drained.
pub(super) fn work<T, O: Order<T>>(
    shift: &Shift,
    mut handle: Handle<T, O>,
    mut step: impl FnMut(Transaction<'_, T, O>, &Worker) -> RunStep,
) {
    let worker = shift.worker();
    while worker.goes_on() {
        // A panic before the run drops the transaction while it unwinds.
        let stepped = catch_unwind(AssertUnwindSafe(|| step(handle.begin(), worker)));
        if !settle(shift, stepped) {
            return;
        }
    }
}

/// Records the outcome of a transaction. Returns whether the worker goes on.
pub(super) fn settle(shift: &Shift, stepped: thread::Result<RunStep>) -> bool {
    let worker = shift.worker();
    match stepped {
        Ok(RunStep::Ran(ran)) => worker.end_run(ran),
        Ok(RunStep::Failed(trouble)) => record_failure(shift, *trouble),
        Ok(RunStep::Interrupted) => {}
        Ok(RunStep::Closed) => return false,
        Err(payload) => record_failure(shift, Trouble::of_panic(worker, payload)),
    }
    true
}

#[cold]
fn record_failure(shift: &Shift, trouble: Trouble) {
    shift.worker().end_run(trouble.ran());
    shift.crew().report_failure(trouble);
}

/// Takes an item, runs, and commits or aborts.
pub(super) fn each<T, O: Order<T>, E: Debug>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    run: impl for<'t> Fn(Item<'t, T>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) -> RunStep {
    let item = match take(&tx, worker) {
        Ok(item) => item,
        Err(nothing) => return nothing,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| run(item, &tx)));
    end(tx, worker, ended)
}

/// Like [`each`], with transactions of other queues that are committed together with that of the item.
pub(super) fn each_with<Q: sealed::Others, T, O: Order<T>, E: Debug>(
    mut tx: Transaction<'_, T, O>,
    others: &mut Q::Handles,
    worker: &Worker,
    run: impl for<'t, 'h> Fn(
        Item<'t, T>,
        &'t Transaction<'t, T, O>,
        &'t Q::Transactions<'h>,
    ) -> Result<(), E>,
) -> RunStep {
    let item = match take(&tx, worker) {
        Ok(item) => item,
        Err(nothing) => return nothing,
    };
    let mut others = Q::begin(others);
    let ended = catch_unwind(AssertUnwindSafe(|| run(item, &tx, &others)));
    let close = || {
        tx.close_leases()
            .and_then(|()| Q::close_leases(&mut others))
    };
    let step = match matches!(ended, Ok(Ok(()))).then(close) {
        Some(Ok(())) => {
            swallow_panic(|| {
                // It cannot fail: all lease tables are closed.
                let _ = Q::commit_with(tx, others);
            });
            return RunStep::Ran(Ran::Done);
        }
        Some(Err(expired)) => give_back(tx, worker, format_args!("{expired}")),
        None => end(tx, worker, ended.map(|ended| ended.map(|()| Ran::Done))),
    };
    swallow_panic(|| drop(others));
    step
}

/// Takes up to `max` items, runs, and commits or aborts.
pub(super) fn batch<T, O: Order<T>, E: Debug>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    max: usize,
    run: impl for<'t> Fn(Vec<Item<'t, T>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) -> RunStep {
    let first = match take(&tx, worker) {
        Ok(item) => item,
        Err(nothing) => return nothing,
    };
    let mut items = vec![first];
    items.extend(tx.pop_batch(max - 1));
    let ended = catch_unwind(AssertUnwindSafe(|| run(items, &tx)));
    end(tx, worker, ended)
}

/// Takes a job, runs it, and commits, even if it panicked.
pub(super) fn job<O: Order<Job>>(tx: Transaction<'_, Job, O>, worker: &Worker) -> RunStep {
    let mut job = match take(&tx, worker) {
        Ok(job) => job,
        Err(nothing) => return nothing,
    };
    let ran = Ran::of_job(job.run());
    finish(tx, worker, ran)
}

/// Commits or aborts the transaction of a run, depending on its result.
pub(super) fn end<T, O: Order<T>, R: Into<Ran>, E: Debug>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    ended: thread::Result<Result<R, E>>,
) -> RunStep {
    match ended {
        Ok(Ok(ran)) => finish(tx, worker, ran.into()),
        Ok(Err(error)) => give_back(tx, worker, error),
        Err(payload) => give_back_after_panic(tx, worker, payload),
    }
}

/// Commits. Panics of the items' destructors do not change the outcome of the run.
fn finish<T, O: Order<T>>(mut tx: Transaction<'_, T, O>, worker: &Worker, ran: Ran) -> RunStep {
    if let Err(expired) = tx.close_leases() {
        return give_back(tx, worker, format_args!("{expired}"));
    }
    swallow_panic(|| drop(tx.try_commit()));
    RunStep::Ran(ran)
}

/// Takes an item, waiting for one until the worker is interrupted.
fn take<'t, T, O: Order<T>>(
    tx: &'t Transaction<'_, T, O>,
    worker: &Worker,
) -> Result<Item<'t, T>, RunStep> {
    let popped = match tx.pop() {
        Err(PopError::Empty) => wait(tx, worker).ok_or(RunStep::Interrupted)?,
        popped => popped,
    };
    let item = popped.map_err(|_| RunStep::Closed)?;
    worker.begin_run(tx.now());
    Ok(item)
}

/// Waits for an item; `None` if the worker is interrupted.
#[cold]
fn wait<'t, T, O: Order<T>>(
    tx: &'t Transaction<'_, T, O>,
    worker: &Worker,
) -> Option<Result<Item<'t, T>, PopError>> {
    let attempt = |(): &mut ()| match tx.pop() {
        Err(PopError::Empty) => None,
        popped => Some(popped),
    };
    spin(&mut (), |()| !worker.is_interrupted(), attempt).or_else(|| {
        let mut pop = tx.pop_async();
        block(Deadline::NEVER, |wake_target| {
            poll_pop(&mut pop, worker, wake_target.waker)
        })
        .flatten()
    })
}

/// Polls for an item; `None` if the worker is interrupted.
pub(super) fn poll_pop<'t, T, O: Order<T>>(
    pop: &mut PopAsync<'t, T, O>,
    worker: &Worker,
    waker: &Waker,
) -> Poll<Option<Result<Item<'t, T>, PopError>>> {
    if worker.poll_interrupted(waker).is_ready() {
        return Poll::Ready(None);
    }
    Pin::new(pop)
        .poll(&mut Context::from_waker(waker))
        .map(Some)
}
