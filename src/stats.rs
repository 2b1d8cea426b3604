//! Statistics of a queue: plain data.

use std::fmt;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Counts of items since the queue was made.
///
/// Each handle has its own counters, so counting writes nothing shared; they are summed when read. Under concurrency
/// they are read one after the other and may not add up. At rest, when no call is in progress, they are exact: see
/// [`Stats::check`].
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
    /// Items whose push was committed, requeued dead letters included. Staged items do not count.
    pub pushed: u64,
    /// Items available to pops; never more than the [capacity](crate::Queue::capacity).
    pub ready: u64,
    /// Items held by open transactions, forgotten ones included.
    pub held: u64,
    /// Items that are delayed or scheduled, or in a [serial](crate::Builder::serial) queue wait for another item of
    /// their key.
    pub delayed: u64,
    /// Items whose pop was committed.
    pub committed: u64,
    /// Deliveries that were given back: an abort counts each item that the transaction held, a retry counts one.
    pub aborted: u64,
    /// Deliveries that were taken back, because a lease expired or by a recovery.
    pub expired: u64,
    /// Items that were dropped since their [time to live](crate::Builder::ttl) was over. Those that became dead letters instead
    /// count as these.
    pub timed_out: u64,
    /// Items that ever became dead letters.
    pub dead: u64,
    /// Threads and tasks that wait for an item and were not woken yet.
    pub waiting: u64,
    /// Time since the first push of the oldest ready item, if the queue keeps
    /// [timestamps](crate::Builder::timestamps). Under concurrency it may belong to another item.
    pub oldest: Option<Duration>,
}

impl Stats {
    /// Checks that no item was lost or duplicated: `pushed = ready + held + delayed + committed + timed_out + dead`.
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
    /// [`Imbalance`] if the counts do not add up, which is possible under concurrency.
    pub fn check(&self) -> Result<(), Imbalance> {
        let known = [
            self.ready,
            self.held,
            self.delayed,
            self.committed,
            self.timed_out,
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
    /// Items that are accounted for.
    pub known: u128,
}

error_text!([] Imbalance, |Self { pushed, known }| format_args!(
    "{pushed} items were pushed, and {known} are accounted for"
));

/// An open transaction that holds items, or the open [deliveries](crate::Delivery) that one thread has taken, from
/// [`Queue::held`](crate::Queue::held).
///
/// The [`id`](Self::id) of a transaction is [its own](crate::Transaction::id), so it identifies a delivery stored by
/// id; that of deliveries counts those that have ended. The holder and the time are known for handles with a [name](crate::Queue::named_handle), and for all handles
/// of a queue that keeps [timestamps](crate::Builder::timestamps) or [leases](crate::Builder::leased) its items.
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
    /// The number of items it holds.
    pub items: usize,
    /// When it took its first item, even if that one has been given back since.
    pub since: Option<Instant>,
    /// The thread that took its first item.
    pub thread: Option<ThreadId>,
}

/// What a [`discard`](crate::Queue::discard) has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Discarded {
    /// The item was not held, and is gone.
    Removed,
    /// It is held, or staged, or another call is examining it. It is dropped when it is given up.
    Marked,
    /// No item in the queue has this ticket, or the queue is not [tracked](crate::Builder::tracked). It may be a dead letter.
    Unknown,
}

/// The id of a delivery: the number of its handle, and the number of deliveries of this handle that ended before it, or for a
/// [`Delivery`](crate::Delivery) that began before it.
///
/// Ids are unique among all deliveries in the lifetime of a queue: a new handle that reuses the number of a dropped
/// one continues its count. Nothing is stored per item.
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
    /// The number of the handle, unique among the live handles of a queue.
    pub handle: usize,
    /// The number of deliveries of this handle that ended, or began, before.
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
