//! How to connect.

use super::server::{Server, Tls};
use super::{Manner, Postgres};
use crate::error::Result;
use deadpool_postgres::Pool;
use std::time::Duration;
use tokio_postgres::Config;
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect;

/// Settings of each connection: the server notices a dead client while it runs a statement and while it waits for one.
const SETTINGS: &str = "-c client_connection_check_interval=1000 \
    -c tcp_keepalives_idle=1 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 -c tcp_user_timeout=4000";
const KEEPALIVE: Duration = Duration::from_secs(1);
/// How long sent data may stay without an answer of the other machine.
const UNANSWERED: Duration = Duration::from_secs(4);
/// How long the answer to a statement may take, unless it is set.
const STATEMENT: Duration = Duration::from_secs(10);

/// How to connect to a database, from [`Postgres::options`]; for [a pool](Self::with_pool), from [`Options::default`].
///
/// ```no_run
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue_postgres::Postgres;
///
/// let options = Postgres::options("postgres://app@localhost/app").schema("jobs").max_connections(32);
/// let db = options.connect().await?;
/// db.install().await?;
/// # Ok::<(), requeue_postgres::Error>(())
/// # });
/// ```
#[must_use = "options do nothing until they connect"]
#[derive(Clone)]
pub struct Options {
    url: String,
    pub(super) schema: String,
    max_connections: usize,
    tls: Tls,
    pub(super) manner: Manner,
}

impl Default for Options {
    /// Options without a URL.
    fn default() -> Self {
        Self {
            url: String::new(),
            schema: "requeue".into(),
            max_connections: 16,
            tls: Tls::default(),
            manner: Manner {
                limit: STATEMENT,
                unnamed: false,
                foreign: false,
            },
        }
    }
}

impl Options {
    pub(super) fn new(url: &str) -> Self {
        let url = url.into();
        Self {
            url,
            ..Self::default()
        }
    }

    /// Sets the schema of the tables; `requeue` by default. The name is quoted.
    pub fn schema(mut self, name: &str) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets how many connections the pool opens at most; 16 by default. Besides them the process has one for short statements
    /// and one that listens. An open transaction in locked mode has a connection.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn max_connections(mut self, count: usize) -> Self {
        assert!(count > 0, "a pool without connections");
        self.max_connections = count;
        self
    }

    /// Sets how long the answer to a statement may take, locks that it waits for included; 10 seconds by default. After that the
    /// call fails with [`Error::TimedOut`](crate::Error::TimedOut), or [`Error::InDoubt`](crate::Error::InDoubt) if it was a commit, and the connection is closed and replaced: a
    /// connection that hangs without being closed stops no task for longer.
    ///
    /// Calls that look at a whole queue are one statement too: [`stats`](crate::PgQueue::stats),
    /// [`requeue_all`](crate::DeadLetters::requeue_all), [`drain`](crate::DeadLetters::drain) and
    /// [`sweep_keys`](Postgres::sweep_keys). If one of them needs more time, it fails, and the server undoes it: large queues need a
    /// larger limit. [`install`](Postgres::install) has none.
    ///
    /// To open a connection may take as long, unless a pool of one's own says otherwise. The heartbeat of leases does not wait for
    /// longer than a third of their [term](crate::Builder::leased), or a second. A statement of one's own may have
    /// [a limit of its own](crate::Client::timeout).
    ///
    /// # Panics
    ///
    /// If `limit` is zero.
    #[track_caller]
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        assert!(!limit.is_zero(), "statements without time");
        self.manner.limit = limit;
        self
    }

    /// The server is behind a pooler that gives each transaction another session: `pgbouncer` with `pool_mode = transaction`.
    ///
    /// Then statements have no names, settings are not sent at the start, and nothing [listens](Postgres::from_pool): waiters of
    /// this process see the pushes of other processes at their next poll, within a second. See the page on
    /// [poolers](crate::guide::poolers).
    pub fn transaction_pooling(mut self) -> Self {
        self.manner.unnamed = true;
        self
    }

    /// Has all connections encrypted by `rustls`, also that which listens, whatever `sslmode` the URL has: a server without TLS is
    /// refused, and so is one whose certificate is not of this name or not signed by one of the roots of the `config`.
    ///
    /// With the feature `tls`. The crate `rustls` is exported; its provider of cryptography, such as `ring`, is a feature that your program chooses.
    ///
    /// ```no_run
    /// # async fn connect(roots: requeue_postgres::rustls::RootCertStore) -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{rustls::ClientConfig, Postgres};
    ///
    /// let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// let db = Postgres::options("postgres://app@db.example.org/app").tls(config).connect().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    #[doc(alias("ssl", "sslmode"))]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Tls::Rustls(MakeRustlsConnect::new(config));
        self
    }

    /// Connects, without TLS unless it is set; it can also be that of a pool, which is passed to [`with_pool`](Self::with_pool).
    ///
    /// # Errors
    ///
    /// [`Error::Database`](crate::Error::Database) if the URL is invalid or the server refuses the connection, [`Error::Pool`](crate::Error::Pool) if it does not answer within
    /// the [time of a statement](Self::statement_timeout), and [`Error::Name`](crate::Error::Name) for the schema.
    pub async fn connect(self) -> Result<Postgres> {
        let server = Server::new(self.config()?, &self.tls);
        let pool = server.pool(self.max_connections)?;
        let opener = server.pool(1)?;
        let listens = (!self.manner.unnamed).then_some(server);
        let db = Postgres::new(&self, pool, opener, listens)?;
        db.shared.control().await?; // the server can be reached
        Ok(db)
    }

    /// Uses the connections of a pool, instead of a URL. See [`Postgres::from_pool`].
    ///
    /// # Errors
    ///
    /// [`Error::Name`](crate::Error::Name) for the schema.
    pub fn with_pool(mut self, pool: Pool) -> Result<Postgres> {
        self.manner.foreign = true;
        Postgres::new(&self, pool.clone(), pool, None)
    }

    fn config(&self) -> Result<Config> {
        let mut config: Config = self.url.parse()?;
        config.keepalives(true).keepalives_idle(KEEPALIVE);
        config.keepalives_interval(KEEPALIVE).keepalives_retries(3);
        config.tcp_user_timeout(UNANSWERED);
        if !self.manner.unnamed {
            config.options(match config.get_options() {
                Some(options) => format!("{SETTINGS} {options}"),
                None => SETTINGS.into(),
            });
        }
        Ok(config)
    }
}

// The URL may have a password in it.
requeue::debug_struct!([] Options, |of| schema: of.schema, max_connections: of.max_connections, manner: of.manner);
