//! The loop of a worker thread, and its steps for one transaction.

use super::block::Driver;
use super::failure::RunError;
use super::step::{Batches, QueueWorker, Stepped, Stop};
use super::worker::Ran;
use super::{CommitWith, Job};
use crate::backend::{Backend, Holds, Tx};
use crate::policy::telemetry::RunSpan;
use crate::sync::swallow_panic;
use crate::Wait;
use crossbeam_utils::Backoff;
use std::cell::Cell;
use std::fmt::Debug;
use std::future::poll_fn;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// An item that a transaction of the queue holds.
pub(super) type HeldOf<'t, B> = <<B as Backend>::Tx as Holds>::Held<'t>;
/// What a run gets of its transaction.
pub(super) type ViewOf<B> = <<B as Backend>::Tx as Holds>::View;

/// A worker on a thread.
pub(super) struct WorkerThread<B> {
    of: QueueWorker<B>,
    driver: Driver,
    /// The span of the run, from its beginning on.
    span: Cell<RunSpan>,
}

/// Works until it is stopped, or the queue is closed and drained.
pub(super) fn work<B: Backend>(
    worker: QueueWorker<B>,
    mut step: impl FnMut(&WorkerThread<B>, &mut B::Tx) -> Stepped<B>,
) {
    let (mut tx, mut errors) = (worker.begin(), 0);
    tx.may_block();
    let thread = WorkerThread {
        of: worker,
        driver: Driver::new(),
        span: Cell::new(RunSpan::none()),
    };
    let (worker, driver) = (&thread.of, &thread.driver);
    while driver.drive(poll_fn(|context| worker.worker.poll_go_on(context.waker()))) {
        let stepped = catch_unwind(AssertUnwindSafe(|| thread.keep_running(&mut tx, &mut step)));
        let stepped = stepped.unwrap_or_else(|panic| Err(Stop::Failed(RunError::of_panic(panic))));
        let span = thread.span.replace(RunSpan::none());
        if !driver.drive(worker.settle(stepped, Some(&mut tx), span, &mut errors)) {
            return;
        }
    }
}

impl<B: Backend> WorkerThread<B> {
    /// Runs until a run fails, the worker is interrupted, or the queue is closed and drained.
    fn keep_running(
        &self,
        tx: &mut B::Tx,
        step: &mut impl FnMut(&Self, &mut B::Tx) -> Stepped<B>,
    ) -> Stepped<B> {
        let worker = &self.of.worker;
        while !worker.is_interrupted() {
            worker.end_run(step(self, tx)?);
        }
        Err(Stop::Interrupted)
    }

    /// Takes an item, runs, and commits.
    #[inline]
    pub(super) fn each<R: Into<Ran>, E: Debug>(
        &self,
        tx: &mut B::Tx,
        run: impl for<'t> Fn(HeldOf<'t, B>, &'t ViewOf<B>) -> Result<R, E>,
    ) -> Stepped<B> {
        let item = self.take(tx)?;
        let attempts = B::Tx::attempts(&item);
        let ran = self.call(tx, attempts, || run(item, tx.view()));
        self.end(tx, ran)
    }

    /// Takes a batch of items, runs, and commits.
    pub(super) fn batch<E: Debug>(
        &self,
        tx: &mut B::Tx,
        batches: Batches,
        run: impl for<'t> Fn(Vec<HeldOf<'t, B>>, &'t ViewOf<B>) -> Result<(), E>,
    ) -> Stepped<B> {
        let pop = |max, wait| tx.pop_batch(max, wait);
        let items = self.driver.drive(self.of.take_batch(batches, pop))?;
        self.of.worker.begin_run(tx.since());
        let attempts = B::Tx::attempts(&items[0]);
        let ran = self.call(tx, attempts, || run(items, tx.view()));
        self.end(tx, ran)
    }

    /// Like [`each`](Self::each), with transactions of other queues that are committed together with that of the item.
    pub(super) fn each_with<Q: CommitWith<B>, E: Debug>(
        &self,
        tx: &mut B::Tx,
        handles: &mut Q::Handles,
        run: impl for<'t, 'h> Fn(HeldOf<'t, B>, &'t ViewOf<B>, &'t Q::Transactions<'h>) -> Result<(), E>,
    ) -> Stepped<B> {
        let item = self.take(tx)?;
        let (attempts, others) = (B::Tx::attempts(&item), Q::begin(handles));
        let run = || self.call(tx, attempts, || run(item, tx.view(), &others));
        let ran = catch_unwind(AssertUnwindSafe(run));
        if let Ok(Ok(())) = ran {
            let given_up = Q::commit_with(tx, others).map_err(Stop::Error)?;
            return Ok(Ran::Done.but(given_up));
        }
        // Not by unwinding: their destructors may panic too.
        swallow_panic(|| drop(others));
        match ran {
            Ok(ran) => self.end(tx, ran),
            Err(panic) => Err(Stop::Failed(RunError::of_panic(panic))),
        }
    }

    /// Takes an item, waiting for one until the worker is interrupted, and begins a run.
    #[inline]
    fn take<'t>(&self, tx: &'t B::Tx) -> Result<HeldOf<'t, B>, Stop<B::Error>> {
        let (item, since) = match tx.try_pop() {
            Some(found) => found,
            None => self.wait(tx)?,
        };
        self.of.worker.begin_run(since);
        Ok(item)
    }

    /// Waits for an item: it looks for a while, and then sleeps.
    #[cold]
    fn wait<'t>(&self, tx: &'t B::Tx) -> Result<(HeldOf<'t, B>, u64), Stop<B::Error>> {
        let backoff = Backoff::new();
        while !backoff.is_completed() && !self.of.worker.is_interrupted() {
            backoff.snooze();
            if let Some(found) = tx.try_pop() {
                return Ok(found);
            }
        }
        let item = self.driver.drive(self.of.take(tx.pop(Wait::Forever)))?;
        Ok((item, tx.since()))
    }

    /// Calls the function of the run, whose first item is at the given attempt, in the span of the run.
    #[inline]
    fn call<R>(&self, tx: &B::Tx, attempts: u32, run: impl FnOnce() -> R) -> R {
        let span = tx.run_span(self.of.worker.name(), attempts);
        self.span.set(span.clone());
        span.in_scope(run)
    }

    /// Commits a run that has not failed.
    #[inline]
    fn end<R: Into<Ran>, E: Debug>(&self, tx: &mut B::Tx, ran: Result<R, E>) -> Stepped<B> {
        match ran {
            Ok(ran) => self.driver.drive(self.of.commit(tx, ran.into())),
            Err(error) => Err(Stop::Failed(RunError::of(error))),
        }
    }
}

impl<B: Backend<Item = Job>> WorkerThread<B> {
    /// Takes a job, runs it, and commits, even if it panicked.
    pub(super) fn job(&self, tx: &mut B::Tx) -> Stepped<B> {
        self.each(tx, |mut job, _| Ok::<bool, ()>(job.run()))
    }
}
