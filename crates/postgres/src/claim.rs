//! Claims: which items a pop takes.

use crate::connect::{query_alone, Params, Postgres, Shared};
use crate::error::Error;
use crate::item::Record;
use crate::queue::Core;
use crate::sql::Order;
use deadpool_postgres::ClientWrapper;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// The pause before another attempt to undo a claim.
const PAUSE: Duration = Duration::from_millis(100);

/// The order by keys, if the queue has one.
fn order_of(core: &Core) -> Option<Order> {
    match (core.rules.keyed, core.rules.serial) {
        (false, _) => None,
        (true, false) => Some(Order::Fair),
        (true, true) => Some(Order::Serial),
    }
}

/// The statements of one claim: one, or for an order by keys one for each round through the keys.
pub(crate) struct Turn<'q> {
    core: &'q Core,
    wanted: i64,
    next: Option<Order>,
    key: String,
}

impl<'q> Turn<'q> {
    pub(crate) fn new(core: &'q Core, wanted: i64) -> Self {
        let next = match order_of(core) {
            None => Order::Fifo,
            Some(Order::Fair) if wanted == 1 => Order::FairOne,
            Some(order) => order,
        };
        Self {
            core,
            wanted,
            next: Some(next),
            key: core.last_key.lock().clone(),
        }
    }

    /// The next statement, and how many items it takes at most.
    pub(crate) fn next(&self) -> Option<(Order, i64)> {
        self.next.map(|order| (order, self.wanted))
    }

    /// The key after which it takes items.
    pub(crate) fn key(&self) -> String {
        self.key.clone()
    }

    /// Keeps what the statement took.
    pub(crate) fn took(&mut self, rows: impl Iterator<Item = Record>, records: &mut Vec<Record>) {
        let mut taken: Vec<Record> = rows.collect();
        self.wanted -= i64::try_from(taken.len()).unwrap_or(i64::MAX);
        self.next = self.after(taken.is_empty()).filter(|_| self.wanted > 0);
        if order_of(self.core).is_none() {
            taken.sort_unstable_by_key(|record| (record.priority, record.id));
        } else {
            taken.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            if let Some(last) = taken.last().and_then(|record| record.key.clone()) {
                self.key.clone_from(&last);
                *self.core.last_key.lock() = last;
            }
        }
        records.append(&mut taken);
    }

    /// The statement after one, unless enough is taken.
    fn after(&mut self, in_vain: bool) -> Option<Order> {
        match (self.next?, in_vain) {
            (Order::Fifo, _) | (Order::FairOne, true) => None,
            (Order::Fair, true) => Some(Order::FairOne), // around the end
            (Order::Fair | Order::FairOne, false) => Some(Order::Fair),
            (Order::Serial, false) => Some(Order::Serial),
            (Order::Serial, true) if self.key.is_empty() => None,
            (Order::Serial, true) => {
                self.key.clear();
                Some(Order::Serial)
            }
        }
    }
}

/// By what an item is leased: its holder, and the number of the claim among those of the holder. So a transaction whose lease has
/// expired does not end a later lease of the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) holder: i64,
    pub(crate) claim: i64,
}

/// Leased items: their ids and leases.
#[derive(Debug, Default)]
pub(crate) struct Leased {
    pub(crate) ids: Vec<i64>,
    pub(crate) holders: Vec<i64>,
    pub(crate) claims: Vec<i64>,
}

impl FromIterator<(i64, Lease)> for Leased {
    fn from_iter<I: IntoIterator<Item = (i64, Lease)>>(items: I) -> Self {
        let mut leased = Self::default();
        for (id, lease) in items {
            leased.ids.push(id);
            leased.holders.push(lease.holder);
            leased.claims.push(lease.claim);
        }
        leased
    }
}

/// Items that a holder has claimed. If they are dropped before a transaction takes them over, they are released.
pub(crate) struct Claimed {
    db: Postgres,
    lease: Lease,
    records: Vec<Record>,
}

