//! The loop of a worker task, and the transaction of its runs.

use super::builder::{Failure, OnError};
use super::caught::{text_of_panic, Caught};
use super::tasks::Counts;
use crate::error::Error;
use crate::item::PgItem;
use crate::queue::PgQueue;
use crate::transaction::{Failed, PgTransaction, Run};
use requeue::Backoff;
use std::fmt::{self, Debug};
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::select;
use tokio::sync::{watch, Mutex, OwnedMutexGuard};
use tokio::time::sleep;

/// How long a task waits for an item at a time.
const WAIT: Duration = Duration::from_secs(60);
/// The pause after an error of the database.
const PAUSES: Backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1));

/// The transaction of a run of [`run_async`](crate::WorkersBuilder::run_async), shared with its pool: the pool ends it when the
/// run has returned.
///
/// Calls after that return [`Error::Ended`].
pub struct RunTransaction<T> {
    queue: PgQueue<T>,
    run: Arc<Mutex<Option<Run>>>,
}

impl<T: 'static> RunTransaction<T> {
    /// Stages a push to the queue of the workers: see [`PgTransaction::push`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::push`].
    pub async fn push(&self, item: T) -> Result<(), Error> {
        let mut guard = self.lock().await?;
        guard.push(&self.queue, item).await
    }

    /// Stages a push to another queue of the database.
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::push`].
    pub async fn push_to<U: 'static>(&self, queue: &PgQueue<U>, item: U) -> Result<(), Error> {
        let mut guard = self.lock().await?;
        guard.push(queue, item).await
    }

    /// Locks the transaction, for all its verbs and its [client](PgTransaction::client).
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] if the run has ended.
    pub async fn lock(&self) -> Result<RunGuard, Error> {
        let run = Arc::clone(&self.run).lock_owned().await;
        if run.is_none() {
            return Err(Error::Ended);
        }
        Ok(RunGuard(run))
    }
}

impl<T> Debug for RunTransaction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTransaction")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// The locked transaction of a run, from [`RunTransaction::lock`].
pub struct RunGuard(OwnedMutexGuard<Option<Run>>);

const PRESENT: &str = "checked by `lock`";

impl Deref for RunGuard {
    type Target = PgTransaction<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0.as_ref().expect(PRESENT).tx
    }
}

impl DerefMut for RunGuard {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.as_mut().expect(PRESENT).tx
    }
}

impl Debug for RunGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunGuard").field(&**self).finish()
    }
}

/// One task of a pool.
pub(super) struct Worker<T> {
    pub(super) index: usize,
    pub(super) queue: PgQueue<T>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) counts: Arc<Counts>,
    pub(super) on_error: OnError,
}

/// Works until it is stopped.
pub(super) async fn work<T, E, F, R>(mut worker: Worker<T>, run: Arc<F>)
where
    T: Send + 'static,
    E: Debug,
    F: Fn(PgItem<T>, RunTransaction<T>) -> R,
    R: Future<Output = Result<(), E>>,
{
    let mut failures = 0;
    while let Some(taken) = worker.take().await {
        let error = match taken {
            Ok(None) => continue,
            Ok(Some((item, taken))) => {
                failures = 0;
                // ORDERING: Relaxed, both; a count.
                worker.counts.busy.fetch_add(1, Ordering::Relaxed);
                worker.run(item, taken, &*run).await;
                worker.counts.busy.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            Err(error) => error,
        };
        failures += 1;
        worker.report(0, error.to_string(), false, Some(error));
        if !worker.pause(PAUSES.delay(failures)).await {
            return;
        }
    }
}

type Taken<T> = Result<Option<(PgItem<T>, Run)>, Error>;

impl<T: Send + 'static> Worker<T> {
    /// Waits for an item; `None` if the pool is stopped.
    async fn take(&mut self) -> Option<Taken<T>> {
        let queue = &self.queue;
        let taken = async {
            let tx = queue.database().begin().await?;
            Run::begin(tx, queue, WAIT).await
        };
        select! {
            biased;
            _ = self.stop.wait_for(|stop| *stop) => None,
            taken = taken => Some(taken),
        }
    }

    /// Waits for a time; false if the pool is stopped.
    async fn pause(&mut self, pause: Duration) -> bool {
        select! {
            _ = self.stop.wait_for(|stop| *stop) => false,
            () = sleep(pause) => true,
        }
    }

    async fn run<E, F, R>(&self, item: PgItem<T>, taken: Run, run: &F)
    where
        E: Debug,
        F: Fn(PgItem<T>, RunTransaction<T>) -> R,
        R: Future<Output = Result<(), E>>,
    {
        let attempts = item.attempts();
        let shared = Arc::new(Mutex::new(Some(taken)));
        let tx = RunTransaction {
            queue: self.queue.clone(),
            run: Arc::clone(&shared),
        };
        let failure = match catch_unwind(AssertUnwindSafe(|| run(item, tx))) {
            Ok(running) => failure_of(Caught::new(running).await),
            Err(payload) => failure_of::<E>(Err(payload)),
        };
        let Some(taken) = shared.lock().await.take() else {
            return;
        };
        let Some((error, panicked)) = failure else {
            return self.commit(taken, attempts).await;
        };
        let failed = Failed {
            error: &error,
            panicked,
        };
        let undone = taken.fail(failed).await;
        self.report(attempts, error, panicked, undone.err());
    }

    async fn commit(&self, taken: Run, attempts: u32) {
        match taken.commit().await {
            // ORDERING: Relaxed; a count.
            Ok(_) => drop(self.counts.done.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.report(attempts, error.to_string(), false, Some(error)),
        }
    }

    fn report(&self, attempts: u32, error: String, panicked: bool, database: Option<Error>) {
        let count = match (attempts, panicked) {
            (0, _) => None, // no run
            (_, true) => Some(&self.counts.panicked),
            (_, false) => Some(&self.counts.failed),
        };
        if let Some(count) = count {
            // ORDERING: Relaxed; a count.
            count.fetch_add(1, Ordering::Relaxed);
        }
        let failure = Failure {
            worker: self.index,
            attempts,
            error: error.into(),
            panicked,
            database,
        };
        let told = catch_unwind(AssertUnwindSafe(|| (self.on_error)(&failure)));
        let _ = told.map_err(std::mem::forget); // a payload whose destructor may panic
    }
}

/// The text of the error or the panic, and whether it is a panic.
fn failure_of<E: Debug>(ended: thread::Result<Result<(), E>>) -> Option<(String, bool)> {
    match ended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some((text_of(error), false)),
        Err(payload) => Some((text_of_panic(&*payload), true)),
    }
}

/// The text of an error. User code; its panics are caught.
fn text_of(error: impl Debug) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| format!("{error:?}")));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(error)));
    let _ = dropped.map_err(std::mem::forget);
    text.unwrap_or_else(|_| "an error whose `Debug` panics".into())
}
