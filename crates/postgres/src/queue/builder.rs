//! Options of a queue.

use super::{micros, Core, Items, Key, PgQueue, Rules};
use crate::codec::{Bytes, Codec, Encoding, Json};
use crate::completions::Completions;
use crate::connect::Postgres;
use crate::prefetch::Buffer;
use crate::sql::Order;
use parking_lot::Mutex;
use requeue::{AfterTtl, Backoff, OnDuplicate, Pace, ReturnTo};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How many items are claimed ahead at most, unless the queue says how many.
const AHEAD: usize = 1000;

/// Builds a queue with options, from [`Postgres::builder`].
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
/// use requeue_postgres::{PgQueue, Postgres};
/// use std::time::Duration;
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let builder = db.builder("renderings").leased(Duration::from_secs(60)).max_attempts(5);
/// let renderings: PgQueue<String> = builder.build();
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until the queue is built"]
pub struct Builder<T, E = Json> {
    pub(crate) core: Core,
    key: Option<Key<T>>,
    pub(super) unique: Option<Key<T>>,
    encoding: E,
}

impl<T, E> Builder<T, E> {
    pub(crate) fn new(db: Postgres, name: &str, encoding: E) -> Self {
        let rules = Rules {
            term: None,
            holder: format!("process {}", std::process::id()).into(),
            max_attempts: None,
            count_attempts: true,
            backoff: None,
            run_timeout: None,
            return_to: ReturnTo::Head,
            ttl: None,
            after_ttl: None,
            unique_for: 0,
            on_duplicate: OnDuplicate::Refuse,
            order: Order::Fifo,
            keep_finished: None,
        };
        let core = Core {
            db,
            name: name.into(),
            rules,
            pace: Pace::unlimited(),
            buffer: None,
            completions: None,
            last_key: Mutex::default(),
            id: OnceCell::new(),
        };
        Self {
            core,
            key: None,
            unique: None,
            encoding,
        }
    }

    /// Holds items by a lease instead of a lock: a pop marks the item and commits the mark, so no database transaction is open
    /// while the item is worked on. The process renews its leases; when it stops, its items are ready again after `term`.
    ///
    /// [Workers](PgQueue::workers) claim items ahead, as many as they do in 50 milliseconds and no more than 1,000, so that most
    /// claims are of many items; processes with slow jobs hold few that others could do. A crash counts as an attempt of those too, so
    /// with a [`max_attempts`](Self::max_attempts) of 1 none are claimed ahead. [`prefetch`](Self::prefetch) says how many instead, and
    /// for all pops.
    ///
    /// Tasks go on while up to 256 [commits](crate::WorkersBuilder::commits_in_flight) of their pool are under way, if their runs have only
    /// ended their items. They wait for those that push or have used the [client](crate::PgTransaction::client), so what they change is seen in
    /// their order.
    ///
    /// For work that takes longer than seconds: an open transaction keeps the server from removing dead rows, of all tables.
    ///
    /// # Panics
    ///
    /// If `term` is shorter than a millisecond.
    #[track_caller]
    pub fn leased(mut self, term: Duration) -> Self {
        assert!(term >= Duration::from_millis(1), "a lease without a term");
        if self.core.rules.term.replace(term).is_none() {
            self.core.buffer = Some(Arc::new(Buffer::new(AHEAD, true)));
        }
        self
    }

    /// Leases up to `count` items ahead of their delivery, in batches, so that a pop takes from memory.
    ///
    /// The prefetched items are in a queue in memory, and [held](PgQueue::held) by this process: others do not get them, they
    /// are delivered before items that become ready later, also before more urgent ones, and while the queue is paused. If the
    /// process dies, they are ready again when the lease expires, and the claim counts as an attempt of each of them, although it
    /// may not have been delivered: with [`max_attempts`](Self::max_attempts), a job that kills its process that often makes
    /// dead letters of its neighbours too. An item that a transaction gives back returns to its place in the database.
    ///
    /// A good `count` is what the process does in some tens of milliseconds. With 0 nothing is claimed ahead, by workers neither.
    ///
    /// # Panics
    ///
    /// Unless the queue is [leased](Self::leased).
    #[track_caller]
    pub fn prefetch(mut self, count: usize) -> Self {
        let is_leased = self.core.rules.term.is_some();
        assert!(is_leased, "only a leased queue can prefetch");
        self.core.buffer = Some(Arc::new(Buffer::new(count, false)));
        self
    }

