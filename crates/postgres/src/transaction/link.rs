//! The connection of a transaction.

use crate::connect::{Params, Postgres};
use crate::error::Error;
use deadpool_postgres::Object;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tokio::join;
use tokio_postgres::{Client, Row, Statement};

/// The savepoint of a transaction within another one.
const SAVEPOINT: &str = "savepoint requeue";
const RELEASE: &str = "release savepoint requeue";
const ROLL_BACK_TO: &str = "rollback to savepoint requeue; release savepoint requeue";

/// The connection of a transaction, and the database transaction on it.
pub(super) enum Link<'c> {
    None,
    /// A connection without a database transaction.
    Idle(Object),
    Begun(Object),
    Within(&'c tokio_postgres::Transaction<'c>),
}

impl<'c> Link<'c> {
    pub(super) async fn within(
        transaction: &'c tokio_postgres::Transaction<'c>,
    ) -> Result<Self, Error> {
        transaction.batch_execute(SAVEPOINT).await?;
        Ok(Self::Within(transaction))
    }

    /// Whether a database transaction is open.
    pub(super) fn is_begun(&self) -> bool {
        matches!(self, Self::Begun(_) | Self::Within(_))
    }

    pub(super) fn is_within(&self) -> bool {
        matches!(self, Self::Within(_))
    }

    pub(super) fn has_connection(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Takes a connection of the pool, unless there is one.
    pub(super) async fn connect(&mut self, db: &Postgres) -> Result<(), Error> {
        if matches!(self, Self::None) {
            *self = Self::Idle(db.shared.connection().await?);
        }
        Ok(())
    }

    pub(super) fn client(&self) -> Option<&Client> {
        match self {
            Self::None => None,
            Self::Idle(object) | Self::Begun(object) => Some(object),
            Self::Within(transaction) => Some(transaction.client()),
        }
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        let prepared = match self {
            Self::None => return Err(Error::Ended),
            Self::Idle(object) | Self::Begun(object) => object.prepare_cached(sql).await,
            Self::Within(transaction) => transaction.prepare(sql).await,
        };
        Ok(prepared?)
    }

    /// The client, with a database transaction.
    pub(super) async fn open(&mut self, db: &Postgres) -> Result<&Client, Error> {
        self.connect(db).await?;
        let begins = matches!(self, Self::Idle(_));
        self.begun(); // now, so that a dropped future leaves no transaction open
        let client = self.client().ok_or(Error::Ended)?;
        if begins {
            client.batch_execute("begin").await?;
        }
        Ok(client)
    }

    /// Runs a statement in the database transaction, which it begins in the same round trip if there is none.
    pub(super) async fn run(
        &mut self,
        db: &Postgres,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.connect(db).await?;
        let statement = self.prepare(sql).await?;
        let begins = matches!(self, Self::Idle(_));
        self.begun();
        let client = self.client().ok_or(Error::Ended)?;
        let query = client.query(&statement, params);
        if !begins {
            return Ok(query.await?);
        }
        let (begun, rows) = join!(biased; client.batch_execute("begin"), query);
        begun?;
        Ok(rows?)
    }

    /// Runs a statement and ends the transaction in the same round trip. A transaction that has failed before fails the
    /// statement too, so that the server cannot roll back in silence.
    pub(super) async fn run_and_commit(
        &mut self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        let end = if self.is_within() { RELEASE } else { "commit" };
        let client = self.client().ok_or(Error::Ended)?;
        let (rows, ended) =
            join!(biased; client.query(&statement, params), client.batch_execute(end));
        let committed = rows.and_then(|rows| ended.map(|()| rows));
        let rows = committed.map_err(|error| Error::from(error).of_commit())?;
        self.close();
        Ok(rows)
    }

    /// Rolls back, and gives the connection back to the pool.
    pub(super) async fn roll_back(&mut self) -> Result<(), Error> {
        if let (Some(statement), Some(client)) = (self.undo(), self.client()) {
            client.batch_execute(statement).await?;
        }
        self.close();
        Ok(())
    }

    /// Sends the rollback without a wait for its answer, and gives the connection back to the pool.
    pub(super) fn send_roll_back(&mut self) {
        if let Some(statement) = self.undo() {
            self.send(statement);
        }
        self.close();
    }

    /// Sends a statement without a wait for its answer. If it fails, later statements fail.
    pub(super) fn send(&self, statement: &str) {
        if let Some(client) = self.client() {
            let sent = pin!(client.batch_execute(statement));
            // The first poll sends it.
            let _ = sent.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    fn undo(&self) -> Option<&'static str> {
        match self {
            Self::None | Self::Idle(_) => None,
            Self::Begun(_) => Some("rollback"),
            Self::Within(_) => Some(ROLL_BACK_TO),
        }
    }

    fn begun(&mut self) {
        *self = match std::mem::replace(self, Self::None) {
            Self::Idle(object) => Self::Begun(object),
            other => other,
        };
    }

    /// The transaction has ended.
    pub(super) fn close(&mut self) {
        *self = Self::None;
    }
}
