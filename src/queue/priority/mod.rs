//! The public interface of queues by priority and schedule.

mod builder;

use crate::order::priority::{ByPriority, Prioritized, TicketSource, DEFAULT_PRIORITY};
use crate::order::{Engine, Ticket};
use crate::Queue;

/// A queue by priority and schedule, for many producers and many consumers, whose dequeues are
/// transactions.
///
/// # Order
///
/// The next item is the ready one with the lowest priority value, among equals the one that has been due longest, and
/// then the one that arrived first. This order is exact for any number of consumers.
///
/// An item with a time is due from that time on; one without a time, or with a past one, from its push on. So neither
/// kind starves the other. A queue with [timestamps](crate::Builder::timestamps) records the time of each push.
/// Others do not read the clock at each push: there a pushed item is due when the next call that pops or counts items
/// finds it, after the items with a time that are due at that call.
///
/// Items pushed through one handle, or without one, arrive in the order of the pushes. Between handles the order is
/// that in which such calls find them.
///
/// # Schedule
///
/// An item with a time is ready from that time on. Until then it counts in [`Stats::delayed`](crate::Stats::delayed),
/// and a closed queue is not drained. Waiters are woken at the next due time.
///
/// Otherwise it is a [`Queue`]. A push without a priority has the [default one](Self::DEFAULT_PRIORITY). Items that
/// are given back are delivered before all others of their priority. Items delayed by a
/// [retry](crate::Transaction::retry_after) keep their priority.
///
/// An item takes its place among others of its priority when the queue takes it in, which any pop does, and any call that
/// inspects the queue, such as [`len`](Self::len). So such a call can change the order of equal items: those that it
/// takes in come before a scheduled item that becomes due later. Without it, a pop finds both, and delivers the
/// scheduled one first, also if it became due after the other one was pushed. With [timestamps](crate::Builder::timestamps)
/// the time of the push decides, and nobody's call changes the order. Items of several handles that are taken in
/// together have no order between them.
///
/// ```
/// use requeue::PriorityQueue;
///
/// let queue = PriorityQueue::by_priority();
/// queue.priority(20).push("sweep")?;
/// let ticket = queue.priority(10).push("cook")?;
/// queue.priority(10).push("eat")?;
///
/// let mut worker = queue.handle();
/// let tx = worker.begin();
/// assert_eq!(*tx.pop()?, "cook");
/// drop(tx); // not done, so it is the first again
///
/// queue.reprioritize(ticket, 15);
/// let order: Vec<_> = std::iter::from_fn(|| queue.pop().ok()).collect();
/// assert_eq!(order, ["eat", "cook", "sweep"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PriorityQueue<T> = Queue<T, ByPriority>;

impl<T: Send> Queue<T, ByPriority> {
    /// Makes an unbounded queue by priority and schedule. [`Builder::by_priority`](crate::Builder::by_priority) makes
    /// one with settings.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::<String>::by_priority();
    /// assert!(queue.is_empty());
    /// ```
    pub fn by_priority() -> Self {
        Queue::builder().by_priority().build()
    }
}

/// As [`PriorityQueue::by_priority`](crate::PriorityQueue::by_priority).
///
/// ```
/// #[derive(Default)]
/// struct Jobs {
///     ready: requeue::PriorityQueue<u32>,
/// }
/// assert!(Jobs::default().ready.is_empty());
/// ```
impl<T: Send> Default for Queue<T, ByPriority> {
    fn default() -> Self {
        Self::by_priority()
    }
}

/// Items that are not held.
impl<T: Send, O: Prioritized<T>> Queue<T, O> {
    /// The priority of items that are pushed without one.
    pub const DEFAULT_PRIORITY: u16 = DEFAULT_PRIORITY;

    /// Changes the priority of an item. Returns `false` if it is not in the queue, is held, or is delayed by a retry.
    /// Among items of the new priority it keeps its order of arrival.
    ///
    /// The first call after a long time reads all items; so does
    /// [`PriorityQueue::cancel`](crate::PriorityQueue::cancel).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let first = queue.priority(1).push("first")?;
    /// queue.priority(2).push("second")?;
    /// assert!(queue.reprioritize(first, 3));
    /// assert_eq!(queue.pop()?, "second");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reprioritize(&self, ticket: Ticket, priority: u16) -> bool {
        let shared = self.shared();
        shared.bring_up_to_date();
        let change = |meta| <O as Engine<T>>::Source::prioritized(meta, priority);
        shared.change_scheduled(ticket, change) || shared.source.reprioritize(ticket, priority)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
