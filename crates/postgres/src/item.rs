//! Items and their tickets.

use crate::codec::Payload;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_postgres::Row;

/// Identifies an item in its database, from its commit on: for [`PgQueue::cancel`](crate::PgQueue::cancel) and
/// [`PgQueue::reprioritize`](crate::PgQueue::reprioritize).
///
/// Items of one priority are delivered in the order of their tickets, except for those that went to the
/// [tail](crate::Builder::on_failure).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub i64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An item that a transaction holds: owned and `Send`.
///
/// Dropping it does not give the item back; the transaction does.
pub struct PgItem<T> {
    value: T,
    ticket: Ticket,
    attempts: u32,
    pushed_at: SystemTime,
    pub(crate) error: Option<Arc<str>>,
}

impl<T> PgItem<T> {
    pub(crate) fn new(value: T, record: &Record) -> Self {
        Self {
            value,
            ticket: Ticket(record.ticket),
            attempts: record.deliveries(),
            pushed_at: record.pushed,
            error: record.error.clone(),
        }
    }

    /// Returns how often the item was delivered, this delivery included.
    ///
    /// A delivery whose process died counts if the queue is [leased](crate::Builder::leased) or
    /// [counts attempts](crate::Builder::count_attempts).
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the last error with which a delivery of the item has failed before: the first 1,000 characters of what a run of
    /// [workers](crate::PgQueue::workers) reported, or panicked with. Deliveries that end without an error, as by
    /// [`retry`](crate::PgTransaction::retry), leave it as it is.
    pub fn last_error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the ticket of the item.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns when the item was pushed, by the clock of the server.
    pub fn pushed_at(&self) -> SystemTime {
        self.pushed_at
    }

    /// Returns the value. The transaction still holds the item.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for PgItem<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for PgItem<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for PgItem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for PgItem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// An item as a statement returns it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The place: a new one at each return to the tail.
    pub(crate) id: i64,
    /// The first id.
    pub(crate) ticket: i64,
    pub(crate) priority: i32,
    pub(crate) key: Option<String>,
    /// Deliveries, this one included.
    pub(crate) attempts: i32,
    pub(crate) payload: Payload,
    pub(crate) pushed: SystemTime,
    pub(crate) expires: Option<SystemTime>,
    /// How long it lives, from its claim on.
    pub(crate) lives: Option<Duration>,
    pub(crate) error: Option<Arc<str>>,
}

impl Record {
    /// Reads the columns that `RECORD` names.
    pub(crate) fn read(row: &Row) -> Self {
        let payload = match row.get::<_, Option<String>>(4) {
            Some(text) => Payload::Json(text),
            None => Payload::Bytes(row.get::<_, Option<Vec<u8>>>(5).unwrap_or_default()),
        };
        Self {
            id: row.get(0),
            ticket: row.get(0),
            priority: row.get(1),
            key: row.get(2),
            attempts: row.get(3),
            payload,
            pushed: row.get(6),
            expires: None,
            lives: None,
            error: None,
        }
    }

    /// Reads the columns that `CLAIMED` names.
    pub(crate) fn read_claimed(row: &Row) -> Self {
        let mut record = Self::read(row);
        record.ticket = row.get::<_, Option<i64>>(7).unwrap_or(record.id);
        record.expires = row.get(8);
        let now: SystemTime = row.get(9);
        let lives = |expires: SystemTime| expires.duration_since(now).unwrap_or_default();
        record.lives = record.expires.map(lives);
        record.error = row.get::<_, Option<&str>>(10).map(Arc::from);
        record
    }

    pub(crate) fn deliveries(&self) -> u32 {
        u32::try_from(self.attempts).unwrap_or(0)
    }
}
