//! What all these tests use.

use crate::server::SERVER;
use requeue_postgres::{Options, PgQueue, Postgres};
use std::future::Future;
use std::ops::Deref;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// How long to wait for what must happen.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The term of leases. It passes only on the server's clock: see [`Db::with_clock`].
pub(crate) const TERM: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Locked,
    Leased,
    /// Leased ahead.
    Prefetched,
}

pub(crate) const MODES: [Mode; 3] = [Mode::Locked, Mode::Leased, Mode::Prefetched];

/// The modes in which a process holds only what it works on.
pub(crate) const ON_DEMAND: [Mode; 2] = [Mode::Locked, Mode::Leased];

impl Mode {
    /// The queue of the test, which counts attempts.
    pub(crate) fn jobs(self, db: &Postgres) -> PgQueue<i64> {
        self.limited(db, 100)
    }

    /// The queue, with a limit of attempts for each item.
    pub(crate) fn limited(self, db: &Postgres, max_attempts: u32) -> PgQueue<i64> {
        let builder = db.builder("jobs").max_attempts(max_attempts);
        match self {
            Self::Locked => builder.build(),
            Self::Leased => builder.leased(TERM).build(),
            Self::Prefetched => builder.leased(TERM).prefetch(4).build(),
        }
    }
}

/// The database of a test: a schema of its own.
pub(crate) struct Db {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) inner: Postgres,
}

impl Deref for Db {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.inner
    }
}

impl Db {
    pub(crate) async fn new() -> Self {
        Self::at(&SERVER.url()).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        Self::with(url.into(), next_name()).await
    }

    /// A database whose clock is moved by [`advance`](Self::advance): its sessions find other functions for the time.
    pub(crate) async fn with_clock() -> Self {
        let (schema, url) = (next_name(), SERVER.url());
        Self::make_clock(&url, &schema).await;
        let path = format!("options='-c search_path={schema}_clock,pg_catalog,public'");
        Self::with(format!("{url} {path}"), schema).await
    }

    /// The same, of all sessions of a server: also those of a pooler.
    pub(crate) async fn with_clock_of(url: &str) -> Self {
        let schema = next_name();
        Self::make_clock(url, &schema).await;
        let path =
            format!("alter database postgres set search_path = {schema}_clock, pg_catalog, public");
        execute(url, &path).await;
        Self::with(url.into(), schema).await
    }

    async fn make_clock(url: &str, schema: &str) {
        let functions = "create schema @_clock;
            create table @_clock.shift (by interval not null);
            insert into @_clock.shift values ('0');
            create function @_clock.now() returns timestamptz stable language sql as
                'select pg_catalog.now() + by from @_clock.shift';
            create function @_clock.clock_timestamp() returns timestamptz volatile language sql as
                'select pg_catalog.clock_timestamp() + by from @_clock.shift';";
        execute(url, &functions.replace('@', schema)).await;
    }

    pub(crate) async fn with(url: String, schema: String) -> Self {
        let inner = options(&url, &schema).connect().await.unwrap();
        inner.install().await.unwrap();
        Self { url, schema, inner }
    }

    /// Moves the server's clock.
    pub(crate) async fn advance(&self, by: Duration) {
        let seconds = by.as_secs();
        let sql = format!("update @_clock.shift set by = by + interval '{seconds} seconds'");
        self.execute(&sql).await;
    }

    /// Has the items back whose lease has expired: a pop in vain moves what is due, unless another session does just then.
    pub(crate) async fn promote(&self) {
        let nothing: PgQueue<i64> = self.queue("nothing");
        let expired = "select count(*) from @.leased join @.holders h on h.id = holder where alive_until <= now()";
        let is_done = || async {
            let mut tx = self.begin().await.unwrap();
            assert!(tx.pop(&nothing).await.unwrap().is_none());
            self.number(expired).await == 0
        };
        until(is_done).await;
    }

    /// What another process sees.
    pub(crate) async fn other(&self) -> Postgres {
        options(&self.url, &self.schema).connect().await.unwrap()
    }

    /// Statements with the name of the schema, which is `@`.
    pub(crate) fn sql(&self, sql: &str) -> String {
        sql.replace('@', &self.schema)
    }

    /// Runs statements past the crate; `@` is the schema.
    pub(crate) async fn execute(&self, sql: &str) {
        execute(&self.url, &self.sql(sql)).await;
    }

    /// The number in the first row of a query; `@` is the schema.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = self.sql(sql);
        let client = client(&self.url).await;
        client.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// Waits until the server has ended all sessions of this application.
    pub(crate) async fn until_gone(&self, application: &str) {
        let sql = format!(
            "select count(*) from pg_stat_activity where application_name = '{application}'"
        );
        until(|| async { self.number(&sql).await == 0 }).await;
    }

    /// Terminates the sessions of this application, and waits until they are gone.
    pub(crate) async fn terminate(&self, application: &str) -> i64 {
        self.number(&format!(
            "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity where application_name = '{application}'"
        ))
        .await
    }

    /// The queue of the test, without counted attempts.
    pub(crate) fn uncounted(&self) -> PgQueue<i64> {
        self.queue("jobs")
    }

    /// Takes the next items, as soon as they are there: one that is due is not delivered while another session makes it ready.
    pub(crate) async fn take(&self, count: usize) -> Vec<i64> {
        let jobs = self.uncounted();
        let mut taken = Vec::new();
        for _ in 0..count {
            let mut tx = self.begin().await.unwrap();
            let item = tx.pop_wait(&jobs, LONG).await.unwrap();
            tx.commit().await.unwrap();
            taken.push(*item.expect("an item"));
        }
        taken
    }

    /// Takes the items that are ready, in their order.
    pub(crate) async fn drain(&self) -> Vec<i64> {
        let jobs = self.uncounted();
        let mut tx = self.begin().await.unwrap();
        let items = tx.pop_batch(&jobs, 1000).await.unwrap();
        tx.commit().await.unwrap();
        items.iter().map(|item| **item).collect()
    }
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("faults_{}_{count}", process::id())
}

pub(crate) fn options(url: &str, schema: &str) -> Options {
    Postgres::options(url).schema(schema).max_connections(8)
}

/// A connection past the crate.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn execute(url: &str, sql: &str) {
    client(url).await.batch_execute(sql).await.unwrap();
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    let waits = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(LONG, waits).await;
    waited.expect("it is so in the end");
}
