//! What the process does besides its transactions: it makes due items ready, and renews its leases.

use crate::connect::{Postgres, Shared};
use crate::error::Error;
use crate::queue::{micros, Rules};
use parking_lot::Mutex;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{timeout, Instant};

/// How long the promoter waits if nothing is due: other processes may have pushed delayed items.
const LOOK: Duration = Duration::from_secs(1);

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
    /// Something may be due earlier than it was known.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }
}

impl Shared {
    /// Moves what is due, now. Returns whether something became ready.
    pub(crate) async fn promote_now(&self) -> Result<bool, Error> {
        let process = self.process().await?;
        let mut moved = false;
        for sql in [&self.sql.promote, &self.sql.lapse] {
            let rows = self.run(sql, &[&process]).await?;
            self.hub.wake_rows(&rows);
            moved |= !rows.is_empty();
        }
        Ok(moved)
    }

    /// Forgets what dead processes have left.
    async fn sweep(&self) -> Result<(), Error> {
        self.run(&self.sql.forget_holders, &[]).await?;
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

    /// Moves what is due, and returns how long nothing else is.
    async fn promote(&self) -> Result<Duration, Error> {
        if self.promote_now().await? {
            return Ok(Duration::ZERO);
        }
        let next = self.run(&self.sql.next_due, &[]).await?;
        let seconds: Option<f64> = next[0].get(0);
        let wait = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
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
        if sweep <= Instant::now() && shared.sweep().await.is_ok() {
            sweep = Instant::now() + SWEEP;
        }
        let wait = shared.promote().await.unwrap_or(LOOK);
        drop(shared);
        let _ = timeout(wait, nudged.notified()).await;
    }
}

impl Leases {
    /// A number for a claim that no other claim has, of any process: a lease that expired is not taken for a later one.
    pub(crate) fn next_claim(&self) -> i64 {
        // ORDERING: Relaxed; only the numbers differ.
        let count = self.claims.fetch_add(1, Ordering::Relaxed);
        i64::from_ne_bytes(self.random.hash_one(count).to_ne_bytes())
    }

    /// A lease has expired: the next claim renews its holder first, which may be dead for the server, whose clock may have jumped.
    pub(crate) fn expired(&self) {
        let now = Instant::now();
        for holder in self.holders.lock().iter_mut() {
            holder.alive_until = now;
        }
    }

    /// The holder with the name and the term of a queue, if it is alive.
    pub(crate) fn alive(&self, rules: &Rules) -> Option<i64> {
        let holders = self.holders.lock();
        let holder = holders.iter().find(|holder| holder.is_of(rules))?;
        (Instant::now() < holder.alive_until).then_some(holder.id)
    }
}

/// The holders of this process.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    task: Task,
    holders: Mutex<Vec<Holder>>,
    /// One renewal at a time.
    renewing: AsyncMutex<()>,
    /// The number of claims.
    claims: AtomicU64,
    /// Random for each process.
    random: RandomState,
    /// There is another holder.
    added: Arc<Notify>,
}

#[derive(Clone, Debug)]
struct Holder {
    id: i64,
    name: Arc<str>,
    term: Duration,
    /// Until when it is alive, as this process knows.
    alive_until: Instant,
}

impl Holder {
    fn is_of(&self, rules: &Rules) -> bool {
        self.name == rules.holder && Some(self.term) == rules.term
    }
}

impl Postgres {
    /// The holder with the name and the term of a queue: alive, and renewed from now on.
    pub(crate) async fn holder(&self, rules: &Rules) -> Result<i64, Error> {
        let shared = &self.shared;
        let leases = &shared.leases;
        if let Some(id) = leases.alive(rules) {
            return Ok(id);
        }
        let _renewing = leases.renewing.lock().await;
        if let Some(id) = leases.alive(rules) {
            return Ok(id);
        }
        let find = || {
            leases
                .holders
                .lock()
                .iter()
                .find(|holder| holder.is_of(rules))
                .cloned()
        };
        let holder = match find() {
            Some(holder) => holder,
            None => shared.new_holder(rules).await?,
        };
        let id = holder.id;
        shared.beat(vec![holder]).await?;
        let weak = Arc::downgrade(shared);
        let added = Arc::clone(&leases.added);
        leases.task.start(|| renew(weak, added));
        leases.added.notify_one();
        self.start_promoter();
        Ok(id)
    }
}

impl Shared {
    async fn new_holder(&self, rules: &Rules) -> Result<Holder, Error> {
        let holder = Holder {
            id: self.next_id().await?,
            name: Arc::clone(&rules.holder),
            term: rules.term.unwrap_or_default(),
            alive_until: Instant::now(),
        };
        self.leases.holders.lock().push(holder.clone());
        Ok(holder)
    }

    /// Tells the server that these holders are alive.
    async fn beat(&self, holders: Vec<Holder>) -> Result<(), Error> {
        let now = Instant::now();
        let ids: Vec<i64> = holders.iter().map(|holder| holder.id).collect();
        let names: Vec<&str> = holders.iter().map(|holder| &*holder.name).collect();
        let terms: Vec<i64> = holders.iter().map(|holder| micros(holder.term)).collect();
        self.run(&self.sql.beat, &[&ids, &names, &terms]).await?;
        for holder in self.leases.holders.lock().iter_mut() {
            if ids.contains(&holder.id) {
                holder.alive_until = now.checked_add(holder.term).unwrap_or(now + LOOK);
            }
        }
        Ok(())
    }
}

/// Renews the leases three times in each term.
async fn renew(shared: Weak<Shared>, added: Arc<Notify>) {
    while let Some(term) = shortest_term(&shared) {
        if timeout(term / 3, added.notified()).await.is_ok() {
            continue; // its term may be shorter
        }
        if let Some(shared) = shared.upgrade() {
            let _renewing = shared.leases.renewing.lock().await;
            let holders = shared.leases.holders.lock().clone();
            let _ = shared.beat(holders).await; // again in a third of the term, if it fails
        }
    }
}

/// The shortest term of a holder; `None` if the database is no longer used.
fn shortest_term(shared: &Weak<Shared>) -> Option<Duration> {
    let shared = shared.upgrade()?;
    let holders = shared.leases.holders.lock();
    let shortest = holders.iter().map(|holder| holder.term).min();
    Some(shortest.unwrap_or(LOOK))
}
