//! Items that a process leases ahead of their delivery: a queue in memory between a leased queue and its pops.
//!
//! A pop takes from memory. If less than half of the items are left there, a task claims more; if there are none, the pop waits
//! for a claim. How many are claimed is fixed, or what the workers of this process do soon: as many as they have ended lately; if they
//! take none for a while, those that are left are given back, so that none waits behind a slow job. One claim runs at a time, on the connection for short statements. An item whose lease may have expired since it
//! was claimed is given back unseen: it has the period of its holder, which changes then. What a claim brings after the items
//! were released is given back too: it has the number of releases at its begin.

use crate::claim::{claim, release, Claimed, Leased};
use crate::error::{Error, Result};
use crate::queue::{Core, PgQueue};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{sleep_until, Instant};

/// Items are claimed for this time, if their number is not fixed.
const SOON: Duration = Duration::from_millis(50);
/// What ended in less than this time says nothing yet.
const LATELY: Duration = Duration::from_millis(10);

/// If no item was taken for this time, all are given back, if their number is not fixed.
const IDLE: Duration = Duration::from_millis(500);

/// The items that are claimed and not delivered.
pub(crate) struct Buffer {
    /// How many there are at most, unless a pop asks for more.
    size: usize,
    /// There are no more than the workers do soon.
    learns: bool,
    ahead: Mutex<Ahead>,
    /// One claim at a time.
    claims: AsyncMutex<()>,
}

#[derive(Default)]
struct Ahead {
    items: VecDeque<Leased>,
    /// How many items pops are waiting for that have not claimed yet.
    waiting: usize,
    /// How often all were released.
    releases: u64,
    /// How many items ended since this time.
    ended: usize,
    since: Option<Instant>,
    /// How many end soon, as far as is known.
    soon: usize,
    /// When one was taken, or claimed, last, while somebody looks whether they are to be given back.
    taken: Option<Instant>,
}

impl Ahead {
    /// How many items end soon, at the pace of those that ended lately.
    fn learn(&mut self) -> usize {
        let now = Instant::now();
        let elapsed = now - *self.since.get_or_insert(now);
        if elapsed >= LATELY {
            self.soon = soon(mem::take(&mut self.ended), elapsed);
            self.since = Some(now);
        }
        self.soon
    }
}

/// How many items end soon, if so many ended in this time.
fn soon(ended: usize, elapsed: Duration) -> usize {
    let per_item = elapsed.as_nanos() / u128::try_from(ended.max(1)).unwrap_or(1);
    let count = SOON.as_nanos() / per_item.max(1);
    usize::try_from(count).map_or(usize::MAX, |count| count * usize::from(ended > 0))
}

