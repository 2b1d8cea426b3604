//! Queues.

mod builder;
mod dead_letters;
mod inspect;
mod push;
mod push_in;
mod retain;
mod unique;

pub use builder::Builder;
pub use dead_letters::{DeadLetter, DeadLetters};
pub use inspect::{Held, Stats};
pub(crate) use push::{micros, Due};
pub use push::{Placed, PushTo, PushWith};
pub use push_in::OpenTransaction;
pub use retain::Queued;

use crate::codec::{CodecError, Encoding, Payload};
use crate::completions::Completions;
use crate::connect::{Params, Postgres};
use crate::error::{Error, Result};
use crate::prefetch::Buffer;
use crate::sql::{Order, Statement};
use crate::transaction::{OwnedTransaction, WorkersBuilder};
use parking_lot::Mutex;
use requeue::workers::text_of_panic;
use requeue::{AfterTtl, Backoff, OnDuplicate, Pace, ReturnTo, Workers};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio_postgres::Row;

/// The longest name of a queue, and the longest key, in bytes: both are in an index.
const LONGEST: usize = 1000;

/// A queue of a database: cheap to clone, for any number of tasks, processes and machines.
///
/// Items are pushed and popped by [transactions](crate::PgTransaction), over any queues of one database.
/// [`push`](Self::push) is a transaction of its own.
///
/// # Order
///
/// By priority, lowest first, then by their [tickets](crate::Ticket), of those that are visible. A commit draws increasing tickets for
/// its items as its last step, so what is pushed after a commit has returned comes after its items; of commits that run at the
/// same time, the one with the later tickets may be visible first. The commit of a transaction [within](crate::Postgres::within) another one
/// draws its tickets at once, and its items are visible when the outer one commits: then they come before those that were pushed
/// meanwhile. An item that is given back returns to its place, or to the [tail](Builder::on_failure). A queue that is [fair](Builder::fair_by) takes one item of each key
/// in turn.
pub struct PgQueue<T> {
    pub(crate) core: Arc<Core>,
    pub(crate) items: Arc<Items<T>>,
}

/// What a queue knows of the type of its items.
pub(crate) struct Items<T> {
    pub(crate) encoding: Box<dyn Encoding<T>>,
    pub(crate) key: Option<Key<T>>,
    /// The key by which items are unique.
    pub(crate) unique: Option<Key<T>>,
}

impl<T: 'static> Items<T> {
    /// Decodes an item. The codec is user code; its panic is an error.
    pub(crate) fn decode(&self, payload: &Payload) -> Result<T, CodecError> {
        let decoded = catch_unwind(AssertUnwindSafe(|| self.encoding.decode(payload)));
        decoded.unwrap_or_else(|panic| {
            let text = format!("the codec panicked: {}", text_of_panic(&*panic));
            std::mem::forget(panic); // its destructor may panic
            Err(CodecError::new(text))
        })
    }
}

pub(crate) type Key<T> = Box<dyn Fn(&T) -> String + Send + Sync>;

/// A queue without the type of its items.
pub(crate) struct Core {
    pub(crate) db: Postgres,
    pub(crate) name: Arc<str>,
    pub(crate) rules: Rules,
    /// How fast items are started.
    pub(crate) pace: Pace,
    /// Items that are claimed ahead.
    pub(crate) buffer: Option<Arc<Buffer>>,
    /// Completions that are written later.
    pub(crate) completions: Option<Arc<Completions>>,
    /// The key of the last item that this process took, if the order has keys.
    pub(crate) last_key: Mutex<String>,
    id: OnceCell<i32>,
}

/// The options of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// How long a holder that is silent keeps its items.
    pub(crate) term: Option<Duration>,
    /// The name of the holder.
    pub(crate) holder: Arc<str>,
    pub(crate) max_attempts: Option<i32>,
    pub(crate) count_attempts: bool,
    pub(crate) backoff: Option<Backoff>,
    /// How long a run of tasks may take.
    pub(crate) run_timeout: Option<Duration>,
    /// Where items of failed deliveries go.
    pub(crate) return_to: ReturnTo,
    /// How long items live, in microseconds.
    pub(crate) ttl: Option<i64>,
    /// What becomes of them then; if it is not set, what others have set.
    pub(crate) after_ttl: Option<AfterTtl>,
    /// How long the unique key of an item stays taken after its commit, in microseconds; 0 if not at all.
    pub(crate) unique_for: i64,
    /// What becomes of a push whose item has the unique key of another one.
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) order: Order,
    /// How long items are kept that are done, in microseconds.
    pub(crate) keep_finished: Option<i64>,
}

