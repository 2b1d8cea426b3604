//! The queue of the crate [`requeue`] in `PostgreSQL`: a transaction of the queue is a transaction of the database. An item that a
//! worker has taken is a locked row, which others skip; an abort, or a dead connection, unlocks it where it was; and the user's own
//! tables change in the same commit.
//!
//! Not provided: queues without a server (see [`requeue`] and `requeue-durable`); delivery of one item to several consumers.
//!
//! ```no_run
//! # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
//! use requeue_postgres::{PgQueue, Postgres};
//! use std::time::Duration;
//!
//! let db = Postgres::connect("postgres://app@localhost/app").await?;
//! db.install().await?; // creates the tables; `install_sql` prints them
//! let jobs: PgQueue<i64> = db.queue("jobs"); // items of serde, as jsonb
//! let receipts: PgQueue<String> = db.queue("receipts");
//! jobs.push(7).await?;
//!
//! let mut tx = db.begin().await?;
//! if let Some(order) = tx.pop_wait(&jobs, Duration::from_secs(30)).await? {
//!     tx.client().execute("update orders set state = 'paid' where id = $1", &[&*order]).await?;
//!     tx.push(&receipts, format!("order {} is paid", *order)).await?;
//!     tx.commit().await?; // the order, the job and the receipt: all or nothing
//! }
//! # Ok(()) }
//! ```
//!
//! # Which type for which need
//!
//! | need | type |
//! |---|---|
//! | a database with queues | [`Postgres`], with [`Options`] |
//! | a queue, shared by cloning | [`PgQueue`], from [`Postgres::queue`] |
//! | a queue with options | [`Builder`], from [`Postgres::builder`] |
//! | take work, push its follow-ups, change one's own tables | [`PgTransaction`], from [`Postgres::begin`] or [`Postgres::within`] |
//! | the same for functions that know no database | [`OwnedTransaction`], from [`PgQueue::begin`] |
//! | push in one's own transaction, of `sqlx` too, or in SQL | [`PgQueue::push_in`], [the functions](guide::sql) |
//! | a pool of workers | [`PgQueue::workers`] |
//! | a queue of jobs, with attempts, delays and a time for each run | [`Postgres::jobs`] |
//! | end a run in whatever process | [`PgQueue::cancel_running`] |
//! | items at times of a cron expression | `PgQueue::periodic`, with the feature `cron` |
//! | what was done, and its result | [`Builder::keep_finished`], [`PgTransaction::set_result`], [`PgQueue::finished`] |
//! | not now, later | [`PgTransaction::snooze`] |
//! | a rate limit or a concurrency limit over all processes | [`Postgres::rate`], [`Postgres::concurrency`], [`Builder::pace`] |
//! | work that takes long | [`Builder::leased`] |
//! | pops without a round trip | [`Builder::prefetch`] |
//! | workers that do not wait for the disk | [`WorkersBuilder::commits_in_flight`], [`Builder::repeats_after_crash`] |
//! | items that failed go behind the others | [`Builder::on_failure`], [`PgTransaction::retry_to`] |
//! | items that are not delivered after some time | [`Builder::ttl`], [`PgQueue::expires_in`] |
//! | at most one item of a key | [`Builder::unique_by`], [`Builder::unique_for`], [`Builder::on_duplicate`] |
//! | items that nobody wants any more | [`PgQueue::retain`], [`PgQueue::clear_all`], [`PgQueue::cancel`] |
//! | what failed for good | [`PgQueue::dead_letters`] |
//! | items without `serde` | [`Codec`] |
//!
//! # Two ways of holding
//!
//! *Locked*, the default: the item is held by the lock of its row for as long as the database transaction is open. Exact, for work
//! of seconds: while a transaction is open, the server cannot remove dead rows, of any table.
//!
//! [*Leased*](Builder::leased): the item is marked as held and the mark is committed. The process renews its leases; if it stops, its
//! items are ready again when the lease expires. The commit fails if that has happened. For long work. Items can be leased
//! [ahead](Builder::prefetch), so that a pop takes from memory. Commits that wait at the same time are written together.
//!
//! # A worker that dies
//!
//! Its items return to their places: in locked mode when the server notices the dead connection, in leased mode when the lease
//! expires. With [`max_attempts`](Builder::max_attempts) such deliveries count, so a job that kills its process becomes a dead letter.
//!
//! The [`guide`] has pages on [prefetching](guide::prefetch), [limits over all processes](guide::pace), [jobs](guide::jobs),
//! [failed, expired and unique items](guide::failing), [pushes in SQL and roles](guide::sql), [old snapshots](guide::fronts), [notifications](guide::notifications),
//! [figures](guide::figures), [poolers](guide::poolers) and
//! [other servers](guide::servers).
//!
//! # What `requeue` has and this crate has not
//!
//! | `requeue` | here |
//! |---|---|
//! | `close`, `close_now`, `wait_idle`, `join` | none, since other processes may push at any time: [`PgQueue::stats`] tells what is left, and `stop` ends a pool |
//! | `capacity`, `weigh`, `Budget` | none: a push never waits for room |
//! | a backoff of any failed delivery | of failed runs of workers; a transaction that aborts makes its items ready at once |
//! | `stats().ready` without held items | a locked item counts as ready until its commit |
//!
//! # Features
//!
//! - `tls`: connections with TLS by `rustls`, by `Options::tls`.
//! - `sqlx`: [`push_in`](PgQueue::push_in) for transactions of the crate `sqlx`.
//!
//! # Isolation
//!
//! The crate works under `read committed`, the default of the server. Under stricter levels a pop can fail because of a
//! concurrent one: see [`Error::is_retryable`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(private_bounds)]

mod activity;
mod background;
mod claim;
mod codec;
mod completions;
mod connect;
mod error;
mod front;
#[cfg(any(doc, doctest))]
pub mod guide;
mod item;
mod jobs;
mod lease;
mod pace;
mod prefetch;
mod queue;
mod schema;
mod sql;
mod transaction;
mod wait;

pub use codec::{Codec, CodecError, Payload};
pub use connect::{Options, Postgres};
pub use error::Error;
pub use item::{PgItem, Ticket};
pub use jobs::Finished;
#[cfg(feature = "cron")]
pub use jobs::{Firing, Periodic, Schedule};
pub use pace::{Concurrency, Rate};
pub use queue::{
    Builder, DeadLetter, DeadLetters, Held, OpenTransaction, PgQueue, Placed, PushTo, PushWith,
    Queued, Stats,
};
pub use transaction::{
    Client, OwnedTransaction, PgTransaction, RunGuard, RunTransaction, WorkersBuilder,
};

pub use deadpool_postgres;
pub use requeue::{
    AfterTtl, Backoff, Failure, OnDuplicate, Report, ReturnTo, Tasks, WorkerState, WorkerStatus,
    Workers,
};
#[cfg(feature = "tls")]
pub use rustls;
#[cfg(feature = "sqlx")]
pub use sqlx;
pub use tokio_postgres;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
