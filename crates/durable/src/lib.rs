//! The queue of the crate [`requeue`] on disk: its transactions survive the process. A worker takes jobs inside a
//! transaction; when it commits, what it took and what it pushed become durable together. If it aborts, returns early or
//! panics, or if the process is killed or the power fails, the jobs are back at the head of the queue.
//!
//! Memory decides who gets what, at the speed of memory; a log on the disk has what was committed. Commits of threads that come
//! at the same time share one sync of the disk.
//!
//! Not provided: stores that several processes share and a queue over the network, which `requeue-postgres` has; a global order,
//! as in [`requeue`].
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("work.db");
//! use requeue_durable::{DurableQueue, Store};
//!
//! let store = Store::open(&path)?; // a directory, locked against other processes
//! let jobs: DurableQueue<String> = store.queue("jobs")?;
//! jobs.push("fetch the page".to_string())?; // on the disk when it returns
//! let mut worker = jobs.handle();
//!
//! let tx = worker.begin();
//! let job = tx.pop()?; // from memory; held: invisible to others
//! tx.push(format!("parse: {}", *job))?; // staged: not visible yet
//! drop(tx); // aborts, as a return, a panic or the death of the process does: both are undone
//!
//! let tx = worker.begin();
//! let job = tx.pop()?;
//! tx.push(format!("parse: {}", *job))?;
//! tx.commit()?; // both, or neither, are on the disk
//! drop((worker, jobs, store)); // the process ends, in whatever way
//!
//! let jobs: DurableQueue<String> = Store::open(&path)?.queue("jobs")?; // the next process
//! assert_eq!(jobs.pop_batch(10)?, ["parse: fetch the page"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type for which need
//!
//! | need | type |
//! |---|---|
//! | a directory with queues | [`Store`], opened with [`StoreOptions`] |
//! | a queue, shared by cloning | [`DurableQueue`], from [`Store::queue`] |
//! | a queue with options, or in another order | [`Builder`], from [`Store::builder`] |
//! | one thread's or task's access | [`Handle`] |
//! | take work that may fail, push its follow-ups | [`Transaction`], from [`Handle::begin`] or [`Handle::transact`] |
//! | take and push in several queues as one | [`commit_all()`] |
//! | commit in a task | [`Transaction::commit_async`] |
//! | threads or tasks that run a function on each item | [`Workers`] |
//! | wait for the result of a pushed item | [`Jobs::run`] |
//! | commit without a wait for the disk | [`Durability::Buffered`], for a store or for [one commit](Transaction::commit_with) |
//! | wait until all is on the disk | [`Store::flush`] |
//! | look at what failed for good, and try again | [`DurableQueue::dead_letters`] |
//! | at most one job of a kind at a time | [`Builder::unique_by`], [`Builder::unique_for`] |
//! | the newest of equal jobs | [`Builder::on_duplicate`] |
//! | why a job has failed before | [`Transaction::last_error`] |
//! | a limit of bytes instead of items, also of several queues | [`Builder::weigh`] with [`Builder::capacity`] or [`Builder::budget`] |
//! | drop jobs that have waited for too long | [`Builder::ttl`], [`Builder::on_expired`] |
//! | remove jobs that nobody has taken | [`DurableQueue::retain`], [`DurableQueue::clear_all`] |
//! | a backlog larger than the memory | [`Builder::memory`] |
//! | items that other programs read | the codec `Json`, with feature `json` |
//! | items without `serde`, or in a format of your own | [`Codec`] |
//! | a backup, while the store is in use | [`Store::snapshot_to`] |
//! | look into a store without its types, and change it | [`Inspector`], the command `requeue-inspect` of feature `json` |
//!
//! # What is durable when
//!
//! | commit | on the disk | visible to others | a crash loses |
//! |---|---|---|---|
//! | [`Synced`](Durability::Synced), the default | when it returns | when it returns | nothing that was acknowledged |
//! | [`Buffered`](Durability::Buffered) | within the time that it names | at once | the last commits; what is left is a prefix |
//!
//! Commits are written in groups, each of which is on the disk as a whole or not at all. An item that is pushed and popped
//! within one group is never written. An abort writes nothing except the delays of a [backoff](Builder::backoff) and the errors of
//! failed runs.
//!
//! # After a crash
//!
//! Opening a queue reads and checks all of its items. All transactions that were open have been aborted: their items are at
//! the head, in their order, as they were pushed. They are delivered before all items that are pushed later. Deliveries before
//! the crash count if the queue has [`max_attempts`](Builder::max_attempts): a job that keeps crashing its process becomes a dead
//! letter. Delays, schedules, priorities, [tickets](Ticket) and [the close](DurableQueue::close) are as they were.
//! [Times to live](Builder::ttl) and the times for which [keys stay taken](Builder::unique_for) go on while no process runs. The
//! items have their [keys](Builder::unique_by), their [weights](Builder::weigh) and the [errors](Transaction::last_error) of their
//! last deliveries; those that [follow](Builder::on_duplicate) others still do.
//!
//! # What `requeue` has and this crate has not
//!
//! | `requeue` | why not, and what instead |
//! |---|---|
//! | `Builder::tracked`, `Queue::discard` | a [`Ticket`] is that of a priority queue; [`Transaction::last_error`] is kept in each queue |
//! | closures as items: `Job`, `Queue::submit`, `Queue::wrap` | a closure cannot be written: [items are data, and the function belongs to the pool](Jobs::run) |
//! | `Extend`, `FromIterator` | they cannot return an error: [`DurableQueue::push_batch`] |
//! | `Queue::unbounded`, `bounded`, `Default` | a queue belongs to a store: [`Store::queue`], [`Store::builder`] |
//! | `channel` | its queue closes with its last sender; this one outlives all of them |
//! | `pop_batch` into a `Vec` of the caller | a batch whose commit fails goes back to the queue, so it is returned |
//! | `DeadLetters::visit`, `drain` | [`DeadLetters::all`], [`DeadLetters::remove`], which can fail |
//! | `try_commit`, `try_commit_all`, `try_transact` | each commit can fail: [`Transaction::commit`] returns a `Result` |
//! | feature `tokio` | that of `requeue`; [`WorkersBuilder::run_on`](requeue::workers::PoolBuilder::run_on) works with every executor |
//! | feature `tracing` | that of `requeue`: the queues in memory emit its events |
//!
//! # Metrics
//!
//! With feature `metrics` each queue emits what one of `requeue` does, with its name as the label `queue`: see
//! [its guide](https://docs.rs/requeue/latest/requeue/guide/failure/index.html#in-production). Counts begin when the queue is opened. Items that are dropped since their
//! [time to live](Builder::ttl) is over count as `requeue_timed_out_total`; dead letters that are made when a queue is opened, of items that
//! were delivered too often before a crash or cannot be decoded, are not counted as `requeue_dead_total`.
//!
//! Each store emits these, with the last part of its path as the label `store`:
//!
//! | metric | kind |
//! |---|---|
//! | `requeue_disk_write_seconds`: the write of a group of commits that nobody waits for to be synced, such as that of deliveries | histogram |
//! | `requeue_disk_sync_seconds`: the write and the sync of a group, which the storage engine does in one call | histogram |
//! | `requeue_disk_group_commits`: the commits of a group, which share its sync | histogram |
//! | `requeue_disk_synced_timestamp_seconds`: when the last sync ended, since the Unix epoch; none before the first one | gauge |
//! | `requeue_disk_unsynced_seconds`: the age of the oldest commit that a loss of power would undo; 0 if there is none | gauge |
//! | `requeue_disk_journal_bytes`, `requeue_disk_journals`: the size of the journals, which have the room that they will need, and their number | gauge |
//! | `requeue_disk_unwritten_bytes`: changes that are in journals and in memory, and not yet in tables | gauge |
//! | `requeue_disk_sealed_memtables`: memtables that wait to be written, of the table that has the most | gauge |
//! | `requeue_disk_free_bytes`: the free space of the disk | gauge |
//! | `requeue_disk_poisoned`: 1 after a failed write or sync, when all commits fail until the store is opened again | gauge |
//!
//! They are emitted after each group, by the thread that has written it, and the gauges by [`DurableQueue::stats`] too, which takes no
//! lock for them: call it periodically, since an idle store writes nothing. Times of groups include what the storage engine needs
//! before it accepts more. It does not say when it holds writes back, so these are not counted: it does with four sealed memtables,
//! and then `requeue_disk_write_seconds` and `requeue_disk_sync_seconds` grow. A recorder that panics breaks no commit.
//!
//! # Features
//!
//! `json`: the codec `Json`, and the command `requeue-inspect`. `metrics`: [see above](#metrics). `stream`: a handle as a stream of items, and as a sink for them: `Handle::stream`, `Handle::sink`.
//!
//! # Errors
//!
//! Everything that can fail because of the disk returns a [`StoreError`]; a commit that fails has aborted. After a failed write or
//! sync, all commits fail until the store is opened again. A store that lacks what was acknowledged does not open:
//! [`StoreError::Damaged`] says what is missing, and [`StoreOptions::accept_damage`] goes on without it.

