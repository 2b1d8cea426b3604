//! Tests against a real server, which they start: see `server`.

mod commits;
mod completions;
mod duplicates;
mod errors;
mod expiry;
mod failing;
mod faults;
mod finished;
mod from_sql;
mod fronts;
mod install;
mod jobs;
mod leases;
mod looks;
mod notifications;
mod orders;
mod pace;
#[cfg(feature = "cron")]
mod periodic;
mod poolers;
mod prefetch;
mod push_in;
mod retain;
mod returns;
mod roles;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod transactions;
mod unique;
mod views;
mod waiting;
mod workers;

use requeue_postgres::{Builder, Options, PgQueue, Postgres};
use server::SERVER;
use std::future::{poll_fn, Future};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// How long to wait for what must happen.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A queue that holds its items by leases, or by locks.
pub(crate) fn build(builder: Builder<u32>, leased: bool) -> PgQueue<u32> {
    if leased {
        builder.leased(LONG).build()
    } else {
        builder.build()
    }
}

/// A database of its own for each test: a schema of the server.
pub(crate) struct Db {
    pub(crate) schema: String,
    pub(crate) db: Postgres,
}

impl Db {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let db = options(&schema).connect().await.unwrap();
        db.install().await.unwrap();
        Self { schema, db }
    }

    /// What another process sees.
    pub(crate) async fn other(&self) -> Postgres {
        options(&self.schema).connect().await.unwrap()
    }

    /// A connection of a pool past the crate.
    pub(crate) async fn object(&self) -> deadpool_postgres::Object {
        let config = SERVER.url().parse().unwrap();
        let manager = deadpool_postgres::Manager::new(config, NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).build().unwrap();
        pool.get().await.unwrap()
    }

    /// The number in the first row of a query; `@` is the schema.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = sql.replace('@', &self.schema);
        client().await.query_one(&sql, &[]).await.unwrap().get(0)
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let sql = sql.replace('@', &self.schema);
        client().await.batch_execute(&sql).await.unwrap();
    }
}

impl std::ops::Deref for Db {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.db
    }
}

pub(crate) fn options(schema: &str) -> Options {
    Postgres::options(&SERVER.url())
        .schema(schema)
        .max_connections(8)
}

/// A connection past the crate.
pub(crate) async fn client() -> Client {
    let (client, connection) = tokio_postgres::connect(&SERVER.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The notifications of a channel, from now on, while the client is there.
pub(crate) async fn listener(channel: &str) -> (Client, UnboundedReceiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(&SERVER.url(), NoTls).await.unwrap();
    let (send, notified) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                let _ = send.send(notification.payload().to_string());
            }
        }
    });
    let listen = format!("listen {channel}");
    client.batch_execute(&listen).await.unwrap();
    (client, notified)
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    let waits = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waits)
        .await
        .expect("it is not so");
}
