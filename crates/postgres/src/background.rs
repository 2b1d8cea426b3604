//! What the process does besides its transactions: it makes due items ready, and forgets what dead processes have left.

use crate::connect::{Postgres, Shared};
use crate::error::Error;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{timeout, Instant};

/// How long the promoter waits if nothing is due: other processes may have pushed delayed items.
const LOOK: Duration = Duration::from_secs(1);

/// The pause before due items that could not be moved are tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The interval at which a process forgets what dead processes have left.
const SWEEP: Duration = Duration::from_secs(600);

/// A task that ends with what it belongs to.
#[derive(Debug, Default)]
pub(crate) struct Task(Mutex<Option<AbortHandle>>);

impl Task {
    /// Starts the task, unless it runs.
    pub(crate) fn start<F>(&self, future: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut task = self.0.lock();
        if task.as_ref().is_none_or(AbortHandle::is_finished) {
            let started: JoinHandle<()> = tokio::spawn(future());
            *task = Some(started.abort_handle());
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.0.get_mut() {
            task.abort();
        }
    }
}

/// Makes due items ready, and takes back what dead holders hold.
#[derive(Debug, Default)]
pub(crate) struct Promoter {
    task: Task,
    nudged: Arc<Notify>,
}

impl Promoter {
    /// An item may have been scheduled for an earlier time.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }
}

impl Shared {
    /// Moves the items that are due. Returns whether any became ready.
    pub(crate) async fn promote_now(self: &Arc<Self>) -> Result<bool, Error> {
        Ok(self.move_due().await? | self.lapse(true).await?)
    }

    async fn move_due(self: &Arc<Self>) -> Result<bool, Error> {
        let rows = self.run(&self.sql.promote, &[]).await?;
        self.wake_rows(&rows);
        Ok(!rows.is_empty())
    }

    /// Takes back what dead holders hold; unless `anyway`, only if no other process does.
    async fn lapse(self: &Arc<Self>, anyway: bool) -> Result<bool, Error> {
        let rows = self.run(&self.sql.lapse, &[&anyway]).await?;
        self.wake_rows(&rows);
        Ok(!rows.is_empty())
    }

    /// Forgets what dead processes have left.
    async fn sweep(self: &Arc<Self>) -> Result<(), Error> {
        self.run(&self.sql.forget_holders, &[]).await?;
        let rows = self.run(&self.sql.lapse_forgotten, &[]).await?;
        self.wake_rows(&rows);
        self.run(&self.sql.sweep_attempts, &[]).await?;
        Ok(())
    }

    /// Forgets the counted deliveries of items that are gone, in the background. What it misses is swept.
    pub(crate) fn forget_attempts(self: &Arc<Self>, ids: Vec<i64>) {
        if !ids.is_empty() {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.run(&shared.sql.forget_attempts, &[&ids]).await });
        }
    }

    /// Moves the items that are due, and returns the time until the next one is.
    async fn promote(self: &Arc<Self>) -> Result<Duration, Error> {
        if self.move_due().await? | self.lapse(false).await? {
            return Ok(Duration::ZERO);
        }
        let next = self.run(&self.sql.next_due, &[]).await?;
        let seconds: Option<f64> = next[0].get(0);
        // What is due already is locked: others move it, or commit it.
        let wait = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(AGAIN));
        Ok(wait.unwrap_or(LOOK).min(LOOK))
    }
}

impl Postgres {
    /// Starts the task that makes due items ready.
    pub(crate) fn start_promoter(&self) {
        let shared = Arc::downgrade(&self.shared);
        let nudged = Arc::clone(&self.shared.promoter.nudged);
        self.shared.promoter.task.start(|| promote(shared, nudged));
    }
}

async fn promote(shared: Weak<Shared>, nudged: Arc<Notify>) {
    let mut sweep = Instant::now();
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if sweep <= Instant::now() {
            let swept = shared.sweep().await;
            sweep = Instant::now() + if swept.is_ok() { SWEEP } else { SWEEP / 10 };
        }
        let wait = shared.promote().await.unwrap_or(LOOK);
        drop(shared);
        let _ = timeout(wait, nudged.notified()).await;
    }
}