impl Buffer {
    /// For `size` items, or if it `learns` for those that the workers do soon, up to `size`.
    pub(crate) fn new(size: usize, learns: bool) -> Self {
        Self {
            size,
            learns,
            ahead: Mutex::default(),
            claims: AsyncMutex::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ahead.lock().items.len()
    }

    /// Drops an item that is a dead letter.
    pub(crate) fn cancel(&self, ticket: i64) {
        let mut ahead = self.ahead.lock();
        ahead.items.retain(|item| item.record.ticket != ticket);
    }

    /// An item has ended.
    pub(crate) fn ended(&self) {
        if self.learns {
            self.ahead.lock().ended += 1;
        }
    }

    /// How many items to claim ahead: none, while more than half of them are there.
    fn wanted(&self) -> usize {
        let mut ahead = self.ahead.lock();
        let size = if self.learns {
            ahead.learn().min(self.size)
        } else {
            self.size
        };
        let len = ahead.items.len();
        if len > size / 2 {
            return 0;
        }
        size - len
    }

    /// Moves items of this period into `claimed`, until it has `max`. Those of other periods, and those whose time to live is over, are
    /// given back. Returns the number of releases.
    fn take(&self, claimed: &mut Claimed, max: usize, period: Option<u64>) -> u64 {
        let mut expired = Claimed::new(&claimed.shared, Vec::new());
        let mut ahead = self.ahead.lock();
        ahead.taken = ahead.taken.map(|_| Instant::now());
        while claimed.items.len() < max {
            let Some(item) = ahead.items.pop_front() else {
                break;
            };
            let is_held = Some(item.period) == period && !item.is_over();
            let to = if is_held { &mut *claimed } else { &mut expired };
            to.items.push(item);
        }
        ahead.releases
    }

    /// Adds items to `claimed` until it has `max`, and fills the memory. `releases` is their number when this was decided.
    async fn fill(
        &self,
        (core, id): (&Core, i32),
        (mut claimed, max): (Claimed, usize),
        releases: u64,
    ) -> Result<Claimed> {
        let missing = max - claimed.items.len();
        self.ahead.lock().waiting += missing;
        let claims = core.db.shared.lock(&self.claims).await;
        self.ahead.lock().waiting -= missing;
        let _claims = claims?;
        self.take(&mut claimed, max, core.period());
        let missing = max - claimed.items.len();
        let others = self.ahead.lock().waiting; // until this claim has ended
        let wanted = self.wanted().max(missing + others);
        if wanted == 0 || max > 0 && missing == 0 {
            return Ok(claimed); // another claim has filled it meanwhile
        }
        let mut new = claim(core, id, wanted, true).await?;
        let delivered = missing.min(new.items.len());
        claimed.items.extend(new.items.drain(..delivered));
        let mut ahead = self.ahead.lock();
        if ahead.releases == releases {
            ahead.items.extend(new.into_items());
        }
        Ok(claimed)
    }

    /// Whether somebody is to look from now on whether the items are given back.
    fn begins(&self) -> bool {
        let mut ahead = self.ahead.lock();
        let begins = self.learns && ahead.taken.is_none() && !ahead.items.is_empty();
        if begins {
            ahead.taken = Some(Instant::now());
        }
        begins
    }

    /// Until when the items are kept, unless one is taken. `None` if they are to be given back, or there are none.
    fn kept(&self) -> Option<Instant> {
        let mut ahead = self.ahead.lock();
        let until = ahead.taken.map(|taken| taken + IDLE);
        let until = until.filter(|until| *until > Instant::now() && !ahead.items.is_empty());
        if until.is_none() {
            ahead.taken = None;
        }
        until
    }
}

/// Gives back what is claimed ahead, when the workers take none of it for a while.
async fn give_back(core: Weak<Core>, buffer: Arc<Buffer>) {
    while let Some(until) = buffer.kept() {
        sleep_until(until).await;
    }
    if let Some(core) = core.upgrade() {
        drop(core.release_prefetched()); // in the background
    }
}

/// Takes up to `max` items, from memory first. The claims are tasks, which go on if this future is dropped.
pub(crate) async fn take_ahead(
    core: &Arc<Core>,
    buffer: &Arc<Buffer>,
    id: i32,
    max: usize,
) -> Result<Claimed> {
    let none = || Claimed::new(&core.db.shared, Vec::new());
    let mut claimed = none();
    let releases = buffer.take(&mut claimed, max, core.period());
    let fill = |to| {
        let (core, buffer) = (Arc::clone(core), Arc::clone(buffer));
        tokio::spawn(async move {
            let filled = buffer.fill((&core, id), to, releases).await;
            if buffer.begins() {
                tokio::spawn(give_back(Arc::downgrade(&core), buffer));
            }
            filled
        })
    };
    if claimed.items.len() < max {
        return fill((claimed, max)).await.unwrap_or(Err(Error::Ended));
    }
    if buffer.wanted() > 0 && buffer.claims.try_lock().is_ok() {
        fill((none(), 0)); // a pop that needs items sees an error
    }
    Ok(claimed)
}

impl Core {
    /// The items that are claimed ahead, for a worker or another pop. Those of which there are no more than workers do soon are
    /// for workers alone, and are none if an item is delivered once only: a crash would end all of them.
    pub(crate) fn buffer(&self, of_worker: bool) -> Option<&Arc<Buffer>> {
        let learns = of_worker && self.rules.max_attempts != Some(1);
        self.buffer
            .as_ref()
            .filter(|buffer| learns || !buffer.learns)
    }

    /// The period of the leases of this process, unless they may have expired.
    fn period(&self) -> Option<u64> {
        let alive = self.db.shared.leases.alive(&self.rules);
        alive.map(|alive| alive.period)
    }

    /// Gives the items in memory back, in the background if the future is dropped, and has the claims that are under way do the same.
    pub(crate) fn release_prefetched(&self) -> impl Future<Output = Result<()>> {
        let ahead = self.buffer.iter().flat_map(|buffer| {
            let mut ahead = buffer.ahead.lock();
            ahead.releases += 1;
            mem::take(&mut ahead.items)
        });
        let claimed = Claimed::new(&self.db.shared, ahead.collect());
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
    pub async fn release_prefetched(&self) -> Result<()> {
        self.core.release_prefetched().await
    }
}

#[cfg(test)]
mod tests {
    use super::soon;
    use std::time::Duration;

    #[test]
    fn what_ended_lately_says_how_many_end_soon() {
        let second = Duration::from_secs(1);
        assert_eq!(soon(1000, second), 50);
        assert_eq!(soon(1000, second / 10), 500);
        assert_eq!([soon(1, second), soon(0, second)], [0, 0]);
    }
}
