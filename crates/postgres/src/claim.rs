//! Claims: which items a pop takes.

use crate::connect::{Connection, Params, Shared};
use crate::error::Error;
use crate::item::Record;
use crate::lease::Alive;
use crate::prefetch::take_ahead;
use crate::queue::Core;
use crate::sql::Order;
use std::mem;
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

/// The ids of leased items, and the numbers of their leases.
pub(crate) type LeasedItems = (Vec<i64>, Vec<i64>);

/// The number of a lease: of an item and the random number of its claim together, so that no item has the lease of another one.
/// A statement compares a set of such numbers by their hashes; the time for pairs would be quadratic.
pub(crate) fn lease_number(id: i64, claim: i64) -> i64 {
    id ^ claim
}

/// Claimed items. Those that are dropped before a transaction takes them over are given back, as if they had not been claimed.
pub(crate) struct Claimed {
    pub(crate) shared: Arc<Shared>,
    /// With the number of the claim.
    pub(crate) items: Vec<(Record, i64)>,
    /// The period of the holder.
    pub(crate) period: u64,
}

impl Claimed {
    pub(crate) fn none(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            items: Vec::new(),
            period: 0,
        }
    }

    pub(crate) fn held(&self) -> LeasedItems {
        let items = self.items.iter();
        items
            .map(|(record, claim)| (record.id, lease_number(record.id, *claim)))
            .unzip()
    }

    pub(crate) fn into_items(mut self) -> Vec<(Record, i64)> {
        mem::take(&mut self.items)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        release_later(&self.shared, self.held(), Delivered::No);
    }
}

/// Claims up to `max` items, or takes them from those that were claimed ahead. If the future is dropped, they are given back.
pub(crate) async fn claim_leased(
    core: &Arc<Core>,
    id: i32,
    max: usize,
    on: ClaimOn,
) -> Result<Claimed, Error> {
    if core.buffer.is_some() {
        return take_ahead(core, id, max).await;
    }
    let (send, claimed) = oneshot::channel();
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let _ = send.send(claim(&core, id, max, on).await);
    });
    claimed.await.unwrap_or(Err(Error::Ended))
}

/// The connection of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimOn {
    Pool,
    /// That for short statements: who has a connection of the pool must not wait for a second one.
    Control,
}

/// A claim whose outcome is unknown, because its connection failed, is undone.
pub(crate) async fn claim(core: &Core, id: i32, max: usize, on: ClaimOn) -> Result<Claimed, Error> {
    let shared = &core.db.shared;
    let Alive { holder, period } = core.db.holder(&core.rules).await?;
    let number = shared.leases.next_claim();
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let (own, control);
    let connection = match on {
        ClaimOn::Pool => {
            own = shared.connection().await?;
            &own
        }
        ClaimOn::Control => {
            control = shared.control().await?;
            &*control
        }
    };
    let mut records = Vec::new();
    let taken = take(core, connection, (id, max, holder, number), &mut records).await;
    if taken.is_err() {
        let term = core.rules.term.unwrap_or_default();
        tokio::spawn(undo(Arc::downgrade(shared), holder, number, term));
    }
    taken.map(|()| Claimed {
        shared: Arc::clone(shared),
        items: records.into_iter().map(|record| (record, number)).collect(),
        period,
    })
}

async fn take(
    core: &Core,
    connection: &Connection<'_>,
    (id, max, holder, number): (i32, i64, i64, i64),
    records: &mut Vec<Record>,
) -> Result<(), Error> {
    let mut turn = Turn::new(core, max);
    while let Some((order, wanted)) = turn.next() {
        let sql = core.db.shared.sql.claims.claim(order, true);
        let key = turn.key();
        let params: Params<'_> = &[&id, &wanted, &holder, &number, &key];
        let used = params.len() - usize::from(order == Order::Fifo); // it has no key
        let rows = connection.run_alone(sql, &params[..used]).await?;
        turn.took(rows.iter().map(Record::read), records);
    }
    Ok(())
}

/// Undoes a claim as soon as the server can be reached, and again after a term: it may have gone on without its connection.
async fn undo(shared: Weak<Shared>, holder: i64, number: i64, term: Duration) {
    let mut undone = false;
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let again = undone;
        undone |= shared.undo_claim(holder, number).await.is_ok();
        drop(shared);
        if again {
            return;
        }
        sleep(if undone { term } else { PAUSE }).await;
    }
}

impl Shared {
    async fn undo_claim(self: &Arc<Self>, holder: i64, number: i64) -> Result<(), Error> {
        let params: Params<'_> = &[&holder, &number];
        let rows = self.run(&self.sql.undo_claim, params).await?;
        self.wake_rows(&rows);
        Ok(())
    }
}

/// Whether items were delivered. Otherwise their claim is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Yes,
    No,
}

/// Gives leased items back, and wakes waiters for them.
pub(crate) async fn release(
    shared: &Arc<Shared>,
    (ids, leases): &LeasedItems,
    delivered: Delivered,
) -> Result<(), Error> {
    let sql = match delivered {
        Delivered::Yes => &shared.sql.release,
        Delivered::No => &shared.sql.unclaim,
    };
    let params: Params<'_> = &[ids, leases];
    // It may wait for commits of the same items, which would delay short statements on their connection. But whoever holds the
    // last connection of the pool must not wait for another one.
    let rows = match shared.idle_connection().await {
        Some(connection) => connection.run_alone(sql, params).await?,
        None => shared.run(sql, params).await?,
    };
    shared.wake_rows(&rows);
    Ok(())
}

/// Gives leased items back in a task, as soon as the server can be reached. If the runtime has ended, they come back when the
/// lease of this process expires.
pub(crate) fn release_later(shared: &Arc<Shared>, held: LeasedItems, delivered: Delivered) {
    if held.0.is_empty() {
        return;
    }
    if let Some(runtime) = Handle::try_current()
        .ok()
        .or_else(|| shared.runtime.clone())
    {
        let shared = Arc::clone(shared);
        runtime.spawn(async move {
            while release(&shared, &held, delivered).await.is_err() {
                sleep(PAUSE).await;
            }
        });
    }
}
