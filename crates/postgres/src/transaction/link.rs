//! The connection of a transaction.

use crate::connect::{Connection, Manner, Params, Postgres};
use crate::error::Error;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tokio::join;
use tokio_postgres::Row;

/// The savepoint of a transaction within another one.
const SAVEPOINT: &str = "savepoint requeue";
const RELEASE: &str = "release savepoint requeue";
const ROLL_BACK_TO: &str = "rollback to savepoint requeue; release savepoint requeue";

/// The connection of a transaction, and the database transaction on it.
pub(super) enum Link<'c> {
    None,
    /// A connection without a database transaction.
    Idle(Connection<'c>),
    Begun(Connection<'c>),
    /// The transaction of the caller.
    Within(Connection<'c>),
}

impl<'c> Link<'c> {
    pub(super) async fn within(
        transaction: &'c tokio_postgres::Transaction<'c>,
        manner: Manner,
    ) -> Result<Self, Error> {
        let connection = Connection::of_caller(transaction, manner);
        connection.run_all(SAVEPOINT).await?;
        Ok(Self::Within(connection))
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

    pub(super) fn connection(&self) -> Result<&Connection<'c>, Error> {
        match self {
            Self::None => Err(Error::Ended),
            Self::Idle(connection) | Self::Begun(connection) | Self::Within(connection) => {
                Ok(connection)
            }
        }
    }

    /// The connection, with a database transaction.
    pub(super) async fn open(&mut self, db: &Postgres) -> Result<&Connection<'c>, Error> {
        self.connect(db).await?;
        let begins = matches!(self, Self::Idle(_));
        self.begun(); // now, so that a dropped future leaves no transaction open
        let connection = self.connection()?;
        if begins {
            connection.run_all("begin").await?;
        }
        Ok(connection)
    }

    /// Runs a statement in the database transaction, which it begins in the same round trip if there is none.
    pub(super) async fn run(
        &mut self,
        db: &Postgres,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.connect(db).await?;
        let statement = self.connection()?.prepare(sql).await?;
        let begins = matches!(self, Self::Idle(_));
        self.begun();
        let connection = self.connection()?;
        let query = connection.send(&statement, params);
        if !begins {
            return connection.in_time(query).await;
        }
        let both = async {
            let (begun, rows) = join!(biased; connection.batch_execute("begin"), query);
            begun.and(rows)
        };
        connection.in_time(both).await
    }

    /// Runs a statement and ends the transaction in the same round trip. A transaction that has failed before fails the
    /// statement too, so that the server cannot roll back in silence.
    pub(super) async fn run_and_commit(
        &mut self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let connection = self.connection()?;
        let statement = connection.prepare(sql).await?;
        let end = if self.is_within() { RELEASE } else { "commit" };
        let both = async {
            let query = connection.send(&statement, params);
            let (rows, ended) = join!(biased; query, connection.batch_execute(end));
            rows.and_then(|rows| ended.map(|()| rows))
        };
        let rows = connection.in_time(both).await.map_err(Error::of_commit)?;
        self.close();
        Ok(rows)
    }

    /// Rolls back, and gives the connection back to the pool.
    pub(super) async fn roll_back(&mut self) -> Result<(), Error> {
        if let (Some(statement), Ok(connection)) = (self.undo(), self.connection()) {
            connection.run_all(statement).await?;
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
        if let Ok(connection) = self.connection() {
            let sent = pin!(connection.batch_execute(statement));
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
            Self::Idle(connection) => Self::Begun(connection),
            other => other,
        };
    }

    /// The transaction has ended.
    pub(super) fn close(&mut self) {
        *self = Self::None;
    }
}
