//! A database with queues.

use super::{Connection, Manner, Options, Owner, Params, Server};
use crate::activity::Activity;
use crate::background::Task;
use crate::codec::Json;
use crate::error::{Error, Result};
use crate::front::Fronts;
use crate::jobs::Running;
use crate::lease::Leases;
use crate::queue::{Builder, PgQueue};
use crate::schema::Schema;
use crate::sql::Statements;
use crate::transaction::{Commits, PgTransaction};
use crate::wait::Hub;
use deadpool_postgres::{Object, Pool, PoolError, Timeouts};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use tokio::time::timeout;
use tokio_postgres::Row;

/// A database with queues: a pool of connections, and what the process shares. Cheap to clone.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
/// use requeue_postgres::{PgQueue, Postgres};
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// db.install().await?;
/// let jobs: PgQueue<String> = db.queue("jobs");
/// jobs.push("fetch the page".to_string()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Postgres {
    pub(crate) shared: Arc<Shared>,
}

/// How long a call waits for a connection of the pool, unless the pool says so itself.
pub(super) const POOL_WAIT: Duration = Duration::from_secs(30);

/// What the process shares.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) schema: Schema,
    pub(crate) sql: Statements,
    /// To which the connection that listens is opened.
    pub(crate) server: Option<Server>,
    pub(crate) manner: Manner,
    pub(crate) hub: Hub,
    pub(crate) leases: Leases,
    pub(crate) promoter: Task,
    pub(crate) activity: Activity,
    pub(crate) commits: Commits,
    pub(crate) running: Running,
    pub(crate) fronts: Fronts,
    /// Opens the connection for short statements. Not the pool of the transactions, which may have all its connections.
    opener: Pool,
    /// The connection for short statements of their own, which all tasks of the process share: the statements are pipelined. So a
    /// transaction that has a connection never waits for a second one.
    control: Mutex<Option<Arc<Connection<'static>>>>,
    /// For what is to be done outside of a runtime.
    pub(crate) runtime: Option<Handle>,
    /// The number of this process.
    process: OnceCell<i64>,
}

