//! The life of one worker.

use super::failure::{swallow_panic, text_of, text_of_panic, Failure};
use super::pool::{Worker, WorkerPool};
use crate::delivery::flush;
use crate::error::{PopError, StoreError};
use crate::order::Order;
use crate::store::StoreInner;
use crate::transaction;
use crate::Transaction;
use requeue::Reason;
use std::borrow::Cow;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

/// The life of one worker.
pub(super) struct WorkerGuard {
    pool: Arc<WorkerPool>,
    pub(super) store: Arc<StoreInner>,
    index: usize,
}

/// Whether the worker goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Goes,
    Ends,
}

/// Why there is no item.
pub(super) enum Missing {
    /// The worker is stopped, or the queue is closed and drained.
    End,
    /// It is held, and could not be read.
    Unread(StoreError),
}

/// How a run ended.
pub(super) type Ran<E> = thread::Result<Result<(), E>>;

impl WorkerGuard {
    pub(super) fn all(pool: &Arc<WorkerPool>, store: &Arc<StoreInner>) -> Vec<Self> {
        let guard = |index| Self {
            pool: Arc::clone(pool),
            store: Arc::clone(store),
            index,
        };
        (0..pool.workers.len()).map(guard).collect()
    }

    fn worker(&self) -> &Worker {
        &self.pool.workers[self.index]
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.worker().name)
    }

    /// Waits for the future; `None` if the worker is stopped.
    pub(super) async fn wait<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.worker().leave_waker(context.waker().clone());
            if self.pool.is_stopping() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits for the item that `popping` takes.
    pub(super) async fn take<I>(
        &self,
        popping: impl Future<Output = Result<I, PopError>>,
    ) -> Result<I, Missing> {
        match self.wait(popping).await {
            Some(Ok(item)) => Ok(item),
            Some(Err(PopError::Store(error))) => Err(Missing::Unread(error)),
            Some(Err(PopError::Empty | PopError::Closed)) | None => Err(Missing::End),
        }
    }

    pub(super) fn begin_run(&self) {
        self.worker().busy.store(true, Ordering::Relaxed);
    }

    /// Does `work` in a transaction, which takes items and runs on them. The transaction of a run that succeeded is still open.
    pub(super) fn attempt<'h, T: Send + 'static, O: Order<T>, E: Debug>(
        &self,
        tx: Transaction<'h, T, O>,
        work: impl FnOnce(&Transaction<'h, T, O>) -> Result<Result<(), E>, Missing>,
    ) -> Result<(Transaction<'h, T, O>, Deliveries), Next> {
        let judged = match catch_unwind(AssertUnwindSafe(|| work(&tx))) {
            Ok(Ok(ran)) => self.judge(tx, Ok(ran)),
            Ok(Err(Missing::End)) => return Err(Next::Ends),
            Ok(Err(Missing::Unread(error))) => Err(self.unread(tx, error)),
            Err(payload) => self.judge(tx, Ran::<E>::Err(payload)),
        };
        judged.map_err(|failed| self.fail(failed))
    }

    /// Ends a run that failed, and calls the hook once its letters are on the disk.
    pub(super) fn fail(&self, failed: Failed) -> Next {
        if self.waits_for(&failed) {
            // An error is one of the next commit too.
            let _ = self.store.log.flush();
        }
        self.count_failure(failed)
    }

    /// As [`fail`](Self::fail), in a task.
    pub(super) async fn fail_async(&self, failed: Failed) -> Next {
        if self.waits_for(&failed) {
            let _ = flush(&self.store.log).await;
        }
        self.count_failure(failed)
    }

    fn waits_for(&self, failed: &Failed) -> bool {
        failed.deliveries.letters && self.pool.on_error.is_some()
    }

    /// Judges a run. `Ok`: its transaction is to be committed. Otherwise it was aborted.
    pub(super) fn judge<'h, T: Send + 'static, O: Order<T>, E: Debug>(
        &self,
        mut tx: Transaction<'h, T, O>,
        ran: Ran<E>,
    ) -> Result<(Transaction<'h, T, O>, Deliveries), Failed> {
        let deliveries = Deliveries::of(&mut tx);
        let (reason, error) = match ran {
            Ok(Ok(())) => {
                // An abort from here on is a failed commit.
                self.blame(&mut tx, Reason::Aborted, "the commit failed");
                return Ok((tx, deliveries));
            }
            Ok(Err(error)) => (Reason::Failed, text_of(error)),
            Err(payload) => (Reason::Panicked, text_of_panic(&*payload)),
        };
        self.blame(&mut tx, reason, error.clone());
        swallow_panic(|| tx.core_mut().rollback());
        swallow_panic(|| drop(tx));
        Err(Failed {
            deliveries,
            error,
            panicked: reason == Reason::Panicked,
            cause: None,
        })
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
            backoff: self.pool.backoff,
        });
    }

    /// Counts a run whose transaction was committed, or could not be.
    pub(super) fn count(
        &self,
        committed: Result<(), StoreError>,
        deliveries: Deliveries,
    ) -> Result<Next, Failed> {
        if let Err(error) = committed {
            return Err(Failed::of(deliveries, error));
        }
        let worker = self.worker();
        worker.busy.store(false, Ordering::Relaxed);
        let count = if deliveries.given_up {
            &worker.given_up
        } else {
            &worker.done
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Next::Goes)
    }

    /// An item that could not be handed out.
    pub(super) fn unread<T: Send + 'static, O: Order<T>>(
        &self,
        tx: Transaction<'_, T, O>,
        error: StoreError,
    ) -> Failed {
        let ran: Ran<String> = Ok(Err(error.to_string()));
        let judged = self.judge(tx, ran).map(drop);
        let failed = judged.expect_err("it is judged as a failure");
        Failed {
            cause: Some(error),
            ..failed
        }
    }

    fn count_failure(&self, failed: Failed) -> Next {
        let worker = self.worker();
        let count = if failed.panicked {
            &worker.panicked
        } else {
            &worker.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(hook) = &self.pool.on_error {
            let failure = Failure {
                worker: self.name(),
                items: failed.deliveries.items,
                attempts: failed.deliveries.attempts,
                error: failed.error,
                panicked: failed.panicked,
            };
            swallow_panic(|| hook(&failure));
        }
        // After the hook: a worker that is blocked there is not taken for one that waits for an item.
        worker.busy.store(false, Ordering::Relaxed);
        match failed.cause {
            // All workers end.
            Some(error @ StoreError::Poisoned(_)) => {
                self.pool.fail(error);
                Next::Ends
            }
            _ => Next::Goes,
        }
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        self.pool.end(self.worker());
    }
}

