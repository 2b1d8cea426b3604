//! Claims: which items a pop takes.

use crate::connect::{in_task, Param, Params, Shared};
use crate::error::Result;
use crate::front::Ranges;
use crate::item::Record;
use crate::queue::Core;
use crate::sql::{Order, Statement};
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{sleep, Instant};
use tokio_postgres::Row;

/// The pause before another attempt to undo a claim.
const PAUSE: Duration = Duration::from_millis(100);

/// The statements of one claim: one, or for an order by keys one for each round through the keys.
pub(crate) struct Turn<'q> {
    core: &'q Core,
    queue: i32,
    /// Of leased items: the holder, and the number of the claim.
    lease: Option<(i64, i64)>,
    wanted: i64,
    next: Option<Order>,
    /// The key after which it takes items.
    key: String,
    /// Where it begins to look.
    ranges: Option<Ranges>,
    /// What the statements took.
    pub(crate) records: Vec<Record>,
}

impl<'q> Turn<'q> {
    pub(crate) fn new(core: &'q Core, queue: i32, max: usize, lease: Option<(i64, i64)>) -> Self {
        let fronts = &core.db.shared.fronts;
        let ranges = (fronts.ranges(queue)).filter(|_| core.rules.order == Order::Fifo);
        let next = match core.rules.order {
            Order::Fair if max == 1 => Order::FairOne,
            Order::Fifo if ranges.is_some() => Order::FifoFromFronts,
            order => order,
        };
        Self {
            core,
            queue,
            lease,
            wanted: i64::try_from(max).unwrap_or(i64::MAX),
            next: Some(next),
            key: core.last_key.lock().clone(),
            ranges,
            records: Vec::new(),
        }
    }

    /// The next statement, and its parameters.
    pub(crate) fn next(&self) -> Option<(&'q str, Vec<&dyn Param>)> {
        let order = self.next?;
        let claims = &self.core.db.shared.sql.claims;
        let mut params: Vec<&dyn Param> = vec![&self.queue, &self.wanted];
        if let Some((holder, number)) = &self.lease {
            params.extend([holder as &dyn Param, number]);
        }
        match &self.ranges {
            Some(ranges) => params.extend(ranges.params()),
            None if order != Order::Fifo => params.push(&self.key),
            None => {}
        }
        Some((claims.claim(order, self.lease.is_some()), params))
    }

    /// The statement that locks what the next one takes, and its parameters.
    pub(crate) fn lock(&self) -> Option<(&'q str, Vec<&dyn Param>)> {
        let (_, mut params) = self.next()?;
        if self.ranges.is_some() {
            params.truncate(2); // it looks from the start
        }
        Some((self.core.db.shared.sql.claims.lock(self.next?), params))
    }

    /// Keeps what the statement took.
    pub(crate) fn took(&mut self, rows: &[Row]) {
        let mut taken: Vec<_> = rows.iter().map(Record::read_claimed).collect();
        self.wanted -= i64::try_from(taken.len()).unwrap_or(i64::MAX);
        self.next = self.after(taken.is_empty()).filter(|_| self.wanted > 0);
        if self.core.rules.order == Order::Fifo {
            taken.sort_unstable_by_key(|record| (record.priority, record.id));
            self.core.db.shared.took_in_order(self.queue, &taken);
        } else {
            taken.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            if let Some(last) = taken.last().and_then(|record| record.key.clone()) {
                self.key.clone_from(&last);
                *self.core.last_key.lock() = last;
            }
        }
        self.records.append(&mut taken);
    }

    /// The statement after one, unless enough is taken.
    fn after(&mut self, in_vain: bool) -> Option<Order> {
        match (self.next?, in_vain) {
            (Order::Fifo | Order::FifoFromFronts, _) | (Order::FairOne, true) => None,
            (Order::Fair, true) => Some(Order::FairOne), // around the end
            (Order::Fair | Order::FairOne, false) => Some(Order::Fair),
            (Order::Serial, true) if self.key.is_empty() => None,
            (Order::Serial, true) => {
                self.key.clear();
                Some(Order::Serial)
            }
            (Order::Serial, false) => Some(Order::Serial),
        }
    }
}

/// The ids of leased items, and the numbers of their leases.
pub(crate) type LeasedItems = (Vec<i64>, Vec<i64>);