impl Postgres {
    /// Connects to a server, without TLS, with the default [`Options`].
    ///
    /// # Errors
    ///
    /// As for [`Options::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::options(url).connect().await
    }

    /// Returns options for a connection.
    pub fn options(url: &str) -> Options {
        Options::new(url)
    }

    /// Uses the connections of a pool, and the schema `requeue`.
    ///
    /// One connection is taken out of the pool, for short statements. Nothing listens to the server: waiters of this process
    /// see the pushes of other processes at their next poll, within a second. Set `client_connection_check_interval` and TCP
    /// keepalives on the connections, so that the server notices a dead client. For other options see [`Options::with_pool`].
    /// A call waits for a connection for as long as the pool says, or else for 30 seconds.
    ///
    /// # Panics
    ///
    /// Never: the name of the schema is valid.
    pub fn from_pool(pool: Pool) -> Self {
        let options = Options::default();
        options.with_pool(pool).expect("a valid name")
    }

    /// Like [`from_pool`](Self::from_pool), with a schema.
    ///
    /// # Errors
    ///
    /// [`Error::Name`] if the schema cannot have that name.
    pub fn from_pool_with(pool: Pool, schema: &str) -> Result<Self> {
        Options::default().schema(schema).with_pool(pool)
    }

    /// A database with these options. `opener` opens the connection for short statements, that which listens is
    /// one to the `server`.
    pub(super) fn new(
        options: &Options,
        pool: Pool,
        opener: Pool,
        server: Option<Server>,
    ) -> Result<Self> {
        let schema = Schema::new(&options.schema)?;
        let shared = Arc::new(Shared {
            sql: Statements::new(&schema),
            pool,
            schema,
            server,
            manner: options.manner,
            hub: Hub::default(),
            leases: Leases::default(),
            promoter: Task::default(),
            activity: Activity::default(),
            commits: Commits::default(),
            running: Running::default(),
            fronts: Fronts::default(),
            opener,
            control: Mutex::default(),
            process: OnceCell::new(),
            runtime: Handle::try_current().ok(),
        });
        Ok(Self { shared })
    }

    /// Creates the tables, unless they are there, and changes those of an earlier version of this crate. Safe to call from several
    /// processes at once.
    ///
    /// Version 2 has an index of the leased items that version 1 has not: while it is built, which takes about a second for a
    /// million of them, claims and commits of leased items wait. Version 3 has wider priorities: while the tables are written anew,
    /// which takes about four seconds for a million items, all calls wait. Programs of another version refuse the tables, when they
    /// start: end those of version 2 first, since they cannot read the wider column.
    /// Version 5 has functions, views, and an index of the ready items that did not come by a push: while it is built, which takes about two
    /// seconds for a million of them, all calls wait.
    /// The installation may take any time, also that of another process: for a limit, use `tokio::time::timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] if the tables belong to a later version of this crate, and [`Error::Database`].
    pub async fn install(&self) -> Result<()> {
        let shared = &self.shared;
        let connection = shared.take_out(&shared.pool).await?;
        let install = shared.schema.install();
        connection.batch_execute(&install).await?; // that may take any time
        shared.schema.check(&connection).await
    }

    /// Returns what [`install`](Self::install) runs, for one's own migrations: one statement, a `do` block. Several programs can run
    /// it at once, and it can be run again, also to change the tables of an earlier version.
    pub fn install_sql(&self) -> String {
        self.shared.schema.install()
    }

    /// Returns a queue, with its items as `jsonb`. It is created at its first use.
    pub fn queue<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
    ) -> PgQueue<T> {
        self.builder(name).build()
    }

    /// Returns a builder of a queue with options.
    pub fn builder<T>(&self, name: &str) -> Builder<T> {
        Builder::new(self.clone(), name, Json)
    }

    /// Forgets the keys of [serial](Builder::serial) queues that have no items. To be called now and then if there are ever new
    /// keys: each one has a row. Pushes to serial queues wait meanwhile. It is one statement, which looks at all keys within the
    /// [time of a statement](Options::statement_timeout), or is undone.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::TimedOut`] and [`Error::Pool`].
    pub async fn sweep_keys(&self) -> Result<()> {
        let connection = self.shared.connection().await?;
        connection.run_all(&self.shared.sql.sweep_keys).await
    }

    /// Begins a transaction. It takes a connection of the pool when it first needs one.
    ///
    /// # Errors
    ///
    /// [`Error::NotInstalled`] and [`Error::Version`] at the first call, and [`Error::Database`].
    pub async fn begin(&self) -> Result<PgTransaction<'static>> {
        self.shared.process().await?;
        Ok(PgTransaction::new(&self.shared))
    }

    /// Works inside a transaction of the caller: the commit of the returned transaction releases a savepoint, and takes effect
    /// when the caller's transaction commits. Its pops hold items by locks, also those of leased queues.
    ///
    /// A transaction of `deadpool-postgres` is passed as `&transaction` too. If another process waits for what is pushed, the
    /// caller's commit takes the lock of `NOTIFY`: see the page on [notifications](crate::guide::notifications).
    ///
    /// # Errors
    ///
    /// As for [`begin`](Self::begin).
    pub async fn within<'c>(
        &self,
        transaction: &'c tokio_postgres::Transaction<'c>,
    ) -> Result<PgTransaction<'c>> {
        self.shared.process().await?;
        let mut tx = PgTransaction::new(&self.shared);
        tx.link.enter(transaction).await?;
        Ok(tx)
    }
}

requeue::debug_struct!([] Postgres, |db| schema: db.shared.schema, pool: db.shared.pool.status());

