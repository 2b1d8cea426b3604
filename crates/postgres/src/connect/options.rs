//! How to connect.

use super::{Postgres, Shared};
use crate::error::Error;
use crate::schema::Schema;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::fmt;
use std::time::Duration;
use tokio_postgres::{Config, NoTls};

/// Settings of each connection: the server notices a dead client while it runs a statement and while it waits for one.
const SETTINGS: &str = "-c client_connection_check_interval=1000 \
    -c tcp_keepalives_idle=1 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 -c tcp_user_timeout=4000";
const KEEPALIVE: Duration = Duration::from_secs(1);
/// How long sent data may stay without an answer of the other machine.
const UNANSWERED: Duration = Duration::from_secs(4);
/// How long a call waits for a connection of the pool.
const POOL_WAIT: Duration = Duration::from_secs(30);

/// How to connect to a database, from [`Postgres::options`].
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
    schema: String,
    max_connections: usize,
}

impl Options {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            schema: "requeue".into(),
            max_connections: 16,
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

    /// Connects, without TLS. For TLS, make a pool and pass it to [`Postgres::from_pool`].
    ///
    /// # Errors
    ///
    /// [`Error::Database`] if the URL is none or the server cannot be reached, and [`Error::Name`] for the schema.
    pub async fn connect(self) -> Result<Postgres, Error> {
        let schema = Schema::new(&self.schema)?;
        let mut config: Config = self.url.parse()?;
        config.keepalives(true).keepalives_idle(KEEPALIVE);
        config.keepalives_interval(KEEPALIVE).keepalives_retries(3);
        config.tcp_user_timeout(UNANSWERED);
        config.options(match config.get_options() {
            Some(options) => format!("{SETTINGS} {options}"),
            None => SETTINGS.into(),
        });
        let recycling_method = RecyclingMethod::Fast;
        let manager =
            Manager::from_config(config.clone(), NoTls, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(self.max_connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_WAIT))
            .build()
            .map_err(|error| Error::Pool(error.to_string().into()))?;
        let db = Postgres::new(Shared::new(pool, schema, Some(config)));
        db.shared.control().await?; // the server can be reached
        Ok(db)
    }

    /// Uses the connections of a pool. See [`Postgres::from_pool`].
    ///
    /// # Errors
    ///
    /// [`Error::Name`] for the schema.
    pub(super) fn with_pool(&self, pool: Pool) -> Result<Postgres, Error> {
        let schema = Schema::new(&self.schema)?;
        Ok(Postgres::new(Shared::new(pool, schema, None)))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options") // the URL may have a password in it
            .field("schema", &self.schema)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}
