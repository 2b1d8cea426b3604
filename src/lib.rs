//! A lock-free, in-memory queue for many producers and many consumers whose dequeues are transactions.
//!
//! A worker takes items inside a transaction. They stay invisible to others until it commits, and go back to the head of
//! the queue if it aborts, returns early or panics.
//!
//! ```
//! use requeue::{Queue, Transaction};
//!
//! fn split(tx: Transaction<'_, String>) -> Result<(), Box<dyn std::error::Error>> {
//!     let job = tx.pop()?; // held: invisible to others
//!     for part in job.split(',') {
//!         let part: u32 = part.parse()?; // an error aborts: the job goes back to the head
//!         tx.push(part.to_string())?; // staged: not visible yet
//!     }
//!     tx.commit(); // atomic: the job is done and its parts are ready
//!     Ok(())
//! }
//!
//! let queue = Queue::unbounded();
//! let mut worker = queue.handle(); // one for each thread or task
//!
//! queue.push("1,2".to_string())?; // from anywhere
//! split(worker.begin())?;
//! assert_eq!([queue.pop()?, queue.pop()?], ["1", "2"]);
//!
//! queue.push("3,four".to_string())?;
//! assert!(split(worker.begin()).is_err());
//! assert_eq!(queue.drain().collect::<Vec<_>>(), ["3,four"]); // it is back, and "3" was not pushed
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A pool of threads does the same for each item: `Ok` commits, `Err` and a panic give the item back, with a backoff.
//!
//! ```
//! use requeue::{Queue, Workers};
//!
//! let queue = Queue::unbounded();
//! queue.handle().push_batch(1..=100)?;
//! queue.close(); // no more pushes; the remaining items are still processed
//! let workers = Workers::builder(&queue).threads(4).run(|number, _tx| {
//!     assert!(*number != 13 || number.attempts() > 1, "unlucky"); // caught, counted, retried
//!     Ok::<(), ()>(())
//! });
//! let report = workers.join();
//! assert_eq!((report.done, report.panicked), (100, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In tasks, on any runtime, the same calls are futures. A task that is cancelled gives its items back:
//!
//! ```
//! use requeue::Queue;
//!
//! async fn fetch(page: u32) -> u32 {
//!     tokio::task::yield_now().await;
//!     page * 10
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let pages = Queue::bounded(2);
//!     let mut worker = pages.handle();
//!     let task = tokio::spawn(async move {
//!         let mut sum = 0;
//!         loop {
//!             let tx = worker.begin();
//!             let Ok(page) = tx.pop_async().await else {
//!                 return sum; // closed and drained
//!             };
//!             sum += fetch(*page).await; // cancelled here, the page goes back to the head
//!             tx.commit();
//!         }
//!     });
//!     for page in 1..=5 {
//!         pages.push_async(page).await?; // waits while the queue is full
//!     }
//!     pages.close();
//!     assert_eq!(task.await?, 150);
//!     Ok(())
//! }
//! ```
//!
//! # Which type for which need
//!
//! | need | type |
//! |---|---|
//! | a queue, shared by cloning | [`Queue`]; with options from [`Queue::builder`] |
//! | fast access for one thread or task | [`Handle`], from [`Queue::handle`] |
//! | take items that may fail, push their follow-ups | [`Transaction`], from [`Handle::begin`]; [`commit_all()`] over several queues |
//! | acknowledge items one by one, later or elsewhere, in any order | [`Delivery`], from [`Queue::take`](Queue#method.take) |
//! | the same for several items and follow-ups at once | [`OwnedTransaction`], from [`Queue::begin_owned`] |
//! | threads or tasks that process a queue | [`Workers`], with feature `tokio` `Tasks`; [`Job`] for closures |
//! | one busy tenant cannot starve the others | [`FairQueue`]: round-robin by key |
//! | items that are not ready before their time, in any queue | [`Queue::after`](Queue#method.after), [`Queue::at`](Queue#method.at) |
//! | urgent items first | [`PriorityQueue`] |
//! | newest items first, for jobs that push their parts | [`Builder::lifo`] |
//! | retry with backoff, dead letters, visibility timeout | [`Builder::backoff`], [`Builder::max_attempts`], [`Builder::leased`] |
//! | at most N items started per second, at most N in flight | [`Pace`], [`Builder::max_held`], [`Queue::pause`] |
//! | two ends, closed by the last drop | [`channel`] |
//! | one function for queues in memory, on disk and in `PostgreSQL` | [`backend`] |
//! | counts, holders, consistency | [`Queue::stats`], [`Queue::held`]; features `metrics` and `tracing` |
//!
//! # Guide
//!
//! | page | contents |
//! |---|---|
//! | [`guide::transactions`] | commits, aborts, items, several queues, async code, handles |
//! | [`guide::ordering`] | what is ordered, how far items can be out of order, guarantees |
//! | [`guide::failure`] | retries, backoff, dead letters, leases, clocks, metrics |
//! | [`guide::waiting`] | waiting, cancel safety, bounds, batches, shutdown, select |
//! | [`guide::batches`] | batch writers, what dropped futures have taken |
//! | [`guide::orders`] | fair by key, priorities, schedules, newest first, rate limits |
//! | [`guide::performance`] | costs, comparison, progress, memory, trade-offs |
//! | [`guide::channels`] | coming from a channel: a table of calls |
//! | [`guide::examples`] | a list of examples to copy from |
//! | [`internals`] | how it works, for contributors |
//!
//! # What it is not
//!
//! - No persistence: items are lost with the process. The crate `requeue-durable` has the same queue on disk, and
//!   `requeue-postgres` in a database, for several machines.
//! - No global FIFO: items of one handle stay in order, between handles the order is best effort. This buys the speed;
//!   [how far it can be off](guide::ordering#how-far-items-can-be-out-of-order).
//! - No closing on drop: a queue is [closed by a call](Queue::close). A [`channel`] closes when one side is gone.
//!
//! # Requirements and features
//!
//! Rust 1.75 or later, `std`, a 64-bit target. A later minimum comes with a minor release. The futures need no feature, and run
//! on any runtime.
//!
//! | feature | what it adds |
//! |---|---|
//! | `workers`, on by default | [`workers`], and [`backend`], over which they run |
//! | `rate`, on by default | rate limits: [`Pace`], [`Builder::pace`] |
//! | `broker`, on by default | items with a time to live, or with weights: [`Builder::ttl`], [`Builder::weigh`], [`Budget`] |
//! | `tokio` | workers as tasks of tokio: `WorkersBuilder::run_async`; the clock of a runtime: `TokioClock` |
//! | `stream` | `Handle::stream`, a `futures_core::Stream` of items, and `Handle::sink`, a `futures_sink::Sink` for them |
//! | `metrics` | queues with a [name](Builder::name) emit [counts and durations](guide::failure#in-production) to the crate `metrics` |
//! | `tracing` | queues with a name emit events: retries, dead letters, expired leases, closing |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("requeue builds on 64-bit targets only: its positions are 64-bit words");

