//! Queues by priority and schedule, as users see them.

mod builder;
mod error;
mod future;
mod push;
mod target;

mod view;
mod wish;

pub use error::{OutOfRange, PriorityError};
pub use future::PushWithAsync;
pub use target::PushTo;
pub use view::PushWith;

use crate::order::priority::{ByPriority, Prioritized, Priority, Ticket};
use crate::order::Sequence;
use crate::Queue;
use std::time::Instant;

/// A queue by priority and schedule, for many producers and many consumers, whose dequeues are
/// transactions.
///
/// # Order
///
/// The next item is the ready one of the least priority; of those the one that has been due for the longest
/// time; of those the one that arrived first. That is exact, however many consumers there are.
///
/// An item with a time is due from then on, one without a time, or whose time is over, from its push on. So
/// neither of the two starves the other. A queue with [timestamps](crate::Builder::timestamps) knows when items were
/// pushed. Others do not ask the clock at each push: there an item that was pushed is due when the next call
/// finds it that pops, or counts the items. What has a time and is due at that call goes before it.
///
/// Items that were pushed through one handle, or without one, arrive in the order of the pushes. Between
/// handles the order is that in which such calls find them.
///
/// # Schedule
///
/// An item with a time is ready when that has come. Until then [`Stats::delayed`](crate::Stats::delayed)
/// counts it, and a closed queue waits for it. Those who wait for an item sleep no longer than until the
/// next time.
///
/// Apart from the order it is a [`Queue`]. A push without a priority has the
/// [default one](Self::DEFAULT_PRIORITY). Items that come back go before all others of their priority. Those
/// that are out of the way after a [retry](crate::Transaction::retry_after) keep their priority.
///
/// ```
/// use requeue::PriorityQueue;
///
/// let queue = PriorityQueue::by_priority();
/// queue.push_with(20, None, "sweep")?;
/// let ticket = queue.push_with(10, None, "cook")?;
/// queue.push_with(10, None, "eat")?;
///
/// let mut worker = queue.handle();
/// let tx = worker.begin();
/// assert_eq!(*tx.pop()?, "cook");
/// drop(tx); // not done, so it is the first again
///
/// queue.reprioritize(ticket, 15)?;
/// let order: Vec<_> = std::iter::from_fn(|| queue.pop().ok()).collect();
/// assert_eq!(order, ["eat", "cook", "sweep"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PriorityQueue<T> = Queue<T, ByPriority>;

impl<T: Send> Queue<T, ByPriority> {
    /// Makes a queue by priority and schedule that takes as many items as memory holds.
    /// [`Builder::by_priority`](crate::Builder::by_priority) makes one with settings.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::<String>::by_priority();
    /// assert!(queue.is_empty());
    /// ```
    pub fn by_priority() -> Self {
        Queue::builder().by_priority().build()
    }
}

/// Items that nobody holds.
impl<T: Send, O: Prioritized<T>> Queue<T, O> {
    /// The priority of items that are pushed without one.
    pub const DEFAULT_PRIORITY: u16 = Priority::DEFAULT.get();

    /// When the next scheduled item will be ready; `None` if none is scheduled.
    ///
    /// Unlike [`Queue::next_due`](crate::Queue::next_due) it knows nothing of items that are out of the way after a retry, nor of
    /// leases, and is exact at rest.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().by_priority().clock(clock.clone()).build();
    /// queue.push_after(Duration::from_secs(5), "later")?;
    /// assert_eq!(queue.next_scheduled(), Some(clock.now() + Duration::from_secs(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_scheduled(&self) -> Option<Instant> {
        self.shared().bring_up_to_date();
        let next = self.shared().source.with(|heap| heap.next_due());
        self.shared().time.instant(next)
    }

    /// Gives an item another priority: `false`, if it is not in the queue, or somebody holds it, or it is
    /// out of the way after a retry. Among its equals it stands where it came.
    ///
    /// The first call after a long time looks at all items; so does [`PriorityQueue::cancel`](crate::PriorityQueue::cancel).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let first = queue.push_with(1, None, "first")?;
    /// queue.push_with(2, None, "second")?;
    /// assert!(queue.reprioritize(first, 3)?);
    /// assert_eq!(queue.pop()?, "second");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if there is no such priority.
    pub fn reprioritize(&self, ticket: Ticket, priority: u16) -> Result<bool, OutOfRange> {
        let priority = Priority::new(priority).ok_or(OutOfRange)?;
        self.shared().bring_up_to_date();
        Ok(self
            .shared()
            .source
            .with(|heap| heap.reprioritize(ticket, priority)))
    }

    /// Gives an item another time: `false`, if it is not in the queue, or somebody holds it, or it is
    /// delayed after a retry.
    ///
    /// The item may be scheduled, due, or pushed without a time. It is ready from the new time on, and not
    /// before; if that has passed, at once. Among items of its priority it then stands as if it had been pushed with
    /// this time. Those who wait for an item sleep no longer than until then.
    ///
    /// The first call after a long time looks at all items, as for [`PriorityQueue::cancel`](crate::PriorityQueue::cancel).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().by_priority().clock(clock.clone()).build();
    /// let ticket = queue.push_after(Duration::from_secs(60), "remind me")?;
    /// assert!(queue.reschedule(ticket, clock.now() + Duration::from_secs(5)));
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(queue.pop()?, "remind me");
    /// assert!(!queue.reschedule(ticket, clock.now())); // it is gone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule(&self, ticket: Ticket, at: Instant) -> bool {
        let shared = self.shared();
        shared.bring_up_to_date();
        let due = shared.time.nanos(at);
        let found = shared.source.with(|heap| heap.reschedule(ticket, due));
        if found {
            // Somebody has to know of the time before the clock is asked, which is user code.
            shared.due_timer.call_backup();
            shared.ready().notify(1);
            shared.release_due();
        }
        found
    }

    /// Takes an item out of the queue, whatever its turn; `None`, if it is not in the queue, or somebody
    /// holds it, or it is out of the way after a retry. It counts as committed.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let ticket = queue.push_with(1, None, "never mind")?;
    /// assert_eq!(queue.cancel(ticket), Some("never mind"));
    /// assert_eq!(queue.cancel(ticket), None);
    /// assert!(queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        self.shared().bring_up_to_date();
        let entry = self.shared().source.with(|heap| heap.cancel(ticket))?;
        Some(self.shared().part_with(entry))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