/// The leases of items, which are given with their claims.
///
/// The number of a lease is of an item and the random number of its claim together, so that no item has the lease of another one.
/// A statement compares a set of such numbers by their hashes; the time for pairs would be quadratic.
pub(crate) fn leases(items: impl Iterator<Item = (i64, i64)>) -> LeasedItems {
    items.map(|(id, claim)| (id, id ^ claim)).unzip()
}

/// A leased item, with the number of its claim and the period of its holder.
pub(crate) struct Leased {
    pub(crate) record: Record,
    pub(crate) claim: i64,
    pub(crate) period: u64,
    /// Until when it lives, as this process knows.
    until: Option<Instant>,
}

impl Leased {
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

/// Claimed items. Those that are dropped before a transaction takes them over are given back, as if they had not been claimed.
pub(crate) struct Claimed {
    pub(crate) shared: Arc<Shared>,
    pub(crate) items: Vec<Leased>,
}

impl Claimed {
    pub(crate) fn new(shared: &Arc<Shared>, items: Vec<Leased>) -> Self {
        let shared = Arc::clone(shared);
        Self { shared, items }
    }

    pub(crate) fn held(&self) -> LeasedItems {
        leases(self.items.iter().map(|item| (item.record.id, item.claim)))
    }

    pub(crate) fn into_items(mut self) -> Vec<Leased> {
        mem::take(&mut self.items)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        release_later(&self.shared, self.held(), |sql| &sql.unclaim);
    }
}

/// Claims up to `max` items. If the future is dropped, they are given back.
pub(crate) async fn claim_leased(
    core: &Arc<Core>,
    id: i32,
    max: usize,
    on_control: bool,
) -> Result<Claimed> {
    let core = Arc::clone(core);
    in_task(async move { claim(&core, id, max, on_control).await }).await
}

/// Claims items, on a connection of the pool or on that for short statements: who has a connection of the pool must not wait for a
/// second one. A claim whose outcome is unknown, because its connection failed, is undone.
pub(crate) async fn claim(
    core: &Core,
    queue: i32,
    max: usize,
    on_control: bool,
) -> Result<Claimed> {
    let shared = &core.db.shared;
    let holder = shared.holder(&core.rules).await?;
    let (id, number) = (holder.id, shared.leases.next_claim());
    let connection = if on_control {
        shared.control().await?
    } else {
        Arc::new(shared.connection().await?)
    };
    let begun = Instant::now();
    let mut turn = Turn::new(core, queue, max, Some((id, number)));
    while let Some((sql, params)) = turn.next() {
        let rows = connection.run_alone(sql, &params).await;
        turn.took(&rows.inspect_err(|_| {
            let term = core.rules.term.unwrap_or_default();
            tokio::spawn(undo(Arc::downgrade(shared), id, number, term));
        })?);
    }
    let items = turn.records.into_iter().map(|record| Leased {
        until: record.lives.and_then(|lives| begun.checked_add(lives)),
        record,
        claim: number,
        period: holder.period,
    });
    Ok(Claimed::new(shared, items.collect()))
}

/// Undoes a claim as soon as the server can be reached, and again after a term: it may have gone on without its connection.
async fn undo(shared: Weak<Shared>, holder: i64, number: i64, term: Duration) {
    let mut undone = false;
    while let Some(shared) = shared.upgrade() {
        let again = undone;
        let sql = &shared.sql.undo_claim;
        undone |= shared.make_ready(sql, &[&holder, &number]).await.is_ok();
        drop(shared);
        if again {
            return;
        }
        sleep(if undone { term } else { PAUSE }).await;
    }
}

/// Gives leased items back, by this statement, and wakes waiters for them.
pub(crate) async fn release(
    shared: &Arc<Shared>,
    (ids, leases): &LeasedItems,
    statement: Statement,
) -> Result<()> {
    // It may wait for commits of the same items.
    let params: Params<'_> = &[ids, leases];
    let rows = shared.run_aside(statement(&shared.sql), params).await?;
    shared.wake_rows(&rows);
    Ok(())
}

/// Gives leased items back in a task, as soon as the server can be reached. If the runtime has ended, they come back when the
/// lease of this process expires.
pub(crate) fn release_later(shared: &Arc<Shared>, held: LeasedItems, statement: Statement) {
    let runtime = Handle::try_current().ok();
    let runtime = runtime.or_else(|| shared.runtime.clone());
    if let Some(runtime) = runtime.filter(|_| !held.0.is_empty()) {
        let shared = Arc::clone(shared);
        runtime.spawn(async move {
            while release(&shared, &held, statement).await.is_err() {
                sleep(PAUSE).await;
            }
        });
    }
}
