//! What queues in memory, on disk and in a database have in common: [`Backend`] and [`Tx`].
//!
//! Functions that are generic over the pair work with each of them. The [worker pools](crate::workers) are written so.
//!
//! ```
//! use requeue::backend::{Backend, Settlement, Tx};
//! use requeue::{Queue, Wait};
//!
//! /// Takes a job, does it, and pushes what follows from it; gives it back if it has to wait for something.
//! async fn step<B: Backend<Item = u32>>(queue: B) -> Result<(), B::Error> {
//!     let mut tx = queue.begin(None);
//!     if let Some(job) = tx.pop(Wait::Forever).await? {
//!         tokio::task::yield_now().await; // something that takes time
//!         match *job {
//!             0 => tx.settle(job, Settlement::Retry)?,
//!             number => tx.push(number - 1, Wait::Forever).await?,
//!         }
//!     }
//!     tx.commit().await.map(drop)
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let queue = Queue::unbounded();
//! queue.push(7)?;
//! tokio::spawn(step(queue.clone())).await??;
//! assert_eq!(queue.pop(), Ok(6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod delivery;
mod memory;

#[doc(hidden)]
pub use crate::policy::telemetry::RunSpan;
pub use crate::raw::{Holds, Share};
pub use delivery::Delivery;
pub(crate) use delivery::{pop, settle_by};

use crate::{Backoff, Clock, Reason, SystemClock, Wait};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

/// A queue whose dequeues are transactions: in memory, on disk, in a database.
pub trait Backend: Clone + Send + Sync {
    /// The type of the items.
    type Item: Send;
    /// The error of its transactions.
    type Error: Error + Send + From<<Self::Tx as Tx>::Refused>;
    /// Its transactions.
    type Tx: Tx<Item = Self::Item, Error = Self::Error>;

    /// Begins a transaction, in the name of a worker if one is given. Nothing is sent before the first call on it.
    fn begin(&self, worker: Option<Arc<str>>) -> Self::Tx;

    /// Closes the queue: it accepts nothing but follow-ups from now on. Returns whether queues of this kind can be closed.
    ///
    /// # Errors
    ///
    /// If the close could not be stored.
    fn close(&self) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Whether the queue is closed.
    fn is_closed(&self) -> bool;

