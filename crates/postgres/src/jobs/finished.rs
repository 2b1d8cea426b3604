//! Items that were done and are kept for a time, with the results of their runs.

use crate::connect::Params;
use crate::error::Result;
use crate::item::{Record, Ticket};
use crate::queue::{micros, Builder, PgQueue};
use crate::CodecError;
use serde::de::DeserializeOwned;
use std::time::{Duration, SystemTime};
use tokio_postgres::Row;

/// An item that was done, from [`PgQueue::finished`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished<T> {
    /// The ticket of the item.
    pub ticket: Ticket,
    /// The item, if it can be decoded.
    pub item: Result<T, CodecError>,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it was pushed, by the clock of the server.
    pub pushed_at: SystemTime,
    /// When it was done.
    pub finished_at: SystemTime,
    /// The [result](crate::PgTransaction::set_result), as JSON.
    pub json: Option<String>,
}

impl<T> Finished<T> {
    /// Decodes the [result](crate::PgTransaction::set_result). `None` if there is none.
    ///
    /// # Errors
    ///
    /// If it is of another type.
    pub fn result<R: DeserializeOwned>(&self) -> Result<Option<R>, CodecError> {
        let decode = |json: &String| serde_json::from_str(json);
        let decoded = self.json.as_ref().map(decode).transpose();
        decoded.map_err(|error| CodecError::new(error.to_string()))
    }
}

impl<T, E> Builder<T, E> {
    /// Keeps items that this process has done, with the [results](crate::PgTransaction::set_result) of their runs, for this time: for
    /// [`finished`](PgQueue::finished). They are not kept by default.
    ///
    /// A commit writes them by a statement each, in a transaction of its own instead of together with others. A task removes those
    /// whose time is over, within ten minutes.
    #[doc(alias("retention", "history", "results"))]
    pub fn keep_finished(mut self, time: Duration) -> Self {
        self.core.rules.keep_finished = Some(micros(time));
        self
    }
}

impl<T: 'static> PgQueue<T> {
    /// Returns an item that was done less than the time ago for which it is [kept](Builder::keep_finished).
    ///
    /// ```no_run
    /// # async fn example(sums: requeue_postgres::PgQueue<(u32, u32)>) -> Result<(), requeue_postgres::Error> {
    /// let ticket = sums.push((3, 4)).await?;
    /// let tasks = sums.workers().run_async(|numbers, tx| async move { tx.set_result(&(numbers.0 + numbers.1)).await });
    /// if let Some(finished) = sums.finished(ticket).await? {
    ///     println!("{:?}", finished.result::<u32>());
    /// }
    /// # tasks.stop().await; Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Database`](crate::Error::Database) and [`Error::Pool`](crate::Error::Pool).
    pub async fn finished(&self, Ticket(ticket): Ticket) -> Result<Option<Finished<T>>> {
        let found = self.look_at_finished(ticket - 1, 1).await?;
        let mut found = found.into_iter();
        Ok(found.next().filter(|it| it.ticket == Ticket(ticket)))
    }

    /// Returns up to `max` items that were done, in the order of their tickets, of those whose tickets are greater than `last`.
    ///
    /// # Errors
    ///
    /// As for [`finished`](Self::finished).
    pub async fn finished_after(&self, last: Ticket, max: usize) -> Result<Vec<Finished<T>>> {
        self.look_at_finished(last.0, max).await
    }

    async fn look_at_finished(&self, last: i64, max: usize) -> Result<Vec<Finished<T>>> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let params: Params<'_> = &[&last, &max];
        let rows = self.core.run(|sql| &sql.list_finished, params).await?;
        Ok(rows.iter().map(|row| self.read_finished(row)).collect())
    }

    fn read_finished(&self, row: &Row) -> Finished<T> {
        let record = Record::read(row);
        Finished {
            ticket: Ticket(record.id),
            item: self.items.decode(&record.payload),
            attempts: record.deliveries(),
            pushed_at: record.pushed,
            finished_at: row.get(7),
            json: row.get(8),
        }
    }
}
