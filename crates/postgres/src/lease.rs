//! The leases of a process: its holders, which it renews.

use crate::background::Task;
use crate::connect::{Params, Shared};
use crate::error::{Error, Result};
use crate::queue::{micros, Rules};
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{timeout_at, Instant};

/// How long a holder is alive whose term is too long for the clock.
const LONG: Duration = Duration::from_secs(1);
/// A heartbeat has at least this time, however short the terms are: an answer takes some.
const LEAST: Duration = Duration::from_secs(1);

/// The holders of this process.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    task: Task,
    holders: Mutex<Vec<Holder>>,
    /// One caller at a time makes a holder alive. The task that renews does not wait for it.
    reviving: AsyncMutex<()>,
    /// The number of claims.
    claims: AtomicU64,
    /// Random for each process.
    random: RandomState,
}

/// A holder, whose leases have not expired in its period.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) id: i64,
    name: Arc<str>,
    term: Duration,
    /// Until when it is alive, as this process knows.
    alive_until: Instant,
    /// Raised whenever its leases may have expired.
    pub(crate) period: u64,
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
            holder.period += 1;
        }
    }

    /// The holder with the name and the term of a queue, if it is alive.
    pub(crate) fn alive(&self, rules: &Rules) -> Option<Holder> {
        self.find(rules)
            .filter(|holder| Instant::now() < holder.alive_until)
    }

    /// The server knows, from when it was `sent`, that these holders are alive.
    fn renewed(&self, told: &[Holder], sent: Instant) {
        let now = Instant::now();
        for holder in self.holders.lock().iter_mut() {
            let told = told.iter().find(|told| told.id == holder.id);
            // Otherwise a lease has expired meanwhile.
            if told.is_some_and(|told| told.period == holder.period) {
                holder.period += u64::from(now >= holder.alive_until); // others may have what it held
                let until = sent.checked_add(holder.term).unwrap_or(now + LONG);
                holder.alive_until = holder.alive_until.max(until); // answers may overtake each other
            }
        }
    }

    fn find(&self, rules: &Rules) -> Option<Holder> {
        let of = |holder: &&Holder| holder.name == rules.holder && Some(holder.term) == rules.term;
        self.holders.lock().iter().find(of).cloned()
    }
}

impl Shared {
    /// The holder with the name and the term of a queue: alive, and renewed from now on.
    pub(crate) async fn holder(self: &Arc<Self>, rules: &Rules) -> Result<Holder> {
        let leases = &self.leases;
        if let Some(alive) = leases.alive(rules) {
            return Ok(alive);
        }
        let _reviving = self.lock(&leases.reviving).await?;
        if let Some(alive) = leases.alive(rules) {
            return Ok(alive);
        }
        let holder = match leases.find(rules) {
            Some(holder) => holder,
            None => self.new_holder(rules).await?,
        };
        self.beat(&[holder], self.manner.limit).await?; // no lease is lost meanwhile
        leases.task.start(self, renew);
        leases.task.nudge(); // its term may be shorter
        self.start_promoter();
        leases.find(rules).ok_or(Error::Ended)
    }

    async fn new_holder(self: &Arc<Self>, rules: &Rules) -> Result<Holder> {
        let holder = Holder {
            id: self.next_id().await?,
            name: Arc::clone(&rules.holder),
            term: rules.term.unwrap_or_default(),
            alive_until: Instant::now(),
            period: 0,
        };
        self.leases.holders.lock().push(holder.clone());
        Ok(holder)
    }

    /// Renews the leases of these holders, on another connection soon if this one hangs: before the leases expire.
    async fn renew(self: &Arc<Self>, holders: &[Holder]) -> Result<()> {
        let limit = (shortest(holders) / 3).max(LEAST);
        self.beat(holders, limit.min(self.manner.limit)).await
    }

    /// Tells the server that these holders are alive.
    async fn beat(self: &Arc<Self>, holders: &[Holder], limit: Duration) -> Result<()> {
        let sent = Instant::now();
        let ids: Vec<i64> = holders.iter().map(|holder| holder.id).collect();
        let names: Vec<&str> = holders.iter().map(|holder| &*holder.name).collect();
        let terms: Vec<i64> = holders.iter().map(|holder| micros(holder.term)).collect();
        let params: Params<'_> = &[&ids, &names, &terms];
        self.run_within(limit, &self.sql.beat, params).await?;
        self.leases.renewed(holders, sent);
        Ok(())
    }
}

/// Renews the leases three times in each term.
async fn renew(shared: Weak<Shared>, added: Arc<Notify>) {
    let mut renewed = Instant::now();
    while let Some(used) = shared.upgrade() {
        let term = shortest(&used.leases.holders.lock());
        drop(used);
        let next = timeout_at(renewed + term / 3, added.notified());
        if next.await.is_ok() {
            continue; // there is another holder
        }
        renewed = Instant::now();
        if let Some(shared) = shared.upgrade() {
            let holders = shared.leases.holders.lock().clone();
            let _ = shared.renew(&holders).await; // again in a third of the term, if it fails
        }
    }
}

fn shortest(holders: &[Holder]) -> Duration {
    let terms = holders.iter().map(|holder| holder.term);
    terms.min().unwrap_or(LONG)
}

#[cfg(test)]
mod tests {
    use super::{Holder, Leases};
    use std::time::Duration;
    use tokio::time::Instant;

    const TERM: Duration = Duration::from_secs(3600);

    /// A holder whose leases expire `alive` after now.
    fn leases(alive: Duration) -> (Leases, Holder) {
        let holder = Holder {
            id: 1,
            name: "holder".into(),
            term: TERM,
            alive_until: Instant::now() + alive,
            period: 0,
        };
        let leases = Leases::default();
        leases.holders.lock().push(holder.clone());
        (leases, holder)
    }

    /// The period, and whether the holder is alive.
    fn now(leases: &Leases) -> (u64, bool) {
        let holder = &leases.holders.lock()[0];
        (holder.period, Instant::now() < holder.alive_until)
    }

    #[test]
    fn a_renewal_in_time_keeps_the_period() {
        let (leases, told) = leases(TERM);
        leases.renewed(&[told], Instant::now());
        assert_eq!(now(&leases), (0, true));
    }

    #[test]
    fn a_renewal_that_is_late_begins_a_period() {
        let (leases, told) = leases(Duration::ZERO);
        leases.renewed(&[told], Instant::now());
        assert_eq!(now(&leases), (1, true));
    }

    #[test]
    fn a_renewal_before_a_lease_expired_does_not_count() {
        let (leases, told) = leases(TERM);
        leases.expired();
        leases.renewed(&[told], Instant::now());
        assert_eq!(now(&leases), (1, false));
        let told = leases.holders.lock().clone();
        leases.renewed(&told, Instant::now());
        assert_eq!(now(&leases), (2, true));
    }
}
