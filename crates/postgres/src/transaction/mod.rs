//! Transactions.

mod client;
mod end;
mod group;
mod link;
mod owned;
mod pop;
mod run;
mod write;

pub use client::Client;
pub(crate) use group::Commits;
pub use owned::{OwnedTransaction, RunGuard, RunTransaction, WorkersBuilder};
pub(crate) use write::rule;

use crate::codec::{CodecError, Payload};
use crate::connect::Shared;
use crate::error::{Error, Result};
use crate::item::{PgItem, Record, Ticket};
use crate::pace::Start;
use crate::queue::{micros, Core, Due};
use link::Link;
use requeue::{OnDuplicate, ReturnTo};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An item is retried without an error, for this reason.
const RETRIED: (Option<&str>, &str) = (None, "retried");

/// A transaction over any queues of one database, and over the user's own tables.
///
/// What it pops is held: others skip it. What it pushes is staged. The [commit](Self::commit) makes all of it final, together
/// with the statements run by its [client](Self::client); an abort undoes all of it. Dropping the transaction aborts it, and so
/// does the death of its process.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
/// use requeue_postgres::{PgQueue, Postgres};
/// use std::time::Duration;
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let (jobs, mails): (PgQueue<i64>, PgQueue<String>) = (db.queue("jobs"), db.queue("mails"));
/// let mut tx = db.begin().await?;
/// if let Some(order) = tx.pop_wait(&jobs, Duration::from_secs(30)).await? {
///     tx.client().execute("update orders set state = 'paid' where id = $1", &[&*order]).await?;
///     tx.push(&mails, format!("order {} is paid", *order)).await?;
///     tx.commit().await?; // the order, the job and the mail: all or nothing
/// }
/// # Ok(()) }
/// ```
///
/// # Cancel safety
///
/// If the future of a pop is dropped while its statement runs, it is unknown what the transaction holds, and it can only be
/// aborted: all later calls return [`Error::Broken`]. Dropping [`pop_wait`](Self::pop_wait) while it waits is harmless.
#[must_use = "a transaction that is dropped is aborted"]
pub struct PgTransaction<'c> {
    pub(crate) link: Link<'c>,
    pub(crate) staged: Vec<Staged>,
    taken: Vec<Taken>,
    /// It is that of a worker, for which items are claimed ahead, and which may go on before completions are written.
    of_worker: bool,
    /// A call runs, or was dropped, or failed: what is held is unknown.
    broken: bool,
}

/// An item to be pushed.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) payload: Payload,
    pub(crate) queue: i32,
    pub(crate) priority: i32,
    pub(crate) key: Option<String>,
    pub(crate) due: Due,
    /// The time to live, in microseconds.
    pub(crate) ttl: Option<i64>,
    pub(crate) serial: bool,
    /// No other item of the queue has this key.
    pub(crate) unique: Option<String>,
    /// What becomes of it if one has.
    pub(crate) on_duplicate: OnDuplicate,
}

impl Staged {
    /// Its unique key, and the queue of that.
    pub(crate) fn unique_key(&self) -> Option<(i32, &str)> {
        Some((self.queue, self.unique.as_deref()?))
    }

    /// Whether it is unique by key, and may replace another one or follow it.
    pub(crate) fn replaces(&self) -> bool {
        self.unique.is_some() && self.on_duplicate != OnDuplicate::Refuse
    }

    /// Whether it has a time, or may follow another one.
    pub(crate) fn may_be_delayed(&self) -> bool {
        self.due != Due::Now || self.replaces()
    }

    /// Whether it has a time to live, or is unique by key.
    pub(crate) fn is_limited(&self) -> bool {
        self.ttl.is_some() || self.unique.is_some()
    }
}

