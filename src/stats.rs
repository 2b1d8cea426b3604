//! What a queue says of itself: plain data.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Counts of items since the queue was made.
///
/// Each handle counts on its own, so that counting writes nothing that is shared; the counts are added
/// up when they are read. While others work they are read one after the other and may not add up. At
/// rest, that is when no call is under way, they are exact: see [`Stats::check`].
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut handle = queue.handle();
/// handle.push_batch([1, 2, 3])?;
/// let tx = handle.begin();
/// let _job = tx.pop()?;
///
/// let stats = queue.stats();
/// assert_eq!((stats.pushed, stats.ready, stats.held), (3, 2, 1));
/// stats.check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Items whose push was committed, dead letters that were pushed again included. What is staged does
    /// not count.
    pub pushed: u64,
    /// Items that a pop would find; never more than the [capacity](crate::Queue::capacity).
    pub ready: u64,
    /// Items held by open transactions, forgotten ones included.
    pub held: u64,
    /// Items that are out of the way: until they are due, or in a [serial](crate::Builder::serial) queue until it
    /// is their turn.
    pub delayed: u64,
    /// Items whose pop was committed.
    pub committed: u64,
    /// Deliveries that were given back: each abort counts every item that the transaction held, and each
    /// retry one.
    pub aborted: u64,
    /// Deliveries that were taken back, because a lease was over or by a recovery.
    pub expired: u64,
    /// Items that ever became dead letters.
    pub dead: u64,
    /// Threads and tasks that wait for an item and were not woken yet.
    pub waiting: u64,
    /// How long ago the oldest ready item was pushed first, if the queue keeps
    /// [times](crate::Builder::timestamps). While others work it may be that of another item.
    pub oldest: Option<Duration>,
}

impl Stats {
    /// Checks that nothing was lost and nothing came from nowhere:
    /// `pushed = ready + held + delayed + committed + dead`.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.stats().check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Imbalance`] if the counts do not add up, as they may not while others work.
    pub fn check(&self) -> Result<(), Imbalance> {
        let known = [
            self.ready,
            self.held,
            self.delayed,
            self.committed,
            self.dead,
        ];
        let known = known.into_iter().map(u128::from).sum();
        if u128::from(self.pushed) == known {
            return Ok(());
        }
        Err(Imbalance {
            pushed: self.pushed,
            known,
        })
    }
}

/// The counts of [`Stats`] do not add up.
///
/// ```
/// let mut stats = requeue::Queue::<u32>::unbounded().stats();
/// stats.pushed = 2;
/// let imbalance = stats.check().unwrap_err();
/// assert_eq!(imbalance.to_string(), "2 items were pushed, and 0 are accounted for");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imbalance {
    /// Items that were pushed.
    pub pushed: u64,
    /// Items of which it is known what became of them.
    pub known: u128,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pushed, known } = self;
        write!(
            f,
            "{pushed} items were pushed, and {known} are accounted for"
        )
    }
}

impl Error for Imbalance {}

/// What one open transaction holds, from [`Queue::held`](crate::Queue::held).
///
/// Its [`id`](Self::id) is that of the [transaction](crate::Transaction::id), so it leads to a delivery that is kept by
/// its id. Who holds it, and since when, is known of handles with a [name](crate::Queue::named_handle), and of
/// all handles of a queue that keeps [times](crate::Builder::timestamps) or
/// [leases](crate::Builder::leased) its items.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push("job")?;
/// let mut worker = queue.named_handle("worker-1");
/// let tx = worker.begin();
/// let _job = tx.pop()?;
///
/// let held = queue.held();
/// assert_eq!(held[0].worker.as_deref(), Some("worker-1"));
/// assert_eq!(held[0].items, 1);
/// assert_eq!(held[0].thread, Some(std::thread::current().id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The [id](crate::Transaction::id) of the transaction: that of the oldest delivery that it holds.
    pub id: DeliveryId,
    /// The name of the handle.
    pub worker: Option<Arc<str>>,
    /// How many items it holds.
    pub items: usize,
    /// When it took the first of them, or of those before that have left it since.
    pub since: Option<Instant>,
    /// The thread that took the first of them.
    pub thread: Option<ThreadId>,
}

/// A number for a delivery: that of its handle, and how many deliveries of this handle have ended before it.
///
/// No two deliveries that are held have the same id, nor does a later one have that of an earlier one, as long as the
/// queue lives: handles that are dropped leave their numbers, and their counts, to others. Nothing is stored for it.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push("job")?;
/// let delivery = queue.begin_owned();
/// delivery.pop()?;
/// let id = delivery.id();
/// assert_eq!(queue.held()[0].id, id);
/// assert_eq!(id.to_string(), format!("{}-{}", id.handle, id.count));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct DeliveryId {
    /// The number of the handle. No two handles of a queue have the same at a time.
    pub handle: usize,
    /// How many deliveries of this handle have ended before.
    pub count: u64,
}

impl DeliveryId {
    pub(crate) fn new(handle: usize, count: u64) -> Self {
        Self { handle, count }
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.handle, self.count)
    }
}