#![allow(private_bounds)]

/// Shows what holds an item as the item.
macro_rules! show {
    ($($trait:ident for $type:ident),+) => {$(
        impl<T: std::fmt::$trait + Send + 'static, O: Order<T>> std::fmt::$trait for $type<'_, T, O> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::$trait::fmt(&**self, f)
            }
        }
    )+};
}

/// The methods that are those of the queue or the transaction in memory.
macro_rules! forward {
    (|$this:ident| $to:expr; $($(#[$on:meta])* $name:ident($($arg:ident: $type:ty)?) $(-> $result:ty)?;)+) => {$(
        $(#[$on])*
        pub fn $name(&self $(, $arg: $type)?) $(-> $result)? {
            let $this = self;
            $to.$name($($arg)?)
        }
    )+};
}

mod backend;
mod batch;
mod call;
mod codec;
mod commit;
mod delivery;
mod entry;
mod error;
mod format;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod item;
mod log;
mod oneshot;
mod order;
mod peek;
mod queue;
mod select;
mod store;
#[cfg(feature = "stream")]
mod stream;
mod ticket;
mod transaction;
mod workers;

#[cfg(feature = "json")]
pub use codec::Json;
pub use codec::{Codec, CodecError, OnUndecodable, Postcard};
pub use commit::{commit_all, commit_all_with, CommitAsync, Taken, Transactions};
pub use error::{Damage, PopError, PushError, StoreError};
pub use handle::Handle;
pub use item::{Item, Items};
pub use log::Durability;
pub use order::{Order, Unleased};
pub use peek::Peek;
pub use queue::{
    Builder, Cause, DeadLetter, DeadLetters, DurableQueue, Inspector, ItemInfo, Iter, Kind,
    LetterInfo, PushTo, PushWith, QueueInfo, Record, UndecodableLetter,
};
pub use select::*;
pub use store::{Store, StoreOptions};
#[cfg(feature = "stream")]
pub use stream::{PopStream, PushSink};
pub use ticket::Ticket;
pub use transaction::{OwnedTransaction, Transaction};
pub use workers::{Jobs, RunItem, RunTransaction, WorkersBuilder};

pub use requeue::workers::{Others, WorkerState};

pub use requeue::{
    AfterTtl, Backoff, Budget, ByKey, ByPriority, Clock, DeliveryId, DuplicateOf, Failure, Fifo,
    Held, Imbalance, JobError, Leased, Limiter, ManualClock, OnDuplicate, Outcome, Pace, Queued,
    RateSlot, Reason, Report, ReturnTo, Stats, SystemClock, Wait, WeakPace, WorkerStatus, Workers,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