/// An item that the transaction holds.
struct Taken {
    core: Arc<Core>,
    record: Record,
    /// The claim that holds it. Otherwise it is held by the lock of its deleted row.
    claim: Option<i64>,
    /// Its unique key, if that stays taken after the commit.
    unique: Option<String>,
    /// The user has it.
    delivered: bool,
    /// The delivery does not count.
    snoozed: bool,
    /// The result of its run, as JSON.
    result: Option<String>,
    ending: Ending,
    /// The slot of the pace of its queue.
    start: Option<Start>,
}

/// The item is ready at the tail.
const TAIL: i64 = -1;

/// What the commit does with an item.
#[derive(Clone, Debug)]
enum Ending {
    /// It leaves its queue.
    Done,
    /// It is ready again: at its place after this many microseconds, or at the [`TAIL`].
    Retry(i64),
    /// It becomes a dead letter, with an error and a reason.
    Dead(Arc<str>, &'static str),
}

impl<'c> PgTransaction<'c> {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            link: Link::new(shared),
            staged: Vec::new(),
            taken: Vec::new(),
            of_worker: false,
            broken: false,
        }
    }

    /// The database. A clone, so that the transaction can be changed.
    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.link.shared)
    }

    /// Returns how many items the transaction holds.
    pub fn held(&self) -> usize {
        self.taken.iter().filter(|taken| taken.is_done()).count()
    }

    /// Returns the tickets of these items, in the order in which they were taken.
    pub fn tickets(&self) -> Vec<Ticket> {
        let held = self.taken.iter().filter(|taken| taken.is_done());
        held.map(|taken| Ticket(taken.record.ticket)).collect()
    }

    /// Returns how many pushes are staged.
    pub fn staged(&self) -> usize {
        self.staged.len()
    }

    /// Returns a client for statements in this transaction.
    pub fn client(&mut self) -> Client<'_, 'c> {
        Client::new(self)
    }

    /// Gives an item back with the commit: it returns to its place in the queue, or to the tail if the queue is
    /// [built so](crate::Builder::on_failure), and the delivery counts.
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item.
    pub fn retry<T>(&mut self, item: PgItem<T>) -> Result<()> {
        self.retry_after(item, Duration::ZERO)
    }

    /// Gives an item back with the commit, to its place or to the tail. If the item has no
    /// [attempt](crate::Builder::max_attempts) left, it becomes a dead letter instead.
    ///
    /// ```no_run
    /// # async fn step(tx: &mut requeue_postgres::PgTransaction<'_>, jobs: requeue_postgres::PgQueue<String>)
    /// # -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::ReturnTo;
    ///
    /// if let Some(job) = tx.pop(&jobs).await? {
    ///     tx.retry_to(job, ReturnTo::Tail)?; // behind the others
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item.
    #[doc(alias = "nack_to")]
    #[allow(clippy::needless_pass_by_value)] // the item is given away
    pub fn retry_to<T>(&mut self, item: PgItem<T>, to: ReturnTo) -> Result<()> {
        let taken = self.find(item.ticket())?;
        taken.retry_to(to, Duration::ZERO, RETRIED);
        Ok(())
    }

    /// Gives an item back with the commit, after a delay. If the item has no [attempt](crate::Builder::max_attempts) left, it
    /// becomes a dead letter instead.
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item.
    #[allow(clippy::needless_pass_by_value)] // the item is given away
    pub fn retry_after<T>(&mut self, item: PgItem<T>, delay: Duration) -> Result<()> {
        let taken = self.find(item.ticket())?;
        let to = taken.core.rules.return_to;
        taken.retry_to(to, delay, RETRIED);
        Ok(())
    }

    /// Gives an item back with the commit, after a delay, and the delivery does not count as an attempt: for what is not to be done yet.
    ///
    /// In a run of workers see [`OwnedTransaction::snooze`].
    ///
    /// ```no_run
    /// # async fn step(tx: &mut requeue_postgres::PgTransaction<'_>, jobs: requeue_postgres::PgQueue<String>)
    /// # -> Result<(), requeue_postgres::Error> {
    /// use std::time::Duration;
    ///
    /// if let Some(job) = tx.pop(&jobs).await? {
    ///     tx.snooze(job, Duration::from_secs(3600))?; // the shop is closed
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item.
    #[doc(alias("reschedule", "postpone", "defer"))]
    #[allow(clippy::needless_pass_by_value)] // the item is given away
    pub fn snooze<T>(&mut self, item: PgItem<T>, delay: Duration) -> Result<()> {
        self.find(item.ticket())?.snooze(delay);
        Ok(())
    }

    /// Sets the result of an item, which is kept with it after the commit if the queue
    /// [keeps](crate::Builder::keep_finished) what is done. In a run of workers see [`OwnedTransaction::set_result`].
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item, and [`Error::Codec`].
    pub fn set_result<T>(&mut self, item: &PgItem<T>, result: &impl Serialize) -> Result<()> {
        let result = json(result)?;
        self.find(item.ticket())?.result = Some(result);
        Ok(())
    }

    /// Gives an item up with the commit: it becomes a [dead letter](crate::PgQueue::dead_letters) with this error.
    ///
    /// # Errors
    ///
    /// [`Error::OtherTransaction`] if the transaction does not hold the item.
    #[allow(clippy::needless_pass_by_value)] // the item is given away
    pub fn fail<T>(&mut self, item: PgItem<T>, error: impl fmt::Display) -> Result<()> {
        let text = error.to_string();
        self.find(item.ticket())?.ending = Ending::dead(&text, "failed");
        Ok(())
    }

    fn find(&mut self, Ticket(ticket): Ticket) -> Result<&mut Taken> {
        let mut held = self.taken.iter_mut().filter(|taken| taken.is_done());
        let found = held.find(|taken| taken.record.ticket == ticket);
        found.ok_or(Error::OtherTransaction)
    }

    /// Begins a call that may change what is held.
    fn enter(&mut self) -> Result<()> {
        self.check()?;
        self.broken = true;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.broken {
            return Err(Error::Broken);
        }
        Ok(())
    }

    /// The call has succeeded.
    fn leave(&mut self) {
        self.broken = false;
    }
}

