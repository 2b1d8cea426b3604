//! Queues in `PostgreSQL`.

use crate::inspect::{
    at_once, Change, Counts, Entry, Error, Holder, Inspect, Page, Pick, Reply, Search, Source,
    Verb, PAGE,
};
use parking_lot::Mutex;
use requeue_postgres::tokio_postgres::{types::ToSql, Row};
use requeue_postgres::{PgQueue, Postgres, Ticket};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The counts of all queues, as of one moment.
const COUNTS: &str = "select q.name, q.id, q.paused, r.n, l.n, d.n, x.n, r.age, a.n, exists (select from @.rates where name = q.name)
    from @.queues q,
    lateral (select count(*) as n, extract(epoch from now() - min(pushed))::float8 as age from @.ready where queue = q.id) r,
    lateral (select coalesce(sum(finished), 0)::bigint as n from @.activity where queue = q.id) a,
    lateral (select count(*) as n from @.leased where queue = q.id) l,
    lateral (select count(*) as n from @.delayed where queue = q.id) d,
    lateral (select count(*) as n from @.dead where queue = q.id) x order by 1";
/// What is known of the items and the dead letters of the queue `$1` that contain `$2`.
const ITEMS: &str = "select * from (
    select coalesce(ticket, id) as id, coalesce(json::text, encode(bytes, 'escape')) as payload, attempts, pushed, 'ready' as state, error
        from @.ready where queue = $1
    union all select id, coalesce(json::text, encode(bytes, 'escape')), attempts, pushed,
        'due in ' || greatest(0, ceil(extract(epoch from until - now())))::bigint || ' s', error from @.delayed where queue = $1) e";
const LETTERS: &str = "select * from (
    select id, coalesce(json::text, encode(bytes, 'escape')) as payload, attempts, pushed, reason as state, error
        from @.dead where queue = $1) e";
const MATCHING: &str =
    "$2 = '' or position(lower($2) in lower(concat_ws(' ', payload, error, state))) > 0";

/// The queues of a database, for [`Board::source`](crate::Board::source).
///
/// Rates are those of items that processes with this crate finish, which they say every two seconds, and of what comes in besides; they
/// lack items that are removed. The pace that can be changed is the [rate](Postgres::rate) with the name of the queue, if there
/// is one; it has no bursts then. Items that a transaction holds by a lock count as ready. Counting takes the server a time in
/// proportion to the items, so with many there are fewer samples: they take 1 % of the time of one connection.
/// Dead letters that are retried have no time to live.
#[derive(Debug)]
pub struct InPostgres {
    database: Arc<Database>,
    known: Mutex<BTreeMap<String, Arc<Table>>>,
}

impl InPostgres {
    /// Connects to a server, with the queues of the schema `requeue`.
    ///
    /// # Errors
    ///
    /// As for [`Postgres::connect`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Ok(Self::of(Postgres::connect(url).await?, "requeue"))
    }

    /// Shows the queues of a database that has this schema.
    pub fn of(postgres: Postgres, schema: &str) -> Self {
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        let (database, known) = (Arc::new(Database { postgres, schema }), Mutex::default());
        Self { database, known }
    }
}

impl Source for InPostgres {
    fn queues(&self) -> Reply<'_, Vec<(String, Arc<dyn Inspect>)>> {
        Box::pin(async move {
            let rows = self.database.query(COUNTS, &[]).await?;
            let mut known = self.known.lock();
            let shown = rows.iter().map(|row| {
                let (name, id) = (row.get::<_, String>(0), row.get(1));
                let table = known.entry(name.clone()).or_insert_with(|| {
                    let (database, counts) = (Arc::clone(&self.database), Mutex::default());
                    let queue = database.postgres.queue(&name);
                    Arc::new(Table {
                        database,
                        queue,
                        id,
                        counts,
                    })
                });
                *table.counts.lock() = counts(row);
                (name, Arc::clone(table) as Arc<dyn Inspect>)
            });
            Ok(shown.collect())
        })
    }
}

fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

fn counts(row: &Row) -> Counts {
    let oldest = row.get::<_, Option<f64>>(7);
    let [ready, held, delayed, dead] = [3, 4, 5, 6].map(|column| count(row, column));
    let done = count(row, 8) + dead;
    Counts {
        is_paused: row.get(2),
        is_paced: row.get(9),
        ready,
        held: Some(held),
        delayed: Some(delayed),
        dead,
        pushed: Some(done + ready + held + delayed),
        done: Some(done),
        oldest: oldest.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        ..Counts::default()
    }
}

fn entry(row: &Row) -> Entry {
    Entry {
        id: Some(row.get::<_, i64>(0).to_string()),
        payload: row.get::<_, Option<String>>(1).unwrap_or_default(),
        attempts: u32::try_from(row.get::<_, i32>(2)).unwrap_or(0),
        age: row.get::<_, std::time::SystemTime>(3).elapsed().ok(),
        state: row.get(4),
        error: row.get(5),
    }
}

/// A connection, and how its tables are named.
#[derive(Debug)]
struct Database {
    postgres: Postgres,
    schema: String,
}

impl Database {
    /// Runs a statement, in which `@` stands for the schema.
    async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let mut tx = self.postgres.begin().await?;
        let rows = tx
            .client()
            .query(&sql.replace('@', &self.schema), params)
            .await?;
        tx.commit().await?;
        Ok(rows)
    }
}

