//! Looks at a queue, and changes to what is in it.

use super::{count, micros, PgQueue};
use crate::connect::Params;
use crate::error::Error;
use crate::item::{Record, Ticket};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Counts of a queue, from [`PgQueue::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Items that can be taken, and items that open transactions hold by a lock: the server does not tell them apart. Also those that
    /// [expired](crate::Builder::ttl) and were not removed yet.
    pub ready: u64,
    /// Items that are not due yet, or [follow](crate::Builder::on_duplicate) one that is not gone.
    pub delayed: u64,
    /// Leased items.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// Items that were removed since their [time to live](crate::Builder::ttl) was over, by any process.
    pub timed_out: u64,
    /// Waiters of this process.
    pub waiting: usize,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Time since the push of the oldest ready item.
    pub oldest: Option<Duration>,
}

/// A leased item, from [`PgQueue::held`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The item.
    pub ticket: Ticket,
    /// The [name](crate::Builder::holder) of its holder.
    pub holder: Arc<str>,
    /// Since when it is held, by the clock of the server.
    pub since: SystemTime,
    /// How often it was delivered, this delivery included.
    pub attempts: u32,
    /// When the lease expires unless it is renewed.
    pub alive_until: SystemTime,
}

impl<T: 'static> PgQueue<T> {
    /// Returns counts of the queue, as of one moment. Counting takes time in proportion to the items; see
    /// [`statement_timeout`](crate::Options::statement_timeout).
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.core.db.shared.expire().await?;
        let rows = self.core.run(|sql| &sql.stats, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(Stats::default());
        };
        let oldest = row.get::<_, Option<f64>>(5);
        Ok(Stats {
            paused: row.get(0),
            ready: count(row, 1),
            delayed: count(row, 2),
            held: count(row, 3),
            dead: count(row, 4),
            timed_out: count(row, 6),
            waiting: self.core.db.shared.hub.len(self.core.id().await?),
            oldest: oldest.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        })
    }

    /// Returns who holds which leased items since when. Items held by a lock are not listed: their transactions are in
    /// `pg_stat_activity`.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn held(&self) -> Result<Vec<Held>, Error> {
        let rows = self.core.run(|sql| &sql.held, &[]).await?;
        let held = rows.iter().map(|row| Held {
            ticket: Ticket(row.get(0)),
            holder: row.get::<_, &str>(1).into(),
            since: row.get(2),
            attempts: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
            alive_until: row.get(4),
        });
        Ok(held.collect())
    }

    /// Takes back the leased items that holders of this name took at least `age` ago, and returns how many. Their transactions
    /// cannot commit any more, and the deliveries count as failed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn recover(&self, holder: &str, age: Duration) -> Result<u64, Error> {
        let params: Params<'_> = &[&holder, &micros(age)];
        self.core.make_ready(|sql| &sql.recover, params).await
    }

    /// Pauses the queue, for all processes: pops find nothing until it is resumed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn pause(&self) -> Result<(), Error> {
        self.core.run(|sql| &sql.pause, &[&true]).await.map(drop)
    }

    /// Resumes the queue, and wakes waiters of all processes.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`].
    pub async fn resume(&self) -> Result<(), Error> {
        self.core.run(|sql| &sql.pause, &[&false]).await?;
        let (id, shared) = (self.core.id().await?, &self.core.db.shared);
        shared.hub.wake(id, 0);
        shared.tell(vec![(id, 0)]);
        Ok(())
    }

    /// Removes an item that nobody holds, and returns it. `None` if it is held or not in the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`] if it cannot be decoded; it is removed all the same. [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn cancel(&self, ticket: Ticket) -> Result<Option<T>, Error> {
        let rows = self.core.change(|sql| &sql.cancel, &[&ticket.0]).await?;
        let record = rows.first().map(Record::read);
        let decoded = record.map(|record| self.items.decode(&record.payload));
        Ok(decoded.transpose()?)
    }

    /// Changes the priority of an item that nobody holds. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn reprioritize(&self, ticket: Ticket, priority: u16) -> Result<bool, Error> {
        let params: Params<'_> = &[&ticket.0, &i32::from(priority)];
        let rows = self.core.change(|sql| &sql.reprioritize, params).await?;
        Ok(rows.first().is_some_and(|row| count(row, 0) > 0))
    }
}