impl Taken {
    fn is_done(&self) -> bool {
        matches!(self.ending, Ending::Done)
    }

    /// An abort gives the item back at the tail.
    fn fails_to_tail(&self) -> bool {
        self.delivered && self.core.rules.return_to == ReturnTo::Tail
    }

    /// The item is delivered again after a delay, as if it had not been.
    fn snooze(&mut self, delay: Duration) {
        self.snoozed = true;
        self.record.attempts = self.record.attempts.saturating_sub(1);
        self.ending = Ending::Retry(micros(delay));
    }

    /// The item is tried again, if it has an attempt left: there, or after a delay at its place, and has this error from then on, if there
    /// is one. Otherwise it is dead with this error and reason.
    fn retry_to(&mut self, to: ReturnTo, delay: Duration, why: (Option<&str>, &'static str)) {
        let (error, reason) = why;
        let next = self.record.attempts.saturating_add(1);
        self.record.error = error.map(text).or(self.record.error.take());
        self.ending = if self.core.is_exhausted(next) {
            Ending::dead(error.unwrap_or("the item was retried"), reason)
        } else if delay.is_zero() && to == ReturnTo::Tail {
            Ending::Retry(TAIL)
        } else {
            Ending::Retry(micros(delay))
        };
    }
}

impl Ending {
    fn dead(error: &str, reason: &'static str) -> Self {
        Self::Dead(text(error), reason)
    }
}

/// The text of a result.
fn json(result: &impl Serialize) -> Result<String> {
    let encoded = serde_json::to_string(result);
    Ok(encoded.map_err(|error| CodecError::new(error.to_string()))?)
}

/// The text of an error, as the server's text is: without NUL.
fn text(error: &str) -> Arc<str> {
    error.replace('\0', "\u{fffd}").into()
}

requeue::debug_struct!([] PgTransaction<'_>, |tx| held: tx.held(), staged: tx.staged());
