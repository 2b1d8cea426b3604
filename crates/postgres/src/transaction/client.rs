//! The user's own statements in a transaction.

use super::PgTransaction;
use crate::error::Error;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, ToStatement};

/// Runs statements in a transaction, from [`PgTransaction::client`]. The first one begins the database transaction.
///
/// An error of a statement fails the whole transaction, as in `psql`: the commit returns an error then.
#[derive(Debug)]
pub struct Client<'t, 'c> {
    tx: &'t mut PgTransaction<'c>,
}

impl<'t, 'c> Client<'t, 'c> {
    pub(super) fn new(tx: &'t mut PgTransaction<'c>) -> Self {
        Self { tx }
    }

    /// Returns the client of `tokio-postgres`, with an open transaction. Do not end the transaction with it.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] and [`Error::Database`] if there is no connection.
    pub async fn raw(self) -> Result<&'t tokio_postgres::Client, Error> {
        self.tx.link.connect(&self.tx.db).await?;
        self.tx.enter()?;
        self.tx.link.open(&self.tx.db).await?;
        self.tx.leave();
        self.tx.link.client().ok_or(Error::Ended)
    }

    /// Runs a statement, and returns how many rows it changed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`].
    pub async fn execute<S: ?Sized + ToStatement + Sync>(
        self,
        statement: &S,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        Ok(self.raw().await?.execute(statement, params).await?)
    }

    /// Runs a statement, and returns its rows.
    ///
    /// # Errors
    ///
    /// [`Error::Database`].
    pub async fn query<S: ?Sized + ToStatement + Sync>(
        self,
        statement: &S,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        Ok(self.raw().await?.query(statement, params).await?)
    }

    /// Runs a statement that returns one row.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], also if it returns another number of rows.
    pub async fn query_one<S: ?Sized + ToStatement + Sync>(
        self,
        statement: &S,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error> {
        Ok(self.raw().await?.query_one(statement, params).await?)
    }

    /// Runs a statement that returns at most one row.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], also if it returns more rows.
    pub async fn query_opt<S: ?Sized + ToStatement + Sync>(
        self,
        statement: &S,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        Ok(self.raw().await?.query_opt(statement, params).await?)
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Database`].
    pub async fn batch_execute(self, statements: &str) -> Result<(), Error> {
        Ok(self.raw().await?.batch_execute(statements).await?)
    }
}
