//! Items that a process leases ahead of their delivery: a queue in memory between a leased queue and its pops.
//!
//! A pop takes from memory. If less than half of the items are left there, a task claims more; if there are none, the pop waits
//! for a claim. One claim runs at a time, on the connection for short statements. An item whose lease may have expired since it
//! was claimed is given back unseen: it has the period of its holder, which changes then. What a claim brings after the items
//! were released is given back too: it has the number of releases at its begin.

use crate::claim::{claim, release, Claimed, Leased};
use crate::error::Error;
use crate::queue::{Core, PgQueue};
use requeue::{Handle, Queue};
use std::future::Future;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The items that are claimed and not delivered.
pub(crate) struct Buffer {
    /// How many there are at most, unless a pop asks for more.
    size: usize,
    pub(crate) items: Queue<Leased>,
    /// One claim at a time. All pushes are of one handle, so they keep their order.
    pushes: Arc<Mutex<Handle<Leased>>>,
    releases: AtomicU64,
}

impl Buffer {
    pub(crate) fn new(size: usize) -> Self {
        let items = Queue::unbounded();
        Self {
            size,
            pushes: Arc::new(Mutex::new(items.handle())),
            items,
            releases: AtomicU64::new(0),
        }
    }

    /// Moves items of this period into `claimed`, until it has `max`. Those of other periods are given back.
    fn take(&self, claimed: &mut Claimed, max: usize, period: Option<u64>) {
        let mut expired = Claimed::new(&claimed.shared, Vec::new());
        while claimed.items.len() < max {
            let Ok(item) = self.items.pop() else {
                return;
            };
            let is_held = Some(item.period) == period;
            let to = if is_held { &mut *claimed } else { &mut expired };
            to.items.push(item);
        }
    }

    fn releases(&self) -> u64 {
        // ORDERING: Relaxed; the items are passed by the queue, and a release that is missed here comes after the pop.
        self.releases.load(Ordering::Relaxed)
    }

    /// Adds items to `claimed` until it has `max`, and fills the memory. `releases` is their number when this was decided.
    async fn fill(
        &self,
        pushes: &mut Handle<Leased>,
        (core, id): (&Core, i32),
        (claimed, max): (&mut Claimed, usize),
        releases: u64,
    ) -> Result<(), Error> {
        self.take(claimed, max, core.period());
        let missing = max - claimed.items.len();
        let wanted = self.size.max(missing).saturating_sub(self.items.len());
        if wanted == 0 || (max > 0 && missing == 0) {
            return Ok(());
        }
        let mut new = claim(core, id, wanted, true).await?;
        let delivered = missing.min(new.items.len());
        claimed.items.extend(new.items.drain(..delivered));
        if self.releases() == releases {
            // The queue is never closed, and has no bound.
            let _ = pushes.push_batch(new.into_items());
        }
        Ok(())
    }
}

/// Takes up to `max` items, from memory first. The claims are tasks, which go on if this future is dropped.
pub(crate) async fn take_ahead(core: &Arc<Core>, id: i32, max: usize) -> Result<Claimed, Error> {
    let mut claimed = Claimed::new(&core.db.shared, Vec::new());
    let Some(buffer) = &core.buffer else {
        return Ok(claimed);
    };
    buffer.take(&mut claimed, max, core.period());
    let (core, releases) = (Arc::clone(core), buffer.releases());
    if claimed.items.len() < max {
        let filled = tokio::spawn(async move {
            let buffer = core.buffer.as_ref().ok_or(Error::Ended)?;
            let mut pushes = core.db.shared.lock(&buffer.pushes).await?;
            let to = (&mut claimed, max);
            buffer.fill(&mut pushes, (&core, id), to, releases).await?;
            Ok(claimed)
        });
        return filled.await.unwrap_or(Err(Error::Ended));
    }
    let is_low = buffer.items.len() <= buffer.size / 2;
    let pushes = Arc::clone(&buffer.pushes).try_lock_owned();
    if let Some(mut pushes) = pushes.ok().filter(|_| is_low) {
        tokio::spawn(async move {
            let mut none = Claimed::new(&core.db.shared, Vec::new());
            if let Some(buffer) = &core.buffer {
                let to = (&mut none, 0);
                // A pop that needs items sees the error.
                let _ = buffer.fill(&mut pushes, (&core, id), to, releases).await;
            }
        });
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
        let items = self.buffer.iter().flat_map(|buffer| {
            // ORDERING: Relaxed; as above.
            buffer.releases.fetch_add(1, Ordering::Relaxed);
            iter::from_fn(|| buffer.items.pop().ok())
        });
        Claimed::new(&self.db.shared, items.collect())
    }

    /// Gives the items in memory back, in the background if the future is dropped.
    pub(crate) fn release_prefetched(&self) -> impl Future<Output = Result<(), Error>> {
        let claimed = self.take_prefetched();
        async {
            release(&claimed.shared, &claimed.held(), |sql| &sql.unclaim).await?;
            claimed.into_items();
            Ok(())
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        drop(self.release_prefetched());
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