/// A run that failed. What it held was given back.
pub(super) struct Failed {
    deliveries: Deliveries,
    error: String,
    panicked: bool,
    /// If it failed because of the store.
    cause: Option<StoreError>,
}

impl Failed {
    fn of(deliveries: Deliveries, cause: StoreError) -> Self {
        Self {
            deliveries,
            error: cause.to_string(),
            panicked: false,
            cause: Some(cause),
        }
    }

    /// One whose transaction is lost.
    pub(super) fn lost(error: &str) -> Self {
        Self {
            deliveries: Deliveries::default(),
            error: error.to_owned(),
            panicked: false,
            cause: None,
        }
    }
}

/// What a run held.
#[derive(Clone, Copy, Default)]
pub(super) struct Deliveries {
    items: usize,
    attempts: u32,
    /// Whether there are dead letters of the run, or will be if it is aborted. They may not be on the disk yet.
    letters: bool,
    /// Whether the run has given an item back or up.
    given_up: bool,
}

impl Deliveries {
    fn of<T: Send + 'static, O: Order<T>>(tx: &mut Transaction<'_, T, O>) -> Self {
        let core = tx.core_mut();
        let deliveries = Self {
            letters: core.makes_letters(),
            given_up: core.local.take_given_up(),
            ..Self::default()
        };
        core.ram.items().fold(deliveries, |deliveries, item| Self {
            items: deliveries.items + 1,
            attempts: deliveries.attempts.max(item.attempts()),
            ..deliveries
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::block::block_on;
    use requeue::Backoff;
    use std::time::Duration;

    #[test]
    fn a_poisoned_store_ends_all_workers() {
        let backoff = Backoff::fixed(Duration::ZERO);
        let pool = Arc::new(WorkerPool::new("worker", 2, None, backoff));
        let files = tempfile::tempdir().unwrap();
        let store = crate::Store::open(files.path()).unwrap();
        let mut shifts = WorkerGuard::all(&pool, &store.inner);
        let (first, second) = (shifts.remove(0), shifts.remove(0));
        let waiting = thread::spawn(move || block_on(second.wait(std::future::pending::<()>())));
        let fail = |error| {
            let counted = first.count(Err(error), Deliveries::default());
            first.fail(counted.map(drop).unwrap_err())
        };
        assert!(fail(StoreError::DiskFull) == Next::Goes);
        assert!(fail(StoreError::Poisoned("no such device".into())) == Next::Ends);
        assert_eq!(waiting.join().unwrap(), None);
        drop(first);
        assert!(matches!(
            pool.wait(Duration::MAX),
            Err(StoreError::Poisoned(_))
        ));
        assert_eq!(pool.status()[0].failed, 2);
    }
}
