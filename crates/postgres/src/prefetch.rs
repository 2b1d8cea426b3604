//! Items that a process leases ahead of their delivery: a queue in memory between a leased queue and its pops.
//!
//! A pop takes from memory. If less than half of the items are left there, a task claims more; if there are none, the pop waits
//! for a claim. One claim runs at a time, on the connection for short statements. If the leases of this process may have
//! expired, what is in memory is given back unseen.

use crate::claim::{claim, release, Claimed, Connection, Delivered};
use crate::error::Error;
use crate::item::Record;
use crate::queue::{Core, PgQueue};
use requeue::Queue;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The items that are claimed and not delivered.
pub(crate) struct Buffer {
    /// How many there are at most, unless a pop asks for more.
    size: usize,
    /// With the number of their claim.
    items: Queue<(Record, i64)>,
    /// One claim at a time.
    claiming: Mutex<()>,
    /// A task claims ahead.
    is_filling: AtomicBool,
}

impl Buffer {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            items: Queue::unbounded(),
            claiming: Mutex::default(),
            is_filling: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Moves up to `max` items into `claimed`.
    fn take(&self, claimed: &mut Claimed, max: usize) {
        let items = std::iter::from_fn(|| self.items.pop().ok());
        claimed.items.extend(items.take(max - claimed.items.len()));
    }
}

/// Takes up to `max` items, from memory first.
pub(crate) async fn take_ahead(core: &Arc<Core>, id: i32, max: usize) -> Result<Claimed, Error> {
    let mut claimed = Claimed::none(&core.db.shared);
    let Some(buffer) = &core.buffer else {
        return Ok(claimed);
    };
    if core.db.shared.leases.alive(&core.rules).is_none() {
        core.give_back_prefetched();
    }
    buffer.take(&mut claimed, max);
    while claimed.items.len() < max {
        let missing = max - claimed.items.len();
        let core = Arc::clone(core);
        // A task, so that the claim goes on if this future is dropped.
        let filled = tokio::spawn(async move { core.fill(id, missing).await });
        let found = filled.await.unwrap_or(Err(Error::Ended))?;
        buffer.take(&mut claimed, max);
        if !found {
            return Ok(claimed);
        }
    }
    if buffer.items.len() <= buffer.size / 2 {
        fill_later(core, id);
    }
    Ok(claimed)
}

/// Claims ahead in a task, unless one does.
fn fill_later(core: &Arc<Core>, id: i32) {
    let Some(buffer) = &core.buffer else {
        return;
    };
    // ORDERING: Relaxed; the items are passed by the queue.
    if !buffer.is_filling.swap(true, Ordering::Relaxed) {
        let filling = Filling(Arc::clone(core));
        tokio::spawn(async move {
            let _ = filling.0.fill(id, 0).await; // a pop that needs items sees the error
        });
    }
}

/// A task that claims ahead.
struct Filling(Arc<Core>);

impl Drop for Filling {
    fn drop(&mut self) {
        if let Some(buffer) = &self.0.buffer {
            // ORDERING: Relaxed; as above.
            buffer.is_filling.store(false, Ordering::Relaxed);
        }
    }
}

impl Core {
    /// Claims items, unless so many are in memory as are `missing`. Returns whether there may be more.
    async fn fill(&self, id: i32, missing: usize) -> Result<bool, Error> {
        let Some(buffer) = &self.buffer else {
            return Ok(false);
        };
        let _claiming = buffer.claiming.lock().await;
        let ahead = buffer.items.len();
        if missing > 0 && ahead >= missing {
            return Ok(true);
        }
        let max = buffer.size.max(missing).saturating_sub(ahead);
        let claimed = claim(self, id, max, Connection::Control).await?;
        let found = claimed.items.len();
        // The queue is never closed, and has no bound.
        let _ = buffer.items.push_batch(claimed.into_items());
        Ok(found > 0)
    }

    pub(crate) async fn release_prefetched(&self) -> Result<(), Error> {
        let Some(buffer) = &self.buffer else {
            return Ok(());
        };
        let _claiming = buffer.claiming.lock().await;
        let mut claimed = Claimed::none(&self.db.shared);
        buffer.take(&mut claimed, usize::MAX);
        release(&self.db.shared, &claimed.held(), Delivered::No).await?;
        claimed.into_items();
        Ok(())
    }

    /// Gives the items in memory back, in the background.
    pub(crate) fn give_back_prefetched(&self) {
        if let Some(buffer) = &self.buffer {
            buffer.take(&mut Claimed::none(&self.db.shared), usize::MAX);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.give_back_prefetched();
    }
}

impl<T> PgQueue<T> {
    /// Gives back the items that are [prefetched](crate::Builder::prefetch) and not delivered, so that other processes can take
    /// them now. [`Tasks::stop`](crate::Tasks::stop) does so too; dropping the last clone of the queue does it in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`]: then they are given back in the background.
    pub async fn release_prefetched(&self) -> Result<(), Error> {
        self.core.release_prefetched().await
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("size", &self.size)
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}
