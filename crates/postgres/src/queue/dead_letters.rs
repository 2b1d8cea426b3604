//! Dead letters: items that are not delivered any more.

use super::{count, PgQueue};
use crate::codec::{CodecError, Payload};
use crate::connect::Params;
use crate::error::Error;
use crate::item::{Record, Ticket};
use crate::sql::Statement;
use std::time::SystemTime;
use tokio_postgres::Row;

/// An item that is not delivered any more.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The ticket of the item.
    pub ticket: Ticket,
    /// The item, if it can be decoded.
    pub item: Result<T, CodecError>,
    /// The item as the database stores it.
    pub payload: Payload,
    /// How often it was delivered.
    pub attempts: u32,
    /// The last error, as text.
    pub error: Option<String>,
    /// `aborted`, `panicked`, `retried`, `failed`, `cancelled`, `expired` (its lease), `timed_out` (its time to live) or
    /// `undecodable`.
    pub reason: String,
    /// When it was pushed, by the clock of the server.
    pub pushed_at: SystemTime,
    /// When it became a dead letter.
    pub died_at: SystemTime,
}

/// The dead letters of a queue, from [`PgQueue::dead_letters`].
#[derive(Clone, Copy)]
pub struct DeadLetters<'q, T> {
    queue: &'q PgQueue<T>,
}

impl<T> PgQueue<T> {
    /// Returns a view of the dead letters.
    ///
    /// ```no_run
    /// # async fn look(jobs: requeue_postgres::PgQueue<String>) -> Result<(), requeue_postgres::Error> {
    /// for letter in jobs.dead_letters().list(100).await? {
    ///     println!("{:?}: {:?} after {} attempts", letter.item, letter.error, letter.attempts);
    ///     jobs.dead_letters().requeue(letter.ticket).await?; // try again
    /// }
    /// # Ok(()) }
    /// ```
    pub fn dead_letters(&self) -> DeadLetters<'_, T> {
        DeadLetters { queue: self }
    }
}

impl<T: 'static> DeadLetters<'_, T> {
    /// Returns how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    #[allow(clippy::len_without_is_empty)] // a round trip each
    pub async fn len(&self) -> Result<u64, Error> {
        let rows = self.look(|sql| &sql.count_dead, &[]).await?;
        Ok(count(&rows[0], 0))
    }

    /// Returns up to `max` letters, in the order of their tickets. They stay.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn list(&self, max: usize) -> Result<Vec<DeadLetter<T>>, Error> {
        self.list_after(Ticket(i64::MIN), max).await
    }

    /// Returns up to `max` letters whose tickets are greater than this one.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn list_after(&self, last: Ticket, max: usize) -> Result<Vec<DeadLetter<T>>, Error> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let params: Params<'_> = &[&last.0, &max];
        let rows = self.look(|sql| &sql.list_dead, params).await?;
        Ok(rows.iter().map(|row| self.read(row)).collect())
    }

    /// Removes and returns up to `max` letters.
    ///
    /// One statement, whose time is that of [any other](crate::Options::statement_timeout). Not cancel safe: if the future is dropped
    /// before it is ready, letters may have been removed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn drain(&self, max: usize) -> Result<Vec<DeadLetter<T>>, Error> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let core = &self.queue.core;
        let rows = core.change(|sql| &sql.drain_dead, &[&max]).await?;
        let mut letters: Vec<_> = rows.iter().map(|row| self.read(row)).collect();
        letters.sort_unstable_by_key(|letter| letter.ticket);
        Ok(letters)
    }

    /// Makes a letter ready again, at its place in the queue, and its attempts start again from 1. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn requeue(&self, ticket: Ticket) -> Result<bool, Error> {
        Ok(self.requeue_some(Some(vec![ticket.0])).await? > 0)
    }

    /// Makes all letters ready again, and returns how many. One statement, whose time is that of
    /// [any other](crate::Options::statement_timeout).
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn requeue_all(&self) -> Result<u64, Error> {
        self.requeue_some(None).await
    }

    async fn requeue_some(&self, ids: Option<Vec<i64>>) -> Result<u64, Error> {
        let core = &self.queue.core;
        let params: Params<'_> = &[&ids, &core.rules.ttl];
        core.make_ready(|sql| &sql.requeue_dead, params).await
    }

    /// Runs a statement that looks at the letters, to which items that have expired are added first.
    async fn look(&self, sql: Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let core = &self.queue.core;
        core.db.shared.expire().await?;
        core.run(sql, params).await
    }

    fn read(&self, row: &Row) -> DeadLetter<T> {
        let record = Record::read(row);
        DeadLetter {
            ticket: Ticket(record.id),
            item: self.queue.items.decode(&record.payload),
            attempts: record.deliveries(),
            error: row.get(7),
            reason: row.get(8),
            pushed_at: record.pushed,
            died_at: row.get(9),
            payload: record.payload,
        }
    }
}

requeue::debug_struct!([T] DeadLetters<'_, T>, |letters| queue: letters.queue.core.name);