/// Implements `Debug` for a type whose parameters may not have it: its name, and some values.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_struct {
    ([$($generics:tt)*] $type:ident $(<$($argument:tt),*>)? $(, |$this:ident| $($name:ident: $value:expr),+)?) => {
        impl<$($generics)*> std::fmt::Debug for $type $(<$($argument),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $(let $this = self;)?
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($name), &$value))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Implements `Default` by the defaults of the fields; `derive` would ask that the items of a queue have one, too.
macro_rules! derive_default {
    ([$($generics:tt)*] $type:ty { $($field:ident),+ }) => {
        impl<$($generics)*> Default for $type {
            fn default() -> Self {
                Self { $($field: Default::default()),+ }
            }
        }
    };
}

/// Implements `Deref` by this reference, and `DerefMut` by the second one, if there is one.
macro_rules! deref {
    ([$($generics:tt)*] $type:ty => $target:ty, |$this:ident| $shared:expr) => {
        impl<$($generics)*> std::ops::Deref for $type {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                let $this = self;
                $shared
            }
        }
    };
    ([$($generics:tt)*] $type:ty => $target:ty, |$this:ident| $shared:expr, $exclusive:expr) => {
        deref!([$($generics)*] $type => $target, |$this| $shared);

        impl<$($generics)*> std::ops::DerefMut for $type {
            #[inline]
            fn deref_mut(&mut self) -> &mut $target {
                let $this = self;
                $exclusive
            }
        }
    };
}

/// Implements `Debug` or `Display` by that of the item to which a type dereferences.
macro_rules! fmt_as_item {
    ($trait:ident, [$($generics:tt)*] $type:ty => $item:ty) => {
        /// Formats the item itself.
        impl<$($generics)*> std::fmt::$trait for $type
        where
            $item: std::fmt::$trait,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::$trait::fmt(&**self, f)
            }
        }
    };
}

