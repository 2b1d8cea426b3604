//! A lock-free, in-memory queue for many producers and many consumers whose dequeues are
//! transactions: a worker takes items inside a transaction; until it commits nobody else sees them;
//! if it aborts, returns early or panics, they go back to the head.
//!
//! What it does not do: it keeps nothing on disk, it does not wait (a pop of an empty queue returns
//! at once), and it keeps no global order, which is what buys the speed.
//!
//! ```
//! use requeue::Queue;
//!
//! let queue = Queue::unbounded();
//! queue.push("fetch the page".to_string())?;
//!
//! let mut worker = queue.handle();
//! let tx = worker.begin();
//! let job = tx.pop()?; // held: nobody else sees it
//! tx.push(format!("parse what came of: {}", *job))?; // staged: nobody sees it yet
//! tx.commit(); // both at once; without this line both are undone
//!
//! assert_eq!(queue.pop()?, "parse what came of: fetch the page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type for which need
//!
//! | need | type |
//! |---|---|
//! | the queue itself, shared by cloning | [`Queue`] |
//! | one thread's or task's fast access | [`Handle`], from [`Queue::handle`] |
//! | take work that may fail, push its follow-ups | [`Transaction`], from [`Handle::begin`] or [`Handle::transact`] |
//! | take and push in several queues as one | [`commit_all()`] |
//! | a push or pop now and then, from anywhere | [`Queue::push`], [`Queue::pop`] |
//! | many items at once | [`Handle::push_batch`], [`Handle::pop_batch`], [`Transaction::pop_batch`] |
//!
//! # Handles and threads
//!
//! A [`Queue`] is `Send` and `Sync`, a [`Handle`] and a [`Transaction`] are `Send` but not `Sync`, all
//! where the items are `Send`. Make one handle for each thread or task; they are cheap, and may move
//! between threads. The queue lives as long as one of its clones or handles does; then the items left
//! are dropped.
//!
//! # Order
//!
//! - Items pushed through one handle leave in that order, aborts apart.
//! - Of two pushes without a handle, the one that happens before the other leaves first.
//! - Between handles the order is best effort: consumers prefer the shard whose head is older, in
//!   steps of a segment of items.
//! - After an abort the items of the transaction come back in their order, before anything not yet
//!   delivered that came from the same handle. Changes made to them stay. Between two aborted
//!   transactions the order is free.
//!
//! # Visibility
//!
//! The pushes of a commit become visible all at once: whoever has popped one of the items finds all
//! others, in all queues of a [`commit_all()`]. What a thread did before it committed a push happens
//! before what another does after it popped the item.
//!
//! # Transactions
//!
//! Nobody sees what a transaction holds, and nobody, the transaction included, sees what it has
//! staged. It ends by [`Transaction::commit`], by [`Transaction::abort`], or by being dropped, which
//! aborts. A transaction that is leaked by [`std::mem::forget`] stays open until its handle is used
//! again or dropped; then it aborts too. Each abort counts in [`Item::attempts`]. A commit or an abort
//! cannot fail. Destructors, iterators and closures of the user run while nothing is half done, and
//! may use the same queue; if one panics, no other item is lost or dropped twice.
//!
//! # Emptiness and counts
//!
//! [`PopError::Empty`] and [`Queue::is_empty`] are strict: at some instant during the call nothing
//! was ready. [`Queue::len`] and [`Stats`] are approximate while others work and exact at rest; they
//! never underflow.
//!
//! # Progress
//!
//! | operation | progress | shared writes |
//! |---|---|---|
//! | push, commit through a handle | wait-free but for allocation | one store |
//! | pop, hold | lock-free | one read-modify-write for up to a segment of items |
//! | abort | lock-free, allocates nothing | two read-modify-writes for each shard it took from |
//! | [`commit_all()`] | wait-free but for allocation | four stores a queue |
//! | push, pop without a handle | lock-free | three read-modify-writes |
//!
//! A thread that stalls or dies in any of them delays nobody else.
//!
//! # Memory
//!
//! A slot costs the size of its item. A drained queue gives its memory back, but for a segment of
//! about 2 KiB for each live handle that has pushed and at most one for each that has popped, and a
//! kilobyte of bookkeeping for each handle that was alive at the same time. A transaction that stays
//! open holds back its own items only.
//!
//! # Trade-offs
//!
//! - Order between handles is given up. If you need one global FIFO, use a channel or
//!   `crossbeam_queue::SegQueue`, or push without handles, at their speed.
//! - An Empty answer looks twice at every shard, so polling an empty queue costs in proportion to the
//!   number of handles that were ever alive at the same time.
//! - Items are moved twice by a transaction, once by a plain pop: box large ones.
//! - Positions are 64-bit words; the crate builds on 64-bit targets only.
//!
//! # How it works, and how it is verified
//!
//! See `docs/protocol.md` in the repository, which is part of this documentation as [`protocol`]:
//! loom models with a checked table of weakened orderings, a differential fuzz target, stress tests
//! with a history checker, `AddressSanitizer`.
//!
//! # Features and supported Rust
//!
//! There are no features. The minimum supported Rust version is 1.74; raising it is a minor release.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("requeue builds on 64-bit targets only: its positions are 64-bit words");

mod builder;
mod capacity;
mod commit_all;
mod drain;
mod error;
mod future;
mod handle;
#[cfg(all(loom, test))]
mod models;
mod pop_any;
mod port;
mod queue;
mod raw;
mod shared;
mod side;
mod stats;
#[cfg(feature = "stream")]
mod stream;
mod sync;
mod taken;
mod transaction;
mod wait;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}

/// Keeps the example of the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub use builder::Builder;
pub use commit_all::{commit_all, Transactions};
pub use drain::Drain;
pub use error::{PopError, PushError};
pub use future::{PopAsync, PushAsync, PushBatchAsync, StageAsync, TakeAsync};
pub use handle::Handle;
pub use pop_any::pop_any;
pub use queue::Queue;
pub use stats::Stats;
#[cfg(feature = "stream")]
pub use stream::{PopStream, PushSink};
pub use taken::Taken;
pub use transaction::{Item, Items, Transaction};