/// A queue of a database. No item is decoded, so their type does not matter.
#[derive(Debug)]
struct Table {
    database: Arc<Database>,
    queue: PgQueue<()>,
    id: i32,
    counts: Mutex<Counts>,
}

impl Table {
    /// The ids of the items or the dead letters that are meant.
    async fn picked(&self, entries: &str, pick: &Pick) -> Result<Vec<i64>, Error> {
        let text = match pick {
            Pick::One(id) => return Ok(vec![id.parse()?]),
            Pick::Matching(text) => text,
        };
        let sql = format!("select id from ({entries} where {MATCHING}) picked order by id");
        let rows = self.database.query(&sql, &[&self.id, text]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Makes the dead letters with these ids items.
    async fn retry(&self, ids: Vec<i64>) -> Result<u64, Error> {
        let mut count = 0;
        for id in ids {
            count += u64::from(self.queue.dead_letters().requeue(Ticket(id)).await?);
        }
        Ok(count)
    }

    /// Changes the rows of these dead letters, and returns how many there were.
    async fn letters(&self, sql: &str, pick: &Pick, to: i32) -> Result<Vec<i64>, Error> {
        let ids = self.picked(LETTERS, pick).await?;
        let sql =
            format!("{sql} where queue = $1 and id = any($2) and $3::int is not null returning id");
        let rows = self.database.query(&sql, &[&self.id, &ids, &to]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn remove(&self, pick: &Pick) -> Result<u64, Error> {
        let mut count = 0;
        for id in self.picked(ITEMS, pick).await? {
            count += match self.queue.cancel(Ticket(id)).await {
                Ok(None) => 0,
                // It is removed, and not of this type.
                Ok(Some(())) | Err(requeue_postgres::Error::Codec(_)) => 1,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(count)
    }
}

impl Inspect for Table {
    fn verbs(&self) -> &[Verb] {
        use Verb::{Delete, Move, Pace, Pause, Remove, Resume, Retry};
        let all = &[Pause, Resume, Retry, Delete, Move, Remove, Pace];
        &all[..all.len() - usize::from(!self.counts.lock().is_paced)]
    }

    fn counts(&self) -> Reply<'_, Counts> {
        at_once(self.counts.lock().clone())
    }

    fn holders(&self) -> Reply<'_, Vec<Holder>> {
        Box::pin(async move {
            let mut holders = BTreeMap::<Arc<str>, Holder>::new();
            for held in self.queue.held().await? {
                let name = held.holder.to_string();
                let since = held.since.elapsed().ok(); // the first one is the oldest
                let holder = holders.entry(held.holder).or_insert(Holder {
                    name,
                    items: 0,
                    since,
                });
                holder.items += 1;
            }
            Ok(holders.into_values().collect())
        })
    }

    fn page(&self, search: Search) -> Reply<'_, Page> {
        Box::pin(async move {
            let entries = if search.dead { LETTERS } else { ITEMS };
            let offset = i64::try_from(search.range().start).unwrap_or(i64::MAX);
            let found = format!("select count(*) from ({entries} where {MATCHING}) found");
            let page =
                format!("{entries} where {MATCHING} order by id limit {PAGE} offset {offset}");
            let params: [&(dyn ToSql + Sync); 2] = [&self.id, &search.text];
            let found = self.database.query(&found, &params).await?;
            let rows = self.database.query(&page, &params).await?;
            let entries = rows.iter().map(entry).collect();
            let total = found.first().map_or(0, |row| count(row, 0));
            Ok(Page { entries, total })
        })
    }

    fn change(&self, change: Change) -> Reply<'_, u64> {
        Box::pin(async move {
            let letters = self.queue.dead_letters();
            match &change {
                Change::Pause => self.queue.pause().await?,
                Change::Resume => self.queue.resume().await?,
                Change::Pace(rate) => {
                    let interval = Duration::try_from_secs_f64(rate.map_or(0.0, f64::recip))?;
                    let rate = self.database.postgres.rate(self.queue.name(), 1, interval);
                    rate.set().await?;
                }
                Change::Retry(Pick::Matching(text)) if text.is_empty() => {
                    return Ok(letters.requeue_all().await?)
                }
                Change::Retry(pick) => return self.retry(self.picked(LETTERS, pick).await?).await,
                Change::Delete(pick) => {
                    let deleted = self.letters("delete from @.dead", pick, 0).await?;
                    return Ok(deleted.len() as u64);
                }
                Change::Move(pick, to) => {
                    let to = (&**to as &dyn Any).downcast_ref::<Self>();
                    let Some(to) = to.filter(|to| Arc::ptr_eq(&self.database, &to.database)) else {
                        return Err("the other queue is in another database".into());
                    };
                    // First as dead letters: if the server goes away in between, they are there.
                    let moved = self
                        .letters("update @.dead set queue = $3", pick, to.id)
                        .await?;
                    return to.retry(moved).await;
                }
                Change::Remove(pick) => return self.remove(pick).await,
            }
            Ok(1)
        })
    }

    fn item_type(&self) -> Option<TypeId> {
        Some(TypeId::of::<Self>())
    }
}
