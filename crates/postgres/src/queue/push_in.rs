//! Pushes in open transactions of the caller, also of other crates.

use super::push::{Placed, PushTo};
use super::PgQueue;
use crate::connect::Param;
use crate::error::Result;
use crate::item::Ticket;
use crate::transaction::{rule, Staged};
use std::future::Future;
use tokio_postgres::types::ToSql;

/// An open transaction of the caller, for [`PgQueue::push_in`].
///
/// Of `tokio-postgres` and `deadpool-postgres` it is passed as `&transaction`; with the feature `sqlx`, `&mut transaction` or `&mut *connection`
/// of that crate.
pub trait OpenTransaction: Runs {}

/// Calls the function that pushes.
pub(crate) trait Runs {
    fn run(self, sql: &str, pushed: Pushed<'_>) -> impl Future<Output = Result<Vec<i64>>> + Send;
}

/// The parameters of the function.
pub(crate) struct Pushed<'p> {
    queue: &'p str,
    json: Option<Vec<&'p str>>,
    bytes: Option<Vec<&'p [u8]>>,
    priority: i32,
    after: Option<i64>,
    at: Option<i64>,
    keys: Vec<Option<&'p str>>,
    ttl: Option<i64>,
    unique: Vec<Option<&'p str>>,
    rule: i32,
    serial: bool,
}

impl<'p> Pushed<'p> {
    /// Items that were staged together for a queue of this name.
    fn of(queue: &'p str, staged: &'p [Staged]) -> Self {
        let first = staged.first();
        let (after, at) = first.map_or((None, None), |item| item.due.columns());
        let columns = || staged.iter().map(|item| item.payload.columns());
        Self {
            queue,
            json: columns().map(|(json, _)| json).collect(),
            bytes: columns().map(|(_, bytes)| bytes).collect(),
            priority: first.map_or(0, |item| item.priority),
            after,
            at,
            keys: staged.iter().map(|item| item.key.as_deref()).collect(),
            ttl: first.and_then(|item| item.ttl),
            unique: staged.iter().map(|item| item.unique.as_deref()).collect(),
            rule: first.map_or(0, |item| rule(item.on_duplicate).into()),
            serial: first.is_some_and(|item| item.serial),
        }
    }

    fn params(&self) -> [&dyn Param; 11] {
        [
            &self.queue,
            &self.json,
            &self.bytes,
            &self.priority,
            &self.after,
            &self.at,
            &self.keys,
            &self.ttl,
            &self.unique,
            &self.rule,
            &self.serial,
        ]
    }
}

impl Runs for &tokio_postgres::Transaction<'_> {
    async fn run(self, sql: &str, pushed: Pushed<'_>) -> Result<Vec<i64>> {
        let params = pushed.params();
        let params: Vec<_> = params
            .iter()
            .map(|param| (*param as &(dyn ToSql + Sync), param.ty()))
            .collect();
        let rows = self.query_typed(sql, &params).await?;
        Ok(rows[0].get(0))
    }
}

impl OpenTransaction for &tokio_postgres::Transaction<'_> {}

impl Runs for &deadpool_postgres::Transaction<'_> {
    fn run(self, sql: &str, pushed: Pushed<'_>) -> impl Future<Output = Result<Vec<i64>>> + Send {
        (&**self).run(sql, pushed)
    }
}

impl OpenTransaction for &deadpool_postgres::Transaction<'_> {}