    /// The number of items that are ready, delayed or held. Approximate while others use the queue, if it can be closed;
    /// otherwise exact, since nothing else tells a pool that all is done.
    ///
    /// # Errors
    ///
    /// If they could not be counted.
    fn left(&self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The queue's clock. The default is that of the system.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The time of the queue's clock.
    fn now(&self) -> Instant {
        self.clock().now()
    }

    /// The time of a [timestamp](Tx::since).
    fn instant(&self, since: u64) -> Instant;

    /// Whether commits wait for a disk or a server. Then a task goes on while
    /// [some are under way](crate::WorkersBuilder::commits_in_flight). The default is that they do not.
    fn commits_wait(&self) -> bool {
        false
    }

    /// Frees what the workers of a pool have left, when the pool has ended. It begins at the call.
    fn pool_ended(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Whether the queue cannot be used any more after this error: the workers of a pool end.
    fn is_fatal(error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// A transaction of a [`Backend`].
///
/// It is open from the beginning, and again after each [`commit`](Self::commit) and [`abort`](Self::abort). Dropping it
/// aborts it, at the latest when the queue notices. An item is a reference to the transaction: it can be held across an
/// `.await`, and must be dropped or [settled](Self::settle) before the end.
pub trait Tx: Holds {
    /// The error of a push, a pop, a commit or an abort.
    type Error: Error + Send + From<Self::Refused>;
    /// The error of [`settle`](Self::settle).
    type Refused;

    /// Takes an item. `None`: none was ready in time, or the queue is closed and nothing is left; after
    /// [`Wait::Forever`] only the latter.
    ///
    /// Cancel safe: if the future is dropped before it is ready, it has taken nothing.
    ///
    /// # Errors
    ///
    /// If no item could be taken. The transaction stays open.
    fn pop(
        &self,
        wait: Wait,
    ) -> impl Future<Output = Result<Option<Self::Held<'_>>, Self::Error>> + Send;

    /// Takes up to `max` items that are ready, waiting for the first one. Empty if [`pop`](Self::pop) would return
    /// `None`.
    ///
    /// # Errors
    ///
    /// Those of [`pop`](Self::pop).
    fn pop_batch(
        &self,
        max: usize,
        wait: Wait,
    ) -> impl Future<Output = Result<Vec<Self::Held<'_>>, Self::Error>> + Send;

    /// Takes an item that is ready, if that needs no waiting of any kind. Returns it with [when](Self::since). The default
    /// takes none.
    #[inline]
    fn try_pop(&self) -> Option<(Self::Held<'_>, u64)> {
        None
    }

    /// Stages a push: the item is not visible before [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// If the push is refused. The transaction stays open, and can still be committed.
    fn push(
        &self,
        item: Self::Item,
        wait: Wait,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Decides what becomes of an item other than that the commit is the end of it. Queues in memory and on disk do it at
    /// once, and an [`abort`](Self::abort) leaves it so; a database does it with the commit, and not otherwise.
    ///
    /// # Errors
    ///
    /// If there is no room to treat it apart from the others. The transaction still holds the item.
    fn settle<'t>(
        &'t self,
        item: Self::Held<'t>,
        settlement: Settlement,
    ) -> Result<(), Self::Refused>;

    /// Makes all pushes visible at once, and the pops final.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the transaction may have committed or not.
    ///
    /// # Errors
    ///
    /// If it cannot be committed. Nothing has become visible, and the items are still to be given back, by an
    /// [`abort`](Self::abort) or by the drop of the transaction.
    fn commit(&mut self) -> impl Future<Output = Result<Committed, Self::Error>> + Send;

    /// Whether the task of a run may go on while this transaction commits, if its pool allows that. One says no if its changes are to
    /// be seen before those of later runs, or if it keeps others waiting until then, such as those for its connection.
    fn can_commit_in_flight(&mut self) -> bool {
        true
    }

    /// Gives the popped items back as failed deliveries, and drops the pushed ones.
    ///
    /// # Errors
    ///
    /// If the queue could not be reached. The items are given back when it notices.
    fn abort(&mut self, cause: AbortCause) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// From now on a thread drives the futures of the transaction: they may block it instead of waiting.
    fn may_block(&mut self) {}

    /// How many items the transaction holds, and the highest number of their deliveries.
    fn deliveries(&mut self) -> (usize, u32);

    /// When the transaction took its first item: a timestamp for [`Backend::instant`].
    fn since(&self) -> u64;

    /// Ready when the run of a task that uses this transaction is cancelled: its future is dropped, and the run has failed. The default
    /// is that nobody can cancel it.
    fn cancelled(&self) -> Option<Cancelled> {
        None
    }

    /// The span of `tracing` for a run of this worker.
    #[doc(hidden)]
    #[inline]
    fn run_span(&self, worker: &str, attempts: u32) -> RunSpan {
        let _ = (worker, attempts);
        RunSpan::none()
    }
}

/// Waits until a run is [cancelled](Tx::cancelled).
pub type Cancelled = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What becomes of an item other than that it is done; see [`Tx::settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// It is delivered again, as soon as the rules of the queue allow it.
    Retry,
    /// It is delivered again after this time.
    RetryAfter(std::time::Duration),
    /// It becomes a dead letter with this error.
    Fail(Arc<str>),
}

/// Why a transaction is aborted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AbortCause {
    /// The reason that dead letters keep.
    pub reason: Reason,
    /// The error that dead letters keep.
    pub error: Arc<str>,
    /// When the items are delivered again, unless the queue has its own backoff.
    pub backoff: Backoff,
}

impl AbortCause {
    /// Creates one.
    pub fn new(reason: Reason, error: impl Into<Arc<str>>, backoff: Backoff) -> Self {
        let error = error.into();
        Self {
            reason,
            error,
            backoff,
        }
    }
}

/// The result of a [commit](Tx::commit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// Whether an item was [settled](Tx::settle) instead of being done.
    pub given_up: bool,
}

impl Committed {
    /// Creates one.
    pub const fn new(given_up: bool) -> Self {
        Self { given_up }
    }
}
