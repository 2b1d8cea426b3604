//! Settings of a priority queue.

use crate::order::priority::{AgeStep, ByPriority, Prioritized};
use crate::raw::Shareable;
use crate::Builder;
use std::time::Duration;

impl<T> Builder<T> {
    /// Orders the queue by priority and schedule: a [`PriorityQueue`](crate::PriorityQueue).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().by_priority().capacity(8).build();
    /// queue.priority(1).push("urgent")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_priority(self) -> Builder<T, ByPriority>
    where
        T: Send,
    {
        self.by(|()| None, Shareable::proved())
    }
}

impl<T: Send, O: Prioritized<T>> Builder<T, O> {
    /// Enables ageing, so that no item starves: for each `step` that an item has been ready, it is ordered as if its
    /// priority were one less.
    ///
    /// The queue then keeps the [time of each push](Builder::timestamps). A step of more than a day is clamped to a
    /// day.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let builder = Queue::builder().by_priority().clock(clock.clone());
    /// let queue = builder.age_after(Duration::from_secs(1)).build();
    /// queue.priority(5).push("old")?;
    /// clock.advance(Duration::from_secs(4));
    /// queue.priority(2).push("new")?;
    /// assert_eq!(queue.pop()?, "old"); // like one of priority 1 by now
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `step` is zero.
    #[track_caller]
    pub fn age_after(mut self, step: Duration) -> Self {
        assert!(
            !step.is_zero(),
            "step of ageing is zero: all items would be the most urgent at once"
        );
        self.order = Some(AgeStep::of(step));
        self
    }
}