#[cfg(feature = "sqlx")]
mod of_sqlx {
    use super::{OpenTransaction, Pushed, Runs};
    use crate::error::Result;
    use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};
    use std::future::Future;

    impl Runs for &mut PgConnection {
        async fn run(self, sql: &str, pushed: Pushed<'_>) -> Result<Vec<i64>> {
            let call = sqlx::query_scalar(AssertSqlSafe(sql)).bind(pushed.queue);
            let call = call
                .bind(pushed.json)
                .bind(pushed.bytes)
                .bind(pushed.priority);
            let call = call
                .bind(pushed.after)
                .bind(pushed.at)
                .bind(pushed.keys)
                .bind(pushed.ttl);
            let call = call
                .bind(pushed.unique)
                .bind(pushed.rule)
                .bind(pushed.serial);
            Ok(call.fetch_one(self).await?)
        }
    }

    impl OpenTransaction for &mut PgConnection {}

    impl Runs for &mut Transaction<'_, Postgres> {
        fn run(
            self,
            sql: &str,
            pushed: Pushed<'_>,
        ) -> impl Future<Output = Result<Vec<i64>>> + Send {
            (&mut **self).run(sql, pushed)
        }
    }

    impl OpenTransaction for &mut Transaction<'_, Postgres> {}
}

impl<T: 'static> PushTo<'_, T> {
    /// Pushes an item in an open transaction: see [`PgQueue::push_in`].
    ///
    /// # Errors
    ///
    /// As for [`PgQueue::push_in`].
    pub async fn push_in(self, transaction: impl OpenTransaction, item: T) -> Result<Ticket> {
        Ok(self.push_batch_in(transaction, [item]).await?[0])
    }

    /// Pushes items in an open transaction, all or none.
    ///
    /// # Errors
    ///
    /// As for [`PgQueue::push_in`].
    pub async fn push_batch_in(
        self,
        transaction: impl OpenTransaction,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Ticket>> {
        let (core, staged) = (&self.to.core, self.encode(self.to, 0, &[], items)?);
        core.check_name()?;
        let pushed = Pushed::of(&core.name, &staged);
        let tickets = transaction.run(&core.db.shared.sql.push_in, pushed).await?;
        Ok(tickets.into_iter().map(Ticket).collect())
    }
}

impl<T: 'static> PgQueue<T> {
    /// Pushes an item in an open transaction of the caller, of `tokio-postgres`, `deadpool-postgres`, or, with the feature `sqlx`, of that
    /// crate: the item is in the queue when the transaction commits, and nothing is left if it is rolled back.
    ///
    /// One round trip, on no other connection than that of the transaction. It calls a function of the schema that may be granted to a
    /// [role that only pushes](crate::guide::sql), and that other languages call too. What the queue keeps for all processes,
    /// [`max_attempts`](crate::Builder::max_attempts) and [`on_expired`](crate::Builder::on_expired), is not set by it, but by a process that
    /// pops. To pop in the transaction too, see [`within`](crate::Postgres::within).
    ///
    /// If another process waits for the item, the commit takes the lock of `NOTIFY`: see the page on
    /// [notifications](crate::guide::notifications).
    ///
    /// ```no_run
    /// # async fn order(jobs: requeue_postgres::PgQueue<i64>, client: &mut tokio_postgres::Client) -> Result<(), requeue_postgres::Error> {
    /// let tx = client.transaction().await?;
    /// tx.execute("insert into orders values (7)", &[]).await?;
    /// jobs.push_in(&tx, 7).await?;
    /// tx.commit().await?; // the order and the job, or none
    /// # Ok(()) }
    /// ```
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the item may be part of the transaction.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`](crate::Error::Codec) and [`Error::Key`](crate::Error::Key) for the item, before anything is sent. [`Error::Duplicate`](crate::Error::Duplicate) if its [key](crate::Builder::unique_by) is
    /// taken, [`Error::Name`](crate::Error::Name) for the queue, and [`Error::Database`](crate::Error::Database) or `Error::Sqlx`: then the transaction of the caller has failed.
    pub async fn push_in(&self, transaction: impl OpenTransaction, item: T) -> Result<Ticket> {
        Placed::new(self).push_in(transaction, item).await
    }

    /// Pushes items in an open transaction, all or none, as [`push_in`](Self::push_in) does.
    ///
    /// # Errors
    ///
    /// As for [`push_in`](Self::push_in).
    pub async fn push_batch_in(
        &self,
        transaction: impl OpenTransaction,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Ticket>> {
        Placed::new(self).push_batch_in(transaction, items).await
    }
}