    /// Lets [workers](PgQueue::workers) go on before the completions of their runs are written: up to `count` runs that have ended
    /// are repeated if the process dies. For throughput, of runs that may be repeated and change nothing in the database.
    ///
    /// The completions are written many together, as soon as those before them are on the disk. A worker waits only while `count` of
    /// them are not written. A run that pushes, uses the [client](crate::PgTransaction::client), or has several items is one commit with
    /// its completion as ever, and its worker waits for that; so are runs of queues that are [serial](Self::serial), or whose items
    /// [follow](Self::on_duplicate) others or keep their [keys](Self::unique_for). A run counts as done when it has ended: if its lease had
    /// expired, its item is delivered again.
    ///
    /// The end of a pool writes the completions.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let builder = db.builder("thumbnails").leased(Duration::from_secs(60)).repeats_after_crash(1000);
    /// let thumbnails: PgQueue<String> = builder.build();
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// Unless the queue is [leased](Self::leased), and if `count` is 0.
    #[doc(alias("at least once", "batch", "group"))]
    #[track_caller]
    pub fn repeats_after_crash(mut self, count: usize) -> Self {
        let is_leased = self.core.rules.term.is_some();
        assert!(is_leased, "only runs of a leased queue can be repeated");
        assert!(count > 0, "a repetition of nothing");
        self.core.completions = Some(Arc::new(Completions::new(count)));
        self
    }

    /// Sets the name under which this process [holds](PgQueue::held) leased items; that of the process by default.
    pub fn holder(mut self, name: &str) -> Self {
        self.core.rules.holder = name.into();
        self
    }

    /// Sets how often an item is delivered at most; then it becomes a [dead letter](PgQueue::dead_letters). Without it, without limit.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[track_caller]
    pub fn max_attempts(mut self, count: u32) -> Self {
        assert!(count > 0, "an item is delivered at least once");
        self.core.rules.max_attempts = Some(i32::try_from(count).unwrap_or(i32::MAX));
        self
    }

    /// Sets whether a delivery of a locked item is counted before it is handed out, by a statement of its own; yes by default.
    /// Otherwise a delivery whose process dies does not count. Without [`max_attempts`](Self::max_attempts) nothing is counted.
    pub fn count_attempts(mut self, count: bool) -> Self {
        self.core.rules.count_attempts = count;
        self
    }

