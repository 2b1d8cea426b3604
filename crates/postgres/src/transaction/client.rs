//! The user's own statements in a transaction.

use super::PgTransaction;
use crate::connect::Connection;
use crate::error::Error;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, ToStatement};

/// Runs statements in a transaction, from [`PgTransaction::client`]. The first one begins the database transaction.
///
/// Each statement may take as long as those of the [queue](crate::Options::statement_timeout), unless it has
/// [a limit of its own](Self::timeout). If it takes longer, the transaction can only be aborted.
///
/// An error of a statement fails the whole transaction, as in `psql`: the commit returns an error then.
#[derive(Debug)]
pub struct Client<'t, 'c> {
    tx: &'t mut PgTransaction<'c>,
    limit: Option<Duration>,
}

impl<'t, 'c> Client<'t, 'c> {
    pub(super) fn new(tx: &'t mut PgTransaction<'c>) -> Self {
        Self { tx, limit: None }
    }

    /// Sets how long the next statement may take: `tx.client().timeout(limit).execute(..)`.
    #[must_use = "it is the time of a statement"]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Returns the client of `tokio-postgres`, with an open transaction. Do not end the transaction with it. Its statements may
    /// take any time.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] and [`Error::Database`] if there is no connection.
    pub async fn raw(self) -> Result<&'t tokio_postgres::Client, Error> {
        Ok(self.begun().await?.0)
    }

    /// The connection, and the time for a statement.
    async fn begun(self) -> Result<(&'t Connection<'c>, Duration), Error> {
        let Self { tx, limit } = self;
        tx.link.connect().await?;
        tx.enter()?;
        tx.link.open().await?;
        tx.leave();
        let connection = tx.link.connection()?;
        Ok((connection, limit.unwrap_or(connection.manner.limit)))
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::TimedOut`].
    pub async fn batch_execute(self, statements: &str) -> Result<(), Error> {
        let (connection, limit) = self.begun().await?;
        let answer = connection.batch_execute(statements);
        connection.within(limit, answer).await
    }
}

macro_rules! with_parameters {
    ($($(#[$doc:meta])* $verb:ident -> $output:ty;)*) => {
        impl Client<'_, '_> { $(
            $(#[$doc])*
            pub async fn $verb<S: ?Sized + ToStatement + Sync>(
                self,
                statement: &S,
                params: &[&(dyn ToSql + Sync)],
            ) -> Result<$output, Error> {
                let (connection, limit) = self.begun().await?;
                let answer = connection.$verb(statement, params);
                connection.within(limit, answer).await
            }
        )* }
    };
}

with_parameters! {
    /// Runs a statement, and returns how many rows it changed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::TimedOut`].
    execute -> u64;
    /// Runs a statement, and returns its rows.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::TimedOut`].
    query -> Vec<Row>;
    /// Runs a statement that returns one row.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], and [`Error::Database`], also if it returns another number of rows.
    query_one -> Row;
    /// Runs a statement that returns at most one row.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], and [`Error::Database`], also if it returns more rows.
    query_opt -> Option<Row>;
}