/// Implements `Error` for a type, and `Display` by this text.
macro_rules! error_text {
    ([$($generics:tt)*] $type:ty, |$this:pat_param| $text:expr) => {
        impl<$($generics)*> std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                std::fmt::Display::fmt(&$text, f)
            }
        }

        impl<$($generics)*> std::error::Error for $type {}
    };
}

// Before all modules that use its macro.
#[macro_use]
mod verbs;

// First, since rustdoc shows the methods of a type in the order of their modules, and `queue` has more for some orders.
mod handle;
mod transaction;

#[cfg(feature = "workers")]
pub mod backend;
mod bound;
pub mod channel;
mod codec;
mod core;
mod delivery;
pub mod error;
pub mod future;
mod item;
mod order;
mod policy;
mod queue;
#[cfg_attr(not(feature = "rate"), allow(unused, unreachable_pub))] // limiters
mod rate;
#[allow(unsafe_code)]
mod raw;
mod select;
mod stats;
#[cfg(feature = "stream")]
pub mod stream;
mod sync;
pub mod time;
mod wait;
#[cfg(feature = "workers")]
pub mod workers;

/// Iterators over the items of a queue or of a transaction.
pub mod iter {
    pub use crate::item::Items;
    pub use crate::queue::{Drain, Iter};
}

/// Queues that are fair by key: a key with many items cannot starve the others.
///
/// A [`FairQueue`] is a [`Queue`] in the order [`ByKey`]; it is made by
/// [`FairQueue::by`] or [`Builder::fair_by`].
pub mod fair {
    pub use crate::order::fair::{ByKey, Keyed};
    pub use crate::queue::fair::{FairQueue, FairSnapshot};
}

/// Queues by priority and schedule.
///
/// A [`PriorityQueue`] is a [`Queue`] in the order [`ByPriority`]; it is made
/// by [`PriorityQueue::by_priority`] or [`Builder::by_priority`].
pub mod priority {
    pub use crate::order::priority::{ByPriority, Prioritized};
    pub use crate::queue::priority::PriorityQueue;
    pub use crate::schedule::*;
}

/// Pushes with a time or a priority: views of a queue, a handle or a transaction.
///
/// [`Queue::at`] and [`Queue::after`] make them.
pub mod schedule {
    pub use crate::order::Ticket;
    pub use crate::queue::schedule::{PushTo, PushWith, PushWithAsync};
}

#[cfg(any(doc, doctest))]
pub mod guide;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/protocol.md")]
pub mod internals {}

/// Runs the examples of the README as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[cfg(feature = "broker")]
pub use bound::Budget;
pub use codec::{Codec, CodecError};
pub use delivery::Delivery;
#[doc(inline)]
pub use error::{DuplicateOf, Expired, PopError, PushError, Reason};
pub use handle::Handle;
pub use item::Item;
pub use order::fair::{ByKey, Keyed};
pub use order::priority::{ByPriority, Prioritized};
pub use order::{Fifo, Leased, Lifo, Order, Ticket, Unleased};
pub use policy::dead::DeadLetter;
pub use policy::retry::ReturnTo;
#[cfg(feature = "broker")]
pub use policy::ttl::AfterTtl;
#[cfg(feature = "broker")]
pub use policy::unique::OnDuplicate;
#[cfg(feature = "broker")]
#[doc(hidden)]
pub use policy::unique::{
    key_of as unique_key_of, Key as UniqueKey, KeyOf as UniqueKeyOf, OnReserve, OnSupersede,
};
pub use queue::fair::{FairQueue, FairSnapshot};
pub use queue::priority::PriorityQueue;
pub use queue::{Builder, DeadLetters, Queue, Queued};
#[cfg(feature = "rate")]
pub use rate::{Limiter, Pace, RateSlot, WeakPace};
pub use select::*;
pub use stats::{DeliveryId, Discarded, Held, Imbalance, Stats};
#[cfg(machine)]
#[doc(hidden)]
pub use sync::machine;
#[doc(inline)]
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
pub use time::TokioClock;
pub use time::{Backoff, Clock, ManualClock, SystemClock, Wait};
pub use transaction::{
    commit_all, try_commit_all, OwnedTaken, OwnedTransaction, Peek, Taken, Transaction,
    Transactions,
};
#[cfg(feature = "tokio")]
#[doc(inline)]
pub use workers::Tasks;
#[cfg(feature = "workers")]
#[doc(inline)]
pub use workers::{
    Failure, Job, JobError, Outcome, Report, Success, TaskItem, TaskTransaction, WorkerState,
    WorkerStatus, Workers, WorkersBuilder,
};
#[doc(hidden)]
pub use {order::StorePlace, queue::Restore, wait::DeferredWakes};
