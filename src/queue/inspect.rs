//! What a queue says of itself, and what it gives out but by pops.

use super::Queue;
use crate::core::Local;
use crate::order::Order;
use crate::{DeadLetters, Held, Leased, Stats, Unleased};
use std::sync::Arc;
use std::time::Instant;

impl<T, O: Order<T>> Queue<T, O> {
    /// How many items are ready: neither staged nor held. Approximate while others work, but never more
    /// than the [capacity](Queue::capacity); exact at rest. Looks at every shard.
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

    /// Whether nothing was ready at some instant during the call. Strict, unlike `len() == 0`.
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

    /// What the queue has done so far. Looks at every shard and handle, and if the queue keeps
    /// [times](crate::Builder::timestamps) and has another order at every ready item, a thousand at a time.
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

    /// What open transactions hold: an entry for each that holds something. Approximate while others
    /// work.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.held().is_empty());
    /// ```
    pub fn held(&self) -> Vec<Held> {
        self.shared.release_due();
        self.shared.held()
    }

    /// Visits the ready items, shard by shard and each shard in its order, and says how many they were. Those of a
    /// [`FairQueue`](crate::FairQueue) or a [`PriorityQueue`](crate::PriorityQueue) are visited in no certain
    /// order.
    ///
    /// An item that is ready all the time is visited once. While others work it misses items that they have at
    /// that time, another snapshot among them, and those that are pushed meanwhile, and may see one twice that
    /// an abort puts back, or that another snapshot has had. It stops nobody, but the items that it looks at
    /// are held for that time: those of one shard, or some thirty of a queue of another order. Pops find the
    /// others. The items come back to the same places, those of a handle that was dropped meanwhile to the head of the queue, and no delivery is counted. If `visit` panics, they do
    /// too.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push_batch([1, 2, 3])?;
    /// let mut seen = Vec::new();
    /// assert_eq!(queue.peek_each(|item| seen.push(*item)), 3);
    /// assert_eq!((seen, queue.len()), (vec![1, 2, 3], 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek_each(&self, visit: impl FnMut(&T)) -> usize {
        self.shared.bring_up_to_date();
        Local::in_cell(Arc::clone(&self.shared), None).visit(visit)
    }

    /// The items that were delivered as often as they may be: see
    /// [`Builder::max_attempts`](crate::Builder::max_attempts).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.dead_letters().next().is_none());
    /// ```
    pub fn dead_letters(&self) -> DeadLetters<T, O> {
        DeadLetters::new(Arc::clone(&self.shared))
    }

    /// When something will be ready by itself: the next delayed item, the end of the next lease, or the next
    /// start that the pace allows, if somebody was refused one. It may be earlier: that of something that is
    /// gone meanwhile. `None`: nothing will.
    ///
    /// Those who wait need not look at it: they are woken in time.
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

    /// The time by the queue's [clock](crate::Builder::clock).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.now() <= std::time::Instant::now());
    /// ```
    pub fn now(&self) -> Instant {
        self.shared.time.clock_now()
    }
}

/// Only of a queue that [leases](crate::Builder::leased) its items.
impl<T: Clone, O: Order<T> + Unleased> Queue<T, Leased<O>> {
    /// Takes back from the handles with this name what their open transactions took before some time, and
    /// says how many items are ready by that. Touches nothing else.
    ///
    /// What comes back are copies. The late transactions cannot commit any more, and the deliveries count as
    /// failed.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .leased(Duration::from_secs(3600))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let mut stuck = queue.named_handle("stuck");
    /// let tx = stuck.begin();
    /// let _job = tx.pop()?;
    ///
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.recover("another", queue.now()), 0);
    /// assert_eq!(queue.recover("stuck", queue.now()), 1);
    /// assert_eq!(queue.pop()?, "job");
    /// assert!(tx.try_commit().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(&self, worker: &str, before: Instant) -> usize {
        self.shared.recover(worker, before)
    }
}