impl Shared {
    /// The connection for short statements; a new one if it was closed, or hangs. The wait for others that open it counts.
    pub(crate) async fn control(self: &Arc<Self>) -> Result<Arc<Connection<'static>>> {
        let opened = |control: &Option<Arc<Connection<'static>>>| {
            control.clone().filter(|control| control.is_open())
        };
        let known = self.control.try_lock();
        if let Some(open) = known.ok().and_then(|control| opened(&control)) {
            return Ok(open);
        }
        let (shared, limit) = (Arc::clone(self), self.manner.limit);
        let got = async move {
            let mut control = shared.control.lock().await;
            if let Some(open) = opened(&control) {
                return Ok(open);
            }
            let new = Arc::new(shared.take_out(&shared.opener).await?);
            *control = Some(Arc::clone(&new));
            Ok(new)
        };
        let got = in_task(async move { Ok(timeout(limit, got).await) }).await?;
        got.unwrap_or_else(|_| Err(none_within(limit)))
    }

    /// Runs a short statement of its own.
    pub(crate) async fn run(self: &Arc<Self>, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        self.control().await?.run_alone(sql, params).await
    }

    /// Runs a statement of its own that may wait, which would delay the short ones on their connection. But whoever holds the last
    /// connection of the pool must not wait for another one.
    pub(crate) async fn run_aside(
        self: &Arc<Self>,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>> {
        let mut timeouts = self.pool.timeouts();
        timeouts.wait = Some(Duration::ZERO);
        match self.connection_within(timeouts).await {
            Ok(connection) => connection.run_alone(sql, params).await,
            Err(_) => self.run(sql, params).await,
        }
    }

    /// Runs a short statement of its own, and has the connection replaced if all of it takes longer than `limit`.
    pub(crate) async fn run_within(
        self: &Arc<Self>,
        limit: Duration,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>> {
        let answer = timeout(limit, self.run(sql, params)).await;
        answer.unwrap_or_else(|_| {
            if let Ok(control) = self.control.try_lock() {
                control.iter().for_each(|control| control.miss(limit));
            } // otherwise another call replaces it
            Err(Error::TimedOut(limit))
        })
    }

    pub(crate) async fn connection(&self) -> Result<Connection<'static>> {
        self.connection_within(self.pool.timeouts()).await
    }

    async fn connection_within(&self, timeouts: Timeouts) -> Result<Connection<'static>> {
        let object = self.object(&self.pool, timeouts).await?;
        Ok(Connection::new(Owner::Pool(Some(object)), self.manner))
    }

    /// A connection out of a pool, which is closed when it is dropped.
    async fn take_out(&self, pool: &Pool) -> Result<Connection<'static>> {
        let client = Object::take(self.object(pool, pool.timeouts()).await?);
        Ok(Connection::new(
            Owner::Process(
                Arc::new(client),
                parking_lot::Mutex::default(),
                Arc::default(),
            ),
            self.manner,
        ))
    }

    /// A connection of a pool. Each step has a time, also if the pool sets none, or has no timer.
    async fn object(&self, pool: &Pool, own: Timeouts) -> Result<Object> {
        let limit = self.manner.limit;
        let (wait, create) = (own.wait.unwrap_or(POOL_WAIT), own.create.unwrap_or(limit));
        let timeouts = Timeouts {
            wait: Some(wait),
            create: Some(create),
            recycle: own.recycle.or(Some(limit)),
        };
        let got = async {
            match pool.timeout_get(&timeouts).await {
                Err(PoolError::NoRuntimeSpecified) => pool.timeout_get(&own).await,
                got => got,
            }
        };
        let all = wait.saturating_add(create);
        Ok(timeout(all, got).await.map_err(|_| none_within(all))??)
    }

    /// Waits for others for as long as a statement may take, not for one statement of each of them.
    pub(crate) async fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
        let limit = self.manner.limit;
        let locked = timeout(limit, mutex.lock()).await;
        locked.map_err(|_| Error::TimedOut(limit))
    }

    /// What the server is asked for once, on the connection for short statements. Waits for others that ask, as for a lock.
    pub(crate) async fn once<O, T, F>(
        &self,
        owner: &Arc<O>,
        known: fn(&O) -> &OnceCell<T>,
        ask: fn(Arc<O>) -> F,
    ) -> Result<T>
    where
        O: Send + Sync + 'static,
        T: Copy + Send + Sync + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if let Some(known) = known(owner).get() {
            return Ok(*known);
        }
        let (owner, limit) = (Arc::clone(owner), self.manner.limit);
        in_task(async move {
            let asked = known(&owner).get_or_try_init(|| ask(Arc::clone(&owner)));
            let asked = timeout(limit.saturating_mul(2), asked).await;
            asked.unwrap_or(Err(Error::TimedOut(limit))).copied()
        })
        .await
    }

    /// The number of this process. The first call checks the version of the tables; it does not come while a transaction has a
    /// session, which may be the last one of a pooler.
    pub(crate) async fn process(self: &Arc<Self>) -> Result<i64> {
        let ask = |shared: Arc<Self>| async move {
            shared.schema.check(&*shared.control().await?).await?;
            shared.next_id().await
        };
        self.once(self, |shared| &shared.process, ask).await
    }

    /// The number of this process, if it was needed.
    pub(crate) fn known_process(&self) -> Option<i64> {
        self.process.get().copied()
    }

    /// A number that no item, holder or process has.
    pub(crate) async fn next_id(self: &Arc<Self>) -> Result<i64> {
        let control = self.control().await?;
        Ok(control.run(&self.sql.next_id, &[]).await?[0].get(0))
    }
}

/// Does what others wait for: its caller may be polled no more while they wait, and yet not be dropped.
pub(crate) async fn in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await.unwrap_or(Err(Error::Ended))
}

fn none_within(limit: Duration) -> Error {
    Error::Pool(format!("none within {limit:?}").into())
}
