//! The loop of a worker thread, and its steps for one transaction.

use super::block::Driver;
use super::failure::RunError;
use super::step::{Batches, Missing, QueueWorker, RunStep};
use super::worker::Ran;
use super::CommitWith;
use super::Job;
use crate::backend::{Backend, Holds, Tx};
use crate::policy::telemetry::RunSpan;
use crate::sync::swallow_panic;
use crate::Wait;
use crossbeam_utils::Backoff;
use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

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
    mut step: impl FnMut(&WorkerThread<B>, &mut B::Tx) -> RunStep,
) {
    let (mut tx, mut errors) = (worker.begin(), 0);
    tx.may_block();
    let thread = WorkerThread {
        of: worker,
        driver: Driver::new(),
        span: Cell::new(RunSpan::none()),
    };
    while thread.of.worker().goes_on(&thread.driver) {
        let stepped = catch_unwind(AssertUnwindSafe(|| thread.keep_running(&mut tx, &mut step)));
        let step =
            stepped.unwrap_or_else(|payload| thread.fail(&mut tx, RunError::of_panic(payload)));
        if !thread.driver.drive(thread.of.settle(step, &mut errors)) {
            return;
        }
    }
}

impl<B: Backend> WorkerThread<B> {
    /// Runs until a run fails, the worker is interrupted, or the queue is closed and drained.
    fn keep_running(
        &self,
        tx: &mut B::Tx,
        step: &mut impl FnMut(&Self, &mut B::Tx) -> RunStep,
    ) -> RunStep {
        let worker = self.of.worker();
        while !worker.is_interrupted() {
            match step(self, tx) {
                RunStep::Ran(ran) => worker.end_run(ran),
                other => return other,
            }
        }
        RunStep::Interrupted
    }

    /// Takes an item, runs, and commits or aborts.
    #[inline]
    pub(super) fn each<R: Into<Ran>, E: Debug>(
        &self,
        tx: &mut B::Tx,
        run: impl for<'t> Fn(HeldOf<'t, B>, &'t ViewOf<B>) -> Result<R, E>,
    ) -> RunStep {
        let ran = self.take(tx).map(|item| {
            let attempts = B::Tx::attempts(&item);
            self.call(tx, attempts, || run(item, tx.view()))
        });
        self.end(tx, ran)
    }

    /// Takes a batch of items, runs, and commits or aborts.
    pub(super) fn batch<E: Debug>(
        &self,
        tx: &mut B::Tx,
        batches: Batches,
        run: impl for<'t> Fn(Vec<HeldOf<'t, B>>, &'t ViewOf<B>) -> Result<(), E>,
    ) -> RunStep {
        let ran = self.take_batch(tx, batches).map(|items| {
            let attempts = B::Tx::attempts(&items[0]);
            self.call(tx, attempts, || run(items, tx.view()))
        });
        self.end(tx, ran)
    }

    /// Like [`each`](Self::each), with transactions of other queues that are committed together with that of the item.
    pub(super) fn each_with<Q: CommitWith<B>, E: Debug>(
        &self,
        tx: &mut B::Tx,
        handles: &mut Q::Handles,
        run: impl for<'t, 'h> Fn(HeldOf<'t, B>, &'t ViewOf<B>, &'t Q::Transactions<'h>) -> Result<(), E>,
    ) -> RunStep {
        let mut begun = None;
        let ran = self.take(tx).map(|item| {
            let (attempts, others) = (B::Tx::attempts(&item), begun.insert(Q::begin(handles)));
            let run = || self.call(tx, attempts, || run(item, tx.view(), others));
            catch_unwind(AssertUnwindSafe(run))
        });
        let (ran, others) = match (ran, begun) {
            (Ok(ran), Some(others)) => (ran, others),
            (Err(missing), _) => return self.end_without(tx, missing),
            (Ok(_), None) => unreachable!("the transactions were begun"),
        };
        if let Ok(Ok(())) = ran {
            return match Q::commit_with(tx, others) {
                Ok(given_up) => RunStep::Ran(Ran::of(given_up)),
                Err(error) => self.driver.drive(self.of.fail_by(tx, error)),
            };
        }
        // Not by unwinding: their destructors may panic too.
        swallow_panic(|| drop(others));
        match ran {
            Ok(ran) => self.end(tx, Ok(ran)),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Takes an item, waiting for one until the worker is interrupted, and begins a run.
    #[inline]
    fn take<'t>(&self, tx: &'t B::Tx) -> Result<HeldOf<'t, B>, Missing<B::Error>> {
        let (item, since) = match tx.try_pop() {
            Some(found) => found,
            None => self.wait(tx)?,
        };
        self.of.worker().begin_run(since);
        Ok(item)
    }

    /// Waits for an item: it looks for a while, and then sleeps.
    #[cold]
    fn wait<'t>(&self, tx: &'t B::Tx) -> Result<(HeldOf<'t, B>, u64), Missing<B::Error>> {
        let backoff = Backoff::new();
        while !backoff.is_completed() && !self.of.worker().is_interrupted() {
            backoff.snooze();
            if let Some(found) = tx.try_pop() {
                return Ok(found);
            }
        }
        let item = self.driver.drive(self.of.take(tx.pop(Wait::Forever)))?;
        Ok((item, tx.since()))
    }

    /// Takes the items of a batch, and begins a run.
    fn take_batch<'t>(
        &self,
        tx: &'t B::Tx,
        batches: Batches,
    ) -> Result<Vec<HeldOf<'t, B>>, Missing<B::Error>> {
        let pop = |max, wait| tx.pop_batch(max, wait);
        let items = self.driver.drive(self.of.take_batch(batches, pop))?;
        self.of.worker().begin_run(tx.since());
        Ok(items)
    }

    /// Calls the function of the run, whose first item is at the given attempt, in the span of the run.
    #[inline]
    fn call<R>(&self, tx: &B::Tx, attempts: u32, run: impl FnOnce() -> R) -> R {
        let span = tx.run_span(self.of.worker().name(), attempts);
        self.span.set(span.clone());
        span.in_scope(run)
    }

    /// Commits or aborts, depending on the result of the run.
    #[inline]
    fn end<R: Into<Ran>, E: Debug>(
        &self,
        tx: &mut B::Tx,
        ran: Result<Result<R, E>, Missing<B::Error>>,
    ) -> RunStep {
        match ran {
            Ok(Ok(ran)) => self.driver.drive(self.of.commit(tx, ran.into())),
            Ok(Err(error)) => self.fail(tx, RunError::of(error)),
            Err(missing) => self.end_without(tx, missing),
        }
    }

    #[cold]
    fn end_without(&self, tx: &mut B::Tx, missing: Missing<B::Error>) -> RunStep {
        self.driver.drive(self.of.end_without(tx, missing))
    }

    /// Aborts, in the span of the run.
    #[cold]
    fn fail(&self, tx: &mut B::Tx, error: RunError) -> RunStep {
        let span = self.span.replace(RunSpan::none());
        span.in_scope(|| self.driver.drive(self.of.fail(tx, error)))
    }
}

impl<B: Backend<Item = Job>> WorkerThread<B> {
    /// Takes a job, runs it, and commits, even if it panicked.
    pub(super) fn job(&self, tx: &mut B::Tx) -> RunStep {
        self.each(tx, |mut job, _| Ok::<_, ()>(Ran::of_job(job.run())))
    }
}
