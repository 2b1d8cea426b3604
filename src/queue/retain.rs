//! Removes items of any kind that nobody holds.

use super::Queue;
use crate::core::visit::remove_unless;
use crate::order::Order;
use crate::Ticket;
use std::time::{Duration, Instant};

/// What is known of an item in the queue that nobody holds; see [`Queue::retain`](crate::Queue::retain).
///
/// ```
/// use std::time::Duration;
///
/// let clock = requeue::ManualClock::new();
/// let queue = requeue::Queue::builder().clock(clock.clone()).timestamps().build();
/// queue.after(Duration::from_secs(5)).push("later")?;
/// clock.advance(Duration::from_secs(2));
/// queue.retain(|_, queued| {
///     assert_eq!(queued.attempts, 0);
///     assert_eq!(queued.waited, Some(Duration::from_secs(2)));
///     assert_eq!(queued.due, Some(queue.now() + Duration::from_secs(3)));
///     true
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// How often it was delivered before.
    pub attempts: u32,
    /// How long it had been in the queue when the call began, if the queue keeps [timestamps](crate::Builder::timestamps).
    pub waited: Option<Duration>,
    /// When it becomes ready, if it is delayed by a retry or scheduled. `None` if it is ready, or the time is beyond the
    /// range of [`Instant`].
    pub due: Option<Instant>,
    /// Its ticket, if the queue is [tracked](crate::Builder::tracked).
    pub ticket: Option<Ticket>,
}

impl<T, O: Order<T>> Queue<T, O> {
    /// Removes the items for which `keep` returns `false`, whether ready, delayed by a retry, or scheduled, and returns
    /// their number. Held and staged items belong to their transactions, and are left alone.
    ///
    /// Removed items are dropped, and count as [committed](crate::Stats::committed), as those of a [`clear`](Queue::clear)
    /// do: their room and their keys are free again. Other than a pop it also finds items of a [paused](Queue::pause) or
    /// [paced](crate::Builder::pace) queue, and those of a [serial](crate::Builder::serial) one that wait for others of
    /// their key. It takes time in proportion to the number of items, and for each delayed or scheduled one that it removes
    /// that of a place in a heap.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch([("alice", 1), ("bob", 2), ("alice", 3)])?;
    /// queue.after(Duration::from_secs(60)).push(("bob", 4))?;
    ///
    /// assert_eq!(queue.retain(|job, _| job.0 != "bob"), 2);
    /// assert!(queue.drain().eq([("alice", 1), ("alice", 3)]));
    /// assert_eq!(queue.next_scheduled(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Queued`] says more of each item, such as how often its delivery has failed:
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch(["poison", "job"])?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// tx.pop()?;
    /// tx.abort();
    /// assert_eq!(queue.retain(|_, queued| queued.attempts == 0), 1);
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Order
    ///
    /// The items that stay keep their places, and no delivery is counted. Only two visits at the same time may leave some items
    /// behind others, as [`peek_each`](Queue::peek_each) says. First the delayed and scheduled items are examined,
    /// in the order of their times, then the others, as by [`peek_each`](Queue::peek_each); so one that becomes due
    /// meanwhile is examined twice rather than never.
    ///
    /// # Progress
    ///
    /// At most 32 items at a time are held, as by a transaction, while `keep` is called with them: it runs without a lock, so
    /// nobody waits for it, and it may use the queue. Pops pass over these items and find the others. They are not found by
    /// their [tickets](crate::Ticket) meanwhile, and one whose time comes is ready when it is back. Before it examines delayed
    /// and scheduled items it copies their times, some 30 bytes for each, under a lock.
    ///
    /// An item that stays in the queue is examined. Items that other calls hold meanwhile, or that are pushed, may be missed:
    /// of two `retain` or [`peek_each`](Queue::peek_each) at the same time each may miss what the other one has held, so
    /// `keep` should not call them.
    ///
    /// # Panics
    ///
    /// If `keep` panics: the items that it was examining stay, up to 32, and the rest too. If the destructor of an item
    /// panics: those after it stay, except for those that were examined with it.
    pub fn retain(&self, mut keep: impl FnMut(&T, Queued) -> bool) -> usize {
        let shared = &self.shared;
        shared.bring_up_to_date();
        let now = shared.stamp();
        remove_unless(shared, true, |item, (delivery, due)| {
            let pushed = shared.pushed_at(delivery.since);
            let waited = || Duration::from_nanos(now.saturating_sub(pushed));
            let queued = Queued {
                attempts: delivery.attempts,
                waited: (pushed > 0).then(waited),
                due: due.and_then(|due| shared.time.instant(due)),
                ticket: shared.ticket(delivery.since),
            };
            keep(item, queued)
        })
    }

    /// Removes all items that nobody holds, whether ready, delayed or scheduled, and returns their number: a
    /// [`retain`](Queue::retain) that keeps nothing. Held and staged items stay.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue: requeue::Queue<i32> = (1..=3).collect();
    /// queue.after(Duration::from_secs(60)).push(4)?;
    /// assert_eq!(queue.clear_all(), 4);
    /// queue.wait_idle(); // nothing is left
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the destructor of an item panics. Up to 31 other items may be gone too, the rest stays.
    #[doc(alias = "purge")]
    pub fn clear_all(&self) -> usize {
        self.shared.bring_up_to_date();
        remove_unless(&self.shared, true, |_, _| false)
    }

    /// [Closes](Queue::close) the queue, and removes the items that are delayed or scheduled, so that pops need not wait for
    /// their times: they return [`PopError::Closed`](crate::PopError::Closed) once nothing is ready and no transaction
    /// is open. Returns how many items were removed, also if the queue was closed before.
    ///
    /// Removed items are dropped, and count as [committed](crate::Stats::committed). Those that a transaction
    /// schedules or retries later are in the queue as after [`close`](Queue::close); another `close_now` removes them.
    ///
    /// ```
    /// use requeue::PopError;
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("now")?;
    /// queue.after(Duration::from_secs(3600)).push("later")?;
    /// assert_eq!(queue.close_now(), 1);
    /// assert_eq!(queue.pop_blocking(), Ok("now"));
    /// assert_eq!(queue.pop_blocking(), Err(PopError::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the destructor of an item panics. Up to 31 other items may be gone too, the rest stays.
    pub fn close_now(&self) -> usize {
        self.close();
        self.shared.release_due();
        remove_unless(&self.shared, false, |_, _| false)
    }
}
