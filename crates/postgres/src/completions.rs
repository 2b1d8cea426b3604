//! Completions that are written later: the ends of runs that may be repeated after a crash.
//!
//! A run that has ended adds its item to those that wait, and its worker goes on. A task writes all that waits by one statement, with
//! one sync of the disk; meanwhile others come to wait. The statement ends the leases that have not expired, and can be repeated: so
//! an item whose lease has expired concerns no other one, and a statement without an answer is sent again. The items stay among those
//! that wait until then, and the process renews their leases like any others.

use crate::background::Task;
use crate::claim::{in_background, LeasedItems};
use crate::connect::{in_task, Params, Shared};
use crate::error::{Error, Result};
use crate::item::Ticket;
use crate::queue::{count, Core};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore};
use tokio::time::sleep;

/// The pause before another attempt to write.
const PAUSE: Duration = Duration::from_millis(100);

/// The completions of a queue that are not written.
pub(crate) struct Completions {
    /// For how many more there is room.
    room: Semaphore,
    waiting: Mutex<LeasedItems>,
    writer: Task,
    /// One writes at a time.
    writing: AsyncMutex<()>,
}

impl Completions {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            room: Semaphore::new(count.min(Semaphore::MAX_PERMITS)),
            waiting: Mutex::default(),
            writer: Task::default(),
            writing: AsyncMutex::default(),
        }
    }

    /// Writes until nothing waits.
    async fn write(&self, shared: &Arc<Shared>) -> Result<()> {
        let _writing = self.writing.lock().await;
        loop {
            let (ids, leases) = self.waiting.lock().clone();
            let written = ids.len();
            if written == 0 {
                return Ok(());
            }
            let params: Params<'_> = &[&ids, &leases];
            let rows = shared.run_aside(&shared.sql.complete, params).await?;
            if count(&rows[0], 0) < written as u64 {
                shared.leases.expired(); // or it was written before
            }
            let mut waiting = self.waiting.lock();
            waiting.0.drain(..written);
            waiting.1.drain(..written);
            self.room.add_permits(written);
        }
    }

    /// The same, as soon as the server can be reached.
    async fn write_all(&self, shared: &Arc<Shared>) {
        while self.write(shared).await.is_err() {
            sleep(PAUSE).await;
        }
    }
}

async fn write(shared: Weak<Shared>, completions: Weak<Completions>, nudged: Arc<Notify>) {
    loop {
        nudged.notified().await;
        let (Some(shared), Some(completions)) = (shared.upgrade(), completions.upgrade()) else {
            return;
        };
        completions.write_all(&shared).await;
    }
}

impl Core {
    /// Ends an item later. Waits while too many ends are not written. If the future is dropped meanwhile, it is not ended.
    pub(crate) async fn complete_later(&self, (id, lease): LeasedItems) -> Result<Vec<Ticket>> {
        let completions = self.completions.as_ref().ok_or(Error::Ended)?;
        let room = completions.room.acquire().await.map_err(|_| Error::Ended)?;
        room.forget();
        let mut waiting = completions.waiting.lock();
        waiting.0.extend(id);
        waiting.1.extend(lease);
        drop(waiting);
        let of = Arc::downgrade(completions);
        let writer = |shared, nudged| write(shared, of, nudged);
        completions.writer.start(&self.db.shared, writer);
        completions.writer.nudge();
        Ok(Vec::new())
    }

    /// Writes the ends that wait. It goes on if this future is dropped.
    pub(crate) async fn write_completions(&self) -> Result<()> {
        let Some(completions) = self.completions.clone() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.db.shared);
        in_task(async move { completions.write(&shared).await }).await
    }

    /// The same in the background, when the queue is dropped.
    pub(crate) fn leave_completions(&self) {
        if let Some(completions) = self.completions.clone() {
            let shared = Arc::clone(&self.db.shared);
            in_background(&self.db.shared, async move {
                completions.write_all(&shared).await;
            });
        }
    }
}