impl Rules {
    /// Whether deliveries of locked items are counted in the table `attempts`.
    pub(crate) fn is_counted(&self) -> bool {
        self.count_attempts && self.max_attempts.is_some()
    }

    /// Whether the order of the items is by keys.
    fn has_keys(&self) -> bool {
        self.order != Order::Fifo
    }

    pub(crate) fn is_serial(&self) -> bool {
        self.order == Order::Serial
    }
}

impl Core {
    /// The id of the queue, which is created if there is none of its name.
    pub(crate) async fn id(self: &Arc<Self>) -> Result<i32> {
        let find = |core: Arc<Self>| async move { core.find().await };
        self.db.shared.once(self, |core| &core.id, find).await
    }

    pub(crate) fn known_id(&self) -> Option<i32> {
        self.id.get().copied()
    }

    async fn find(&self) -> Result<i32> {
        let (name, max_attempts) = (&*self.name, self.rules.max_attempts);
        let dead_on_expiry = self
            .rules
            .after_ttl
            .map(|after| after == AfterTtl::DeadLetter);
        self.check_name()?;
        let shared = &self.db.shared;
        shared.process().await?;
        let found = shared.run(&shared.sql.find_queue, &[&name]).await?;
        let serial = self.rules.has_keys().then_some(self.rules.is_serial());
        let is_so = |row: &&Row| {
            (max_attempts.is_none() || row.get::<_, Option<i32>>(1) == max_attempts)
                && (dead_on_expiry.is_none() || row.get::<_, Option<bool>>(2) == dead_on_expiry)
                && (serial.is_none() || row.get::<_, Option<bool>>(3) == serial)
        };
        if let Some(row) = found.first().filter(is_so) {
            return Ok(row.get(0));
        }
        let params: Params<'_> = &[&name, &max_attempts, &dead_on_expiry, &serial];
        Ok(shared.run(&shared.sql.make_queue, params).await?[0].get(0))
    }

    fn check_name(&self) -> Result<()> {
        let refused = || Error::Name(self.name.clone());
        is_valid(&self.name).then_some(()).ok_or_else(refused)
    }

    /// Runs a statement about this queue: its first parameter is the id, the others are these.
    pub(crate) async fn run(
        self: &Arc<Self>,
        sql: Statement,
        others: Params<'_>,
    ) -> Result<Vec<Row>> {
        let (id, shared) = (self.id().await?, &self.db.shared);
        let first: Params<'_> = &[&id];
        let params = [first, others].concat();
        shared.run(sql(&shared.sql), &params).await
    }

    /// The same. Without an answer it is in doubt.
    pub(crate) async fn change(
        self: &Arc<Self>,
        sql: Statement,
        others: Params<'_>,
    ) -> Result<Vec<Row>> {
        let (id, shared) = (self.id().await?, &self.db.shared);
        let first: Params<'_> = &[&id];
        let (control, params) = (shared.control().await?, [first, others].concat());
        control.change(sql(&shared.sql), &params).await
    }

    /// The same, for a statement that makes items ready. Wakes waiters for them, and returns how many.
    async fn make_ready(self: &Arc<Self>, sql: Statement, others: Params<'_>) -> Result<u64> {
        let rows = self.change(sql, others).await?;
        self.db.shared.wake_rows(&rows);
        Ok(rows.iter().map(|row| count(row, 1)).sum())
    }

    /// Whether a delivery with this count is one too many.
    pub(crate) fn is_exhausted(&self, attempts: i32) -> bool {
        self.rules.max_attempts.is_some_and(|max| attempts > max)
    }
}

/// A count that a statement returns in this column.
pub(crate) fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

/// Whether a text can be a name or a key.
pub(crate) fn is_valid(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && !text.contains('\0')
}

impl<T: Send + 'static> PgQueue<T> {
    /// Returns a builder of workers, which run a function on each item.
    pub fn workers(&self) -> WorkersBuilder<T> {
        let builder = Workers::builder(self);
        match self.core.rules.run_timeout {
            Some(limit) => builder.run_timeout(limit),
            None => builder,
        }
    }
}

impl<T: 'static> PgQueue<T> {
    /// Returns the name of the queue.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the database of the queue.
    pub fn database(&self) -> &Postgres {
        &self.core.db
    }

    /// Begins a transaction bound to this queue.
    ///
    /// # Errors
    ///
    /// As for [`Postgres::begin`].
    pub async fn begin(&self) -> Result<OwnedTransaction<T>> {
        let tx = self.core.db.begin().await?;
        Ok(OwnedTransaction::new(self, tx))
    }
}

impl<T> Clone for PgQueue<T> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            items: Arc::clone(&self.items),
        }
    }
}

requeue::debug_struct!([T] PgQueue<T>, |queue| name: queue.core.name, rules: queue.core.rules);
