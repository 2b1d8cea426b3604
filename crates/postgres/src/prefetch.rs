//! Items that a process leases ahead of their delivery: a queue in memory between a leased queue and its pops.
//!
//! A pop takes from memory. If less than half of the items are left there, a task claims more; if there are none, the pop waits
//! for a claim. One claim runs at a time, on the connection for short statements. An item whose lease may have expired since it
//! was claimed is given back unseen: it has the period of its holder, which changes then. What a claim brings after the items
//! were released is given back too: it has the number of releases at its begin.

use crate::claim::{claim, release, ClaimOn, Claimed, Delivered};
use crate::error::Error;
use crate::item::Record;
use crate::queue::{Core, PgQueue};
use requeue::{Handle, Queue};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The items that are claimed and not delivered.
pub(crate) struct Buffer {
    /// How many there are at most, unless a pop asks for more.
    size: usize,
    items: Queue<Prefetched>,
    /// One claim at a time. All pushes are of one handle, so they keep their order.
    pushes: Mutex<Handle<Prefetched>>,
    /// A task claims ahead.
    is_filling: AtomicBool,
    releases: AtomicU64,
}

struct Prefetched {
    record: Record,
    claim: i64,
    /// The period of its holder.
    period: u64,
}

impl Buffer {
    pub(crate) fn new(size: usize) -> Self {
        let items = Queue::unbounded();
        Self {
            size,
            pushes: Mutex::new(items.handle()),
            items,
            is_filling: AtomicBool::new(false),
            releases: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Moves items of this period into `claimed`, until it has `max`. Those of other periods are given back.
    fn take(&self, claimed: &mut Claimed, max: usize, period: Option<u64>) {
        let mut expired = Claimed::none(&claimed.shared);
        while claimed.items.len() < max {
            let Ok(item) = self.items.pop() else {
                return;
            };
            let is_held = Some(item.period) == period;
            let to = if is_held { &mut *claimed } else { &mut expired };
            to.items.push((item.record, item.claim));
        }
    }

    fn releases(&self) -> u64 {
        // ORDERING: Relaxed; the items are passed by the queue, and a release that is missed here comes after the pop.
        self.releases.load(Ordering::Relaxed)
    }
}

/// Takes up to `max` items, from memory first.
pub(crate) async fn take_ahead(core: &Arc<Core>, id: i32, max: usize) -> Result<Claimed, Error> {
    let mut claimed = Claimed::none(&core.db.shared);
    let Some(buffer) = &core.buffer else {
        return Ok(claimed);
    };
    buffer.take(&mut claimed, max, core.period());
    if claimed.items.len() < max {
        // A task, so that the claim goes on if this future is dropped.
        let filled = tokio::spawn(fill(Arc::clone(core), id, claimed, max, buffer.releases()));
        return filled.await.unwrap_or(Err(Error::Ended));
    }
    // ORDERING: Relaxed; only one task is started.
    let is_low = buffer.items.len() <= buffer.size / 2;
    if is_low && !buffer.is_filling.swap(true, Ordering::Relaxed) {
        let filling = Filling(Arc::clone(core));
        let none = Claimed::none(&core.db.shared);
        let filled = fill(Arc::clone(core), id, none, 0, buffer.releases());
        tokio::spawn(async move {
            let _filling = filling;
            let _ = filled.await; // a pop that needs items sees the error
        });
    }
    Ok(claimed)
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

/// Adds items to `claimed` until it has `max`, and fills the memory. `releases` is their number when this was decided.
async fn fill(
    core: Arc<Core>,
    id: i32,
    mut claimed: Claimed,
    max: usize,
    releases: u64,
) -> Result<Claimed, Error> {
    let Some(buffer) = &core.buffer else {
        return Ok(claimed);
    };
    let mut pushes = core.db.shared.lock(&buffer.pushes).await?;
    buffer.take(&mut claimed, max, core.period());
    let missing = max - claimed.items.len();
    let ahead = buffer.items.len();
    let wanted = buffer.size.max(missing).saturating_sub(ahead);
    if wanted == 0 || (max > 0 && missing == 0) {
        return Ok(claimed);
    }
    let mut new = claim(&core, id, wanted, ClaimOn::Control).await?;
    let delivered = missing.min(new.items.len());
    claimed.items.extend(new.items.drain(..delivered));
    if buffer.releases() == releases {
        let period = new.period;
        let prefetched = new.into_items().into_iter();
        let prefetched = prefetched.map(|(record, claim)| Prefetched {
            record,
            claim,
            period,
        });
        // The queue is never closed, and has no bound.
        let _ = pushes.push_batch(prefetched);
    }
    Ok(claimed)
}

impl Core {
    /// The period of the leases of this process, unless they may have expired.
    fn period(&self) -> Option<u64> {
        let alive = self.db.shared.leases.alive(&self.rules);
        alive.map(|alive| alive.period)
    }

    /// Takes the items in memory, to give them back, and has the claims that are under way do the same.
    fn take_prefetched(&self) -> Claimed {
        let mut claimed = Claimed::none(&self.db.shared);
        if let Some(buffer) = &self.buffer {
            // ORDERING: Relaxed; as above.
            buffer.releases.fetch_add(1, Ordering::Relaxed);
            let items = std::iter::from_fn(|| buffer.items.pop().ok());
            claimed
                .items
                .extend(items.map(|item| (item.record, item.claim)));
        }
        claimed
    }

    pub(crate) async fn release_prefetched(&self) -> Result<(), Error> {
        let claimed = self.take_prefetched();
        release(&self.db.shared, &claimed.held(), Delivered::No).await?;
        claimed.into_items();
        Ok(())
    }

    /// Gives the items in memory back, in the background.
    pub(crate) fn give_back_prefetched(&self) {
        drop(self.take_prefetched());
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
