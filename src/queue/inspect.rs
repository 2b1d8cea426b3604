//! Inspection of a queue, and access to items other than by pops.

use super::Queue;
use crate::core::Local;
use crate::order::Order;
use crate::{DeadLetters, Held, Stats};
use std::sync::Arc;
use std::time::Instant;

impl<T, O: Order<T>> Queue<T, O> {
    /// The capacity of the queue; `None` if it is unbounded.
    ///
    /// ```
    /// assert_eq!(requeue::Queue::<u32>::bounded(8).capacity(), Some(8));
    /// assert_eq!(requeue::Queue::<u32>::unbounded().capacity(), None);
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        self.shared.room().map(|room| room.capacity.limit())
    }

    /// The total [weight](crate::Builder::weigh) of the items in the queue, whether ready, held, staged, delayed or scheduled.
    /// Approximate under concurrency, exact at rest. Where items have no weights each one counts 1, unless it is staged.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().weigh(|text: &&str| text.len()).build();
    /// queue.push_batch(["one", "three"])?;
    /// assert_eq!((queue.len(), queue.weight()), (2, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "broker")]
    pub fn weight(&self) -> usize {
        self.shared.bring_up_to_date();
        self.shared.weight()
    }

    /// Returns `true` if there is no room for another item, unless that has weight 0. Approximate under concurrency, exact at rest; always
    /// `false` for an unbounded queue. A key of a [`FairQueue`](crate::FairQueue) may be at its limit before the
    /// queue is full. If the queue is full, expired leases are taken back first, which makes room if an item becomes a dead
    /// letter.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(1);
    /// assert!(!queue.is_full());
    /// queue.push(1)?;
    /// assert!(queue.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_full(&self) -> bool {
        let is_full = || {
            let room = self.shared.room();
            room.is_some_and(|room| room.capacity.free() == 0)
        };
        is_full() && (!self.shared.reclaim() || is_full())
    }

    /// Returns `true` if both are clones of the same queue.
    ///
    /// ```
    /// let (a, b) = (requeue::Queue::<u32>::unbounded(), requeue::Queue::unbounded());
    /// assert!(a.same_queue(&a.clone()));
    /// assert!(!a.same_queue(&b));
    /// ```
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The number of ready items, neither staged nor held. Approximate under concurrency, but never more than the
    /// [capacity](Queue::capacity); exact at rest. Reads every shard.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([10, 20, 30])?;
    /// let tx = handle.begin();
    /// let held = tx.pop()?;
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> usize {
        self.shared.bring_up_to_date();
        usize::try_from(self.shared.ready_items()).unwrap_or(usize::MAX)
    }

    /// Returns `true` if nothing is ready. Linearizable, unlike `len() == 0`: the queue really was empty at some
    /// point during the call.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// assert!(!queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.shared.bring_up_to_date();
        self.shared.is_empty()
    }

    /// The statistics of the queue. Reads every shard and handle, and, if the queue keeps
    /// [timestamps](crate::Builder::timestamps) and is not in [`Fifo`](crate::Fifo) order, every ready item, a
    /// thousand at a time.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.pop()?;
    /// assert_eq!(queue.stats().committed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The open transactions that hold items. Approximate under concurrency.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.held().is_empty());
    /// ```
    pub fn held(&self) -> Vec<Held> {
        self.shared.release_due();
        self.shared.held()
    }

    /// Visits the ready items, shard by shard and each shard in its order, and returns their number. Those of a
    /// [`FairQueue`](crate::FairQueue) or a [`PriorityQueue`](crate::PriorityQueue) are visited in an unspecified
    /// order.
    ///
    /// An item that stays ready is visited once. Under concurrency, items that other calls hold, such as another
    /// `peek_each`, or that are pushed meanwhile may be missed, and one that an abort or another `peek_each` puts
    /// back may be visited twice; two that visit the same shard may both miss some of its last items. No delivery is
    /// counted. A pop of another thread takes time in proportion to the aborted transactions whose items were all popped
    /// during the present call of `visit`.
    ///
    /// # Order
    ///
    /// No other call is blocked, but at most 32 items at a time are held, as by a transaction, while they are visited.
    /// Pops pass over them and find the others, so they return [`Empty`](crate::PopError::Empty) only if nothing else
    /// is ready. The items are at their places again as soon as `visit` was called with them, or panics: those that
    /// were visited come before those that were not, each in the order of their pushes. Two `peek_each` that visit the
    /// same shard of a FIFO queue at the same time may leave those items that one of them held behind the others.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push_batch([1, 2, 3])?;
    /// let mut seen = Vec::new();
    /// assert_eq!(queue.peek_each(|item| seen.push(*item)), 3);
    /// assert_eq!((seen, queue.len()), (vec![1, 2, 3], 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek_each(&self, mut visit: impl FnMut(&T)) -> usize {
        self.shared.bring_up_to_date();
        let mut count = 0;
        Local::in_cell(Arc::clone(&self.shared), None).visit(false, |item, _| {
            visit(item);
            count += 1;
            true
        });
        count
    }

    /// The dead letters: items that failed `max_attempts` times, or were [failed](crate::Transaction::fail) by their
    /// worker; see [`Builder::max_attempts`](crate::Builder::max_attempts).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.dead_letters().next().is_none());
    /// ```
    #[doc(alias("dead-letter queue", "dlq"))]
    pub fn dead_letters(&self) -> DeadLetters<T, O> {
        DeadLetters::new(Arc::clone(&self.shared))
    }

    /// The next due time: of a delayed item, the end of a lease, or a start that the pace allows after it refused
    /// one. It may be too early, if the item is gone meanwhile. `None` if nothing is due.
    ///
    /// Waiting calls need not check it: they are woken in time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// queue.push(1)?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// tx.retry_after(tx.pop()?, Duration::from_secs(5))?;
    /// assert_eq!(queue.next_due(), Some(queue.now() + Duration::from_secs(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_due(&self) -> Option<Instant> {
        self.shared.time.instant(self.shared.next_due())
    }

    /// The current time of the queue's [clock](crate::Builder::clock).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.now() <= std::time::Instant::now());
    /// ```
    pub fn now(&self) -> Instant {
        self.shared.time.clock_now()
    }
}
