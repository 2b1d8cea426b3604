//! Completions that are written later: the ends of runs that may be repeated after a crash.
//!
//! A run that has ended adds its item to those that wait, and its worker goes on. A task writes all that waits by one statement, with
//! one sync of the disk; meanwhile others come to wait. The statement ends the leases that have not expired, and can be repeated: so
//! an item whose lease has expired concerns no other one, and a statement without an answer is sent again. The items stay among those
//! that wait until then, and the process renews their leases like any others.

use crate::claim::LeasedItems;
use crate::connect::{in_task, Params, Shared};
use crate::error::{Error, Result};
use crate::item::Ticket;
use crate::queue::{count, Core};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// The pause before another attempt to write.
const PAUSE: Duration = Duration::from_millis(100);

/// The completions of a queue that are not written.
pub(crate) struct Completions {
    /// For how many more there is room.
    room: Semaphore,
    waiting: Mutex<Waiting>,
    /// One writes at a time.
    writing: AsyncMutex<()>,
}

#[derive(Default)]
struct Waiting {
    items: LeasedItems,
    /// Writes until nothing waits.
    writer: Option<AbortHandle>,
}

impl Completions {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            room: Semaphore::new(count.min(Semaphore::MAX_PERMITS)),
            waiting: Mutex::default(),
            writing: AsyncMutex::default(),
        }
    }

    /// Adds an item. If no other one waits, nobody writes, or is about to end: then it starts a writer, which keeps what it needs until all
    /// is written, also if the queue is dropped. So it does if a writer has ended with its runtime.
    fn add(self: &Arc<Self>, shared: &Arc<Shared>, (id, lease): LeasedItems) {
        let mut waiting = self.waiting.lock();
        let has_ended = waiting.writer.as_ref().is_none_or(AbortHandle::is_finished);
        if waiting.items.0.is_empty() || has_ended {
            let (completions, shared) = (Arc::clone(self), Arc::clone(shared));
            let writer = tokio::spawn(async move {
                while completions.write(&shared).await.is_err() {
                    sleep(PAUSE).await;
                }
            });
            waiting.writer = Some(writer.abort_handle());
        }
        waiting.items.0.extend(id);
        waiting.items.1.extend(lease);
    }

    /// Writes until nothing waits.
    async fn write(&self, shared: &Arc<Shared>) -> Result<()> {
        let _writing = self.writing.lock().await;
        loop {
            let (ids, leases) = self.waiting.lock().items.clone();
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
            waiting.items.0.drain(..written);
            waiting.items.1.drain(..written);
            self.room.add_permits(written);
        }
    }
}

impl Core {
    /// Ends an item later. Waits while too many ends are not written. If the future is dropped meanwhile, it is not ended.
    pub(crate) async fn complete_later(&self, item: LeasedItems) -> Result<Vec<Ticket>> {
        let completions = self.completions.as_ref().ok_or(Error::Ended)?;
        let room = completions.room.acquire().await;
        room.map_err(|_| Error::Ended)?.forget();
        completions.add(&self.db.shared, item);
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
}