    /// Sets the delay after a failed run of [workers](PgQueue::workers); 10 milliseconds, doubled up to a second, by default.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.core.rules.backoff = Some(backoff);
        self
    }

    /// Sets how long a run of the [workers](PgQueue::workers) of this process may take, unless they set it
    /// [themselves](crate::WorkersBuilder): then the future of a task is dropped, and the run has failed. Without a limit by default.
    pub fn run_timeout(mut self, limit: Duration) -> Self {
        self.core.rules.run_timeout = Some(limit);
        self
    }

    /// Sets where items of failed deliveries go. The default is [the head](ReturnTo::Head): they return to their places.
    ///
    /// At the [tail](ReturnTo::Tail) an item that fails again and again keeps no other waiting: it comes behind the items of its
    /// priority, or of its priority and key, and keeps its ticket. That counts for items that are
    /// [retried](crate::PgTransaction::retry) and for those of transactions that are aborted, dropped, or failed to commit. An item
    /// that is delayed returns to its place when it is due. So does what others take back: items of a process that died, of a lease
    /// that expired, and [recovered](PgQueue::recover) ones; and the items of a transaction [within](Postgres::within) another one
    /// that is aborted. A transaction in locked mode locks what it takes by one more statement first.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres, ReturnTo};
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let jobs: PgQueue<String> = db.builder("jobs").on_failure(ReturnTo::Tail).max_attempts(5).build();
    /// # Ok(()) }
    /// ```
    pub fn on_failure(mut self, to: ReturnTo) -> Self {
        self.core.rules.return_to = to;
        self
    }

    /// Sets the time to live of the items that this process pushes, by the clock of the server: an item whose time is over is not
    /// delivered any more. Without a limit by default. An item can have [one of its own](PgQueue::expires_in).
    ///
    /// By default such items are removed; see [`on_expired`](Self::on_expired). The time begins with the push, that of a delayed item
    /// when it is due, and that of a dead letter that is [requeued](crate::DeadLetters::requeue) anew. An item that is held when
    /// its time is over may still be committed; otherwise its time ends when it comes back.
    ///
    /// Nobody has to pop for items to be removed: a task of each process that has pushed such items or waits for some does it, up to
    /// 1,000 by a statement, and so do [`stats`](PgQueue::stats) and the [dead letters](PgQueue::dead_letters).
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{AfterTtl, PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let builder = db.builder("quotes").ttl(Duration::from_secs(60)).on_expired(AfterTtl::DeadLetter);
    /// let quotes: PgQueue<String> = builder.build();
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If `ttl` is zero: nothing could be delivered.
    #[doc(alias("expiry", "expiration", "time to live"))]
    #[track_caller]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        assert!(
            !ttl.is_zero(),
            "time to live of zero: nothing could be delivered"
        );
        self.core.rules.ttl = Some(micros(ttl));
        self
    }

    /// Sets what becomes of items whose time to live is over, for all processes. By default they are removed; as
    /// [dead letters](PgQueue::dead_letters) they have the reason `timed_out`.
    pub fn on_expired(mut self, then: AfterTtl) -> Self {
        self.core.rules.after_ttl = Some(then);
        self
    }

    /// Takes one item of each key in turn, so that one busy key cannot starve the others.
    ///
    /// The turn goes through the keys in their order, for each process by itself. Pops that run at the same time may take items of
    /// one key. A key has 1 to 1,000 bytes.
    pub fn fair_by(mut self, key: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.key = Some(Box::new(key));
        if !self.core.rules.is_serial() {
            self.core.rules.order = Order::Fair;
        }
        self
    }

    /// Delivers an item only while no other transaction holds one of its key. All processes must use the queue in the same way.
    ///
    /// # Panics
    ///
    /// Unless the queue is [fair by key](Self::fair_by).
    #[track_caller]
    pub fn serial(mut self) -> Self {
        assert!(self.key.is_some(), "a serial queue needs a key: fair_by");
        self.core.rules.order = Order::Serial;
        self
    }

    /// Limits how fast, or how many at a time, items are started by pops of this process; without a limit by default.
    ///
    /// A pop that the pace refuses finds nothing, and a waiting pop waits. An item that is given back returns its slot. For a
    /// limit over all processes pass a pace of [`Postgres::rate`] or [`Postgres::concurrency`]; one pace may have several
    /// queues, also queues in memory. A pop of a queue with a pace costs one more short statement.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let pace = db.rate("mail", 100, Duration::from_secs(1)).pace().await?;
    /// let mails: PgQueue<String> = db.builder("mails").pace(pace).build();
    /// # Ok(()) }
    /// ```
    pub fn pace(mut self, pace: Pace) -> Self {
        self.core.pace = pace;
        self
    }

    /// Stores items as the bytes of a codec, instead of `jsonb`.
    pub fn codec<C: Codec<T>>(self, codec: C) -> Builder<T, Bytes<C>> {
        Builder {
            core: self.core,
            key: self.key,
            unique: self.unique,
            encoding: Bytes(codec),
        }
    }

    /// Returns the queue. It is created in the database at its first use.
    pub fn build(self) -> PgQueue<T>
    where
        E: Encoding<T>,
    {
        let items = Items {
            encoding: Box::new(self.encoding),
            key: self.key,
            unique: self.unique,
        };
        if let Some(buffer) = &self.core.buffer {
            self.core.db.shared.running.claims_ahead(buffer);
        }
        PgQueue {
            core: Arc::new(self.core),
            items: Arc::new(items),
        }
    }
}

requeue::debug_struct!([T, E] Builder<T, E>, |builder| name: builder.core.name, rules: builder.core.rules);