impl Claimed {
    pub(crate) fn into_records(mut self) -> (Lease, Vec<Record>) {
        (self.lease, std::mem::take(&mut self.records))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let held = self.records.iter().map(|record| (record.id, self.lease));
        release_later(&self.db, held.collect());
    }
}

/// Claims items for the holder of the queue. If the future is dropped, what was claimed is released.
pub(crate) async fn claim_leased(
    core: &Arc<Core>,
    id: i32,
    max: i64,
    has_connection: bool,
) -> Result<Claimed, Error> {
    let (send, claimed) = oneshot::channel();
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let _ = send.send(claim(&core, id, max, has_connection).await);
    });
    claimed.await.unwrap_or(Err(Error::Ended))
}

/// A claim whose outcome is unknown, because its connection failed, is undone.
async fn claim(core: &Core, id: i32, max: i64, has_connection: bool) -> Result<Claimed, Error> {
    let shared = &core.db.shared;
    let holder = core.db.holder(&core.rules).await?;
    let claim = shared.leases.next_claim();
    let lease = Lease { holder, claim };
    // Who has a connection must not wait for a second one.
    let (own, control);
    let client = if has_connection {
        control = shared.control().await?;
        &control.0
    } else {
        own = shared.connection().await?;
        &*own
    };
    let mut records = Vec::new();
    let taken = take(core, client, (id, max, lease), &mut records).await;
    if taken.is_err() {
        let term = core.rules.term.unwrap_or_default();
        tokio::spawn(undo(Arc::downgrade(shared), lease, term));
    }
    taken.map(|()| Claimed {
        db: core.db.clone(),
        lease,
        records,
    })
}

async fn take(
    core: &Core,
    client: &ClientWrapper,
    (id, max, lease): (i32, i64, Lease),
    records: &mut Vec<Record>,
) -> Result<(), Error> {
    let mut turn = Turn::new(core, max);
    while let Some((order, wanted)) = turn.next() {
        let sql = core.db.shared.sql.claims.claim(order, true);
        let key = turn.key();
        let params: Params<'_> = &[&id, &wanted, &lease.holder, &lease.claim, &key];
        let used = params.len() - usize::from(order == Order::Fifo); // it has no key
        let rows = query_alone(client, sql, &params[..used]).await?;
        turn.took(rows.iter().map(Record::read), records);
    }
    Ok(())
}

/// Undoes a claim as soon as the server can be reached, and again after a term: it may have gone on without its connection.
async fn undo(shared: Weak<Shared>, lease: Lease, term: Duration) {
    let mut undone = false;
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let again = undone;
        undone |= shared.undo_claim(lease).await.is_ok();
        drop(shared);
        if again {
            return;
        }
        sleep(if undone { term } else { PAUSE }).await;
    }
}

impl Shared {
    async fn undo_claim(&self, lease: Lease) -> Result<(), Error> {
        let process = self.process().await?;
        let params: Params<'_> = &[&process, &lease.holder, &lease.claim];
        let rows = self.run(&self.sql.undo_claim, params).await?;
        self.hub.wake_rows(&rows);
        Ok(())
    }
}

/// Gives leased items back, and wakes waiters for them.
pub(crate) async fn release(db: &Postgres, held: &Leased) -> Result<(), Error> {
    let shared = &db.shared;
    let process = shared.process().await?;
    let params: Params<'_> = &[&process, &held.ids, &held.holders, &held.claims];
    let rows = shared.run(&shared.sql.release, params).await?;
    shared.hub.wake_rows(&rows);
    Ok(())
}

/// Gives leased items back in a task, as soon as the server can be reached. Without a runtime they come back when the lease of
/// this process expires.
pub(crate) fn release_later(db: &Postgres, held: Leased) {
    if held.ids.is_empty() {
        return;
    }
    if let Ok(runtime) = Handle::try_current() {
        let db = db.clone();
        runtime.spawn(async move {
            while release(&db, &held).await.is_err() {
                sleep(PAUSE).await;
            }
        });
    }
}
