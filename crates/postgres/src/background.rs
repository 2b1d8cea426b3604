//! What the process does besides its transactions: it makes due items ready, ends those that have expired, and forgets what dead
//! processes have left.

use crate::connect::{Params, Shared};
use crate::error::Result;
use crate::queue::count;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{timeout, Instant};

/// How long the promoter waits if nothing is due: other processes may have pushed delayed items.
const LOOK: Duration = Duration::from_secs(1);

/// The pause before due items that could not be moved are tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The interval at which a process forgets what dead processes have left.
const SWEEP: Duration = Duration::from_secs(600);

/// A task of the process, which ends with what it belongs to.
#[derive(Debug, Default)]
pub(crate) struct Task {
    started: Mutex<Option<AbortHandle>>,
    nudged: Arc<Notify>,
}

impl Task {
    /// Starts the task, unless it runs. It works with what the process shares until that is dropped, and waits for the nudges.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        &self,
        shared: &Arc<Shared>,
        work: impl FnOnce(Weak<Shared>, Arc<Notify>) -> F,
    ) {
        let mut started = self.started.lock();
        if started.as_ref().is_none_or(AbortHandle::is_finished) {
            let work = work(Arc::downgrade(shared), Arc::clone(&self.nudged));
            *started = Some(tokio::spawn(work).abort_handle());
        }
    }

    /// There may be something for the task to do.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.started.get_mut() {
            task.abort();
        }
    }
}

impl Shared {
    /// Starts the task that makes due items ready, and takes back what dead holders hold.
    pub(crate) fn start_promoter(self: &Arc<Self>) {
        self.promoter.start(self, promote);
    }

    /// Runs a statement that makes items ready, and wakes waiters for them. Returns whether there were any.
    pub(crate) async fn make_ready(
        self: &Arc<Self>,
        sql: &str,
        params: Params<'_>,
    ) -> Result<bool> {
        let rows = self.run(sql, params).await?;
        self.wake_rows(&rows);
        Ok(!rows.is_empty())
    }

    /// Moves the items that are due, and returns whether any became ready. What dead holders hold is taken back by one process at a
    /// time, or by each that does it `anyway`.
    pub(crate) async fn promote(self: &Arc<Self>, anyway: bool) -> Result<bool> {
        let promoted = self.make_ready(&self.sql.promote, &[]).await?;
        Ok(promoted | self.make_ready(&self.sql.lapse, &[&anyway]).await?)
    }

    /// Ends some of the items that have expired, and returns whether there were any.
    pub(crate) async fn expire(self: &Arc<Self>) -> Result<bool> {
        let rows = self.run(&self.sql.expire, &[]).await?;
        Ok(count(&rows[0], 0) > 0)
    }

    /// Forgets what dead processes have left.
    async fn sweep(self: &Arc<Self>) -> Result<()> {
        self.run(&self.sql.forget_holders, &[]).await?;
        self.make_ready(&self.sql.lapse_forgotten, &[]).await?;
        self.run(&self.sql.sweep_attempts, &[]).await?;
        self.run(&self.sql.sweep_uniques, &[]).await?;
        self.run(&self.sql.sweep_activity, &[]).await?;
        while count(&self.run(&self.sql.sweep_finished, &[]).await?[0], 0) > 0 {}
        Ok(())
    }

    /// Forgets the counted deliveries of items that are gone, in the background. What it misses is swept.
    pub(crate) fn forget_attempts(self: &Arc<Self>, ids: Vec<i64>) {
        if !ids.is_empty() {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.run(&shared.sql.forget_attempts, &[&ids]).await });
        }
    }

    /// Moves the items that are due, ends those that have expired, and returns the time until the next one is or does.
    async fn promote_due(self: &Arc<Self>) -> Result<Duration> {
        if self.promote(false).await? | self.expire().await? {
            return Ok(Duration::ZERO);
        }
        let next = self.run(&self.sql.next_due, &[]).await?;
        let seconds: Option<f64> = next[0].get(0);
        // What is due already is locked: others move it, or commit it.
        let wait = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(AGAIN));
        Ok(wait.unwrap_or(LOOK).min(LOOK))
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
        let wait = shared.promote_due().await.unwrap_or(LOOK);
        drop(shared);
        let _ = timeout(wait, nudged.notified()).await;
    }
}
