//! The connection of a transaction.

use crate::connect::{Connection, Owner, Params, Shared};
use crate::error::{Error, Result};
use std::sync::Arc;
use tokio::join;
use tokio_postgres::{Row, Transaction};

/// The savepoint of a transaction within another one.
const SAVEPOINT: &str = "savepoint requeue";
const RELEASE: &str = "release savepoint requeue";
const ROLL_BACK_TO: &str = "rollback to savepoint requeue; release savepoint requeue";

/// The savepoint after the locks of items that may go to the tail: a rollback to it undoes all, and keeps these items from others.
const LOCKED: &str = "savepoint requeue_locked";
const ROLL_BACK_TO_LOCKED: &str = "rollback to savepoint requeue_locked";

/// The connection of a transaction, and the database transaction on it.
pub(crate) struct Link<'c> {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Option<Connection<'c>>,
    /// A database transaction is open.
    pub(super) begun: bool,
    /// It has done nothing but lock rows before its savepoint [`LOCKED`].
    saved: bool,
}

impl<'c> Link<'c> {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            connection: None,
            begun: false,
            saved: false,
        }
    }

    /// Works in the transaction of the caller.
    pub(crate) async fn enter(&mut self, transaction: &'c Transaction<'c>) -> Result<()> {
        let connection = Connection::new(Owner::Caller(transaction), self.shared.manner);
        connection.run_all(SAVEPOINT).await?;
        self.begun = true;
        self.connection = Some(connection);
        Ok(())
    }

    pub(super) fn is_within(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(Connection::is_of_caller)
    }

    /// Takes a connection of the pool, unless there is one.
    pub(super) async fn connect(&mut self) -> Result<()> {
        if self.connection.is_none() {
            self.connection = Some(self.shared.connection().await?);
        }
        Ok(())
    }

    pub(super) fn connection(&self) -> Result<&Connection<'c>> {
        self.connection.as_ref().ok_or(Error::Ended)
    }

    /// The connection, with a database transaction.
    pub(super) async fn open(&mut self) -> Result<&Connection<'c>> {
        self.connect().await?;
        // Now, so that a dropped future leaves no transaction open.
        let begun = std::mem::replace(&mut self.begun, true);
        let connection = self.connection()?;
        if !begun {
            connection.run_all("begin").await?;
        }
        Ok(connection)
    }

    /// Runs a statement in the database transaction, which it begins in the same round trip if there is none.
    pub(super) async fn run(&mut self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        self.connect().await?;
        let statement = self.connection()?.prepare(sql).await?;
        let begun = std::mem::replace(&mut self.begun, true);
        let connection = self.connection()?;
        let query = connection.send(&statement, params);
        if begun {
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
    ) -> Result<Vec<Row>> {
        let statement = self.connection()?.prepare(sql).await?;
        self.saved = false; // the commit ends the transaction, also if it fails
        let connection = self.connection()?;
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

    /// Rolls back, runs other statements `then`, and gives the connection back to the pool.
    pub(super) async fn roll_back(&mut self, then: &str) -> Result<()> {
        if self.begun {
            self.connection()?.run_all(&self.undo(then)).await?;
        }
        self.close();
        Ok(())
    }

    /// Sends the same without a wait for its answer.
    pub(super) fn send_roll_back(&mut self, then: &str) {
        let undo = self.undo(then);
        if let Some(connection) = self.connection.take().filter(|_| self.begun) {
            connection.end(&undo);
        }
        self.close();
    }

    /// Sends a statement of the transaction without a wait for its answer.
    pub(super) fn send(&self, statement: &str) {
        if let Some(connection) = &self.connection {
            connection.send_all(statement);
        }
    }

    /// Whether nothing was done in the database transaction, which is none of the caller.
    pub(super) fn is_new(&self) -> bool {
        !self.begun && !self.is_within()
    }

    /// The transaction has locked rows, and nothing else.
    pub(super) fn save(&mut self) {
        self.send(LOCKED);
        self.saved = true;
    }

    /// What undoes the transaction, and then moves items; in that of the caller nothing is moved.
    fn undo(&self, then: &str) -> String {
        if self.is_within() {
            ROLL_BACK_TO.into()
        } else if self.saved && !then.is_empty() {
            format!("{ROLL_BACK_TO_LOCKED}; {then}; commit")
        } else {
            format!("rollback; {then}")
        }
    }

    /// The transaction has ended.
    fn close(&mut self) {
        (self.connection, self.begun, self.saved) = (None, false, false);
    }
}
