//! Items with a time: the pushes, and what can be done with them until they are ready.

mod future;
mod push;
mod target;
mod view;

pub use future::PushWithAsync;
pub use target::PushTo;
pub use view::PushWith;

use crate::order::{Order, Ticket};
use crate::Queue;
use std::time::Instant;

/// Scheduled items.
impl<T: Send, O: Order<T>> Queue<T, O> {
    /// The time of the next scheduled item; `None` if none is scheduled.
    ///
    /// Unlike [`Queue::next_due`](crate::Queue::next_due) it does not include items delayed by a retry, nor leases,
    /// and it is exact at rest.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// queue.after(Duration::from_secs(5)).push("later")?;
    /// assert_eq!(queue.next_scheduled(), Some(clock.now() + Duration::from_secs(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_scheduled(&self) -> Option<Instant> {
        let shared = self.shared();
        shared.time.instant(shared.next_scheduled())
    }

    /// Changes the time of a scheduled item, or in a [`PriorityQueue`](crate::PriorityQueue) of any item with a ticket.
    /// Returns `false` if it is not in the queue, is held, or is delayed by a retry, and in other queues also if it is
    /// ready.
    ///
    /// The item is ready from the new time on; a past time makes it ready immediately. It is then ordered as if it had
    /// been pushed with this time. Waiters are woken at the new time.
    ///
    /// The first call after a long time reads all items, as for [`Queue::cancel`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// let ticket = queue.after(Duration::from_secs(60)).push("remind me")?;
    /// assert!(queue.reschedule(ticket, clock.now() + Duration::from_secs(5)));
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(queue.pop()?, "remind me");
    /// assert!(!queue.reschedule(ticket, clock.now())); // it is gone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule(&self, ticket: Ticket, at: Instant) -> bool {
        let shared = self.shared();
        shared.reschedule(ticket, shared.time.nanos(at))
    }

    /// Removes a scheduled item from the queue, or in a [`PriorityQueue`](crate::PriorityQueue) any item with a ticket,
    /// and returns it. `None` if it is not in the queue, is held, or is delayed by a retry, and in other queues also if
    /// it is ready. It counts as committed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// let ticket = queue.after(Duration::from_secs(60)).push("never mind")?;
    /// assert_eq!(queue.cancel(ticket), Some("never mind"));
    /// assert_eq!(queue.cancel(ticket), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        self.shared().cancel(ticket)
    }
}
