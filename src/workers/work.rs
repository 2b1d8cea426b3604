//! The steps of a worker thread for one transaction.

use super::block::Driver;
use super::step::{Batches, Own, QueueWorker, Stepped, Stop, NOT_OWN};
use super::worker::Ran;
use super::CommitWith;
use crate::backend::{Backend, Holds, Tx};
use crate::order::Order;
use crate::policy::telemetry::RunSpan;
use crate::sync::swallow_panic;
use crate::{Queue, Transaction, Wait};
use crossbeam_utils::Backoff;
use std::cell::Cell;
use std::fmt::Debug;
use std::future::ready;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// An item that a transaction of the queue holds.
pub(super) type HeldOf<'t, B> = <<B as Backend>::Tx as Holds>::Held<'t>;
/// What a run gets of its transaction.
pub(super) type ViewOf<B> = <<B as Backend>::Tx as Holds>::View;

/// A worker on a thread, from its beginning or the last failed run to the next one.
pub(super) struct WorkerThread<'w, B: Backend> {
    of: &'w QueueWorker<B>,
    tx: B::Tx,
    driver: &'w Driver,
    /// The span of the run, from its beginning on.
    span: Cell<RunSpan>,
}

/// Works on this thread.
pub(super) fn work<B: Backend>(
    worker: &QueueWorker<B>,
    mut step: impl FnMut(&mut WorkerThread<'_, B>) -> Stepped<B>,
) {
    let driver = &Driver::new();
    driver.drive(worker.work(|mut tx| {
        tx.may_block();
        let span = Cell::new(RunSpan::none());
        let mut thread = WorkerThread {
            of: worker,
            tx,
            driver,
            span,
        };
        let stepped = catch_unwind(AssertUnwindSafe(|| thread.keep_running(&mut step)));
        let stepped = stepped.unwrap_or_else(|panic| Err(Stop::panicked(panic)));
        ready((stepped, Some(thread.tx), thread.span.into_inner()))
    }));
}

impl<B: Backend> WorkerThread<'_, B> {
    /// Runs until a run fails, the worker is interrupted, or the queue is closed and drained.
    fn keep_running(&mut self, step: &mut impl FnMut(&mut Self) -> Stepped<B>) -> Stepped<B> {
        while !self.of.worker.is_interrupted() {
            let ran = step(self)?;
            self.of.worker.end_run(ran);
        }
        Err(Stop::Interrupted)
    }

    /// Takes an item, runs, and commits.
    #[inline]
    pub(super) fn each<R: Into<Ran>, E: Debug>(
        &mut self,
        run: impl for<'t> Fn(HeldOf<'t, B>, &'t ViewOf<B>) -> Result<R, E>,
    ) -> Stepped<B> {
        let item = self.take()?;
        let attempts = B::Tx::attempts(&item);
        let ran = self.call(attempts, || run(item, self.tx.view()));
        self.end(ran, NOT_OWN)
    }

    /// Takes a batch of items, runs, and commits.
    pub(super) fn batch<E: Debug>(
        &mut self,
        batches: Batches,
        run: impl for<'t> Fn(Vec<HeldOf<'t, B>>, &'t ViewOf<B>) -> Result<(), E>,
    ) -> Stepped<B> {
        let pop = |max, wait| self.tx.pop_batch(max, wait);
        let items = self.driver.drive(self.of.take_batch(batches, pop))?;
        self.of.worker.begin_run(self.tx.since());
        let attempts = B::Tx::attempts(&items[0]);
        let ran = self.call(attempts, || run(items, self.tx.view()));
        self.end(ran, NOT_OWN)
    }

    /// Like [`each`](Self::each), with transactions of other queues that are committed together with that of the item.
    pub(super) fn each_with<Q: CommitWith<B>, E: Debug>(
        &mut self,
        handles: &mut Q::Handles,
        run: impl for<'t, 'h> Fn(HeldOf<'t, B>, &'t ViewOf<B>, &'t Q::Transactions<'h>) -> Result<(), E>,
    ) -> Stepped<B> {
        let item = self.take()?;
        let (attempts, others) = (B::Tx::attempts(&item), Q::begin(handles));
        let run = || self.call(attempts, || run(item, self.tx.view(), &others));
        let ran = catch_unwind(AssertUnwindSafe(run));
        if let Ok(Ok(())) = ran {
            let success = self.of.success(&mut self.tx, NOT_OWN.as_ref());
            let given_up = Q::commit_with(&mut self.tx, others).map_err(Stop::Error)?;
            return Ok(self.of.committed(Ran::Done.but(given_up), success));
        }
        // Not by unwinding: their destructors may panic too.
        swallow_panic(|| drop(others));
        match ran {
            Ok(ran) => self.end(ran, NOT_OWN),
            Err(panic) => Err(Stop::panicked(panic)),
        }
    }

    /// Takes an item, waiting for one until the worker is interrupted, and begins a run.
    #[inline]
    fn take(&self) -> Result<HeldOf<'_, B>, Stop<B::Error>> {
        let (item, since) = match self.tx.try_pop() {
            Some(found) => found,
            None => self.wait()?,
        };
        self.of.worker.begin_run(since);
        Ok(item)
    }

    /// Waits for an item: it looks for a while, and then sleeps.
    #[cold]
    fn wait(&self) -> Result<(HeldOf<'_, B>, u64), Stop<B::Error>> {
        let backoff = Backoff::new();
        while !backoff.is_completed() && !self.of.worker.is_interrupted() {
            backoff.snooze();
            if let Some(found) = self.tx.try_pop() {
                return Ok(found);
            }
        }
        let item = self
            .driver
            .drive(self.of.take(self.tx.pop(Wait::Forever)))?;
        Ok((item, self.tx.since()))
    }

    /// Calls the function of the run, whose first item is at the given attempt, in the span of the run.
    #[inline]
    fn call<R>(&self, attempts: u32, run: impl FnOnce() -> R) -> R {
        let span = self.tx.run_span(self.of.worker.name(), attempts);
        self.span.set(span.clone());
        span.in_scope(run)
    }

    #[cold]
    #[inline(never)] // 45 instructions of each other run
    fn end_and_tell<A>(&mut self, ran: Ran, own: Option<Own<A>>) -> Stepped<B> {
        let commit = self.of.commit_and_tell(&mut self.tx, ran, own);
        self.driver.drive(commit)
    }

    /// Commits a run that has not failed.
    #[inline]
    fn end<R: Into<Ran>, E: Debug, A>(
        &mut self,
        ran: Result<R, E>,
        own: Option<Own<A>>,
    ) -> Stepped<B> {
        match ran {
            Ok(ran) if own.is_some() || self.of.tells() => self.end_and_tell(ran.into(), own),
            Ok(ran) => self.driver.drive(self.of.commit(&mut self.tx, ran.into())),
            Err(error) => Err(Stop::failed(error)),
        }
    }
}

impl<T: Send, O: Order<T>> WorkerThread<'_, Queue<T, O>> {
    /// [Takes an item out](QueueWorker::take_out) of the queue, and runs on it.
    pub(super) fn owned<E: Debug>(
        &mut self,
        run: impl Fn(T, &Transaction<'static, T, O>) -> Result<(), E>,
    ) -> Stepped<Queue<T, O>> {
        self.tx.vouch();
        let (item, own) = self.driver.drive(self.of.take_out())?;
        let ran = self.call(own.attempts, || run(item, self.tx.view()));
        self.end(ran, Some(own))
    }
}
