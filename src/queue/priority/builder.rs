//! Settings of a priority queue.

use super::PriorityQueue;
use crate::order::priority::{Heap, Step, Times};
use crate::order::Sorted;
use crate::{Builder, Queue};
use std::sync::Arc;
use std::time::Duration;

/// The order of a [`PriorityQueue`]: by priority, then by due time, then by arrival.
///
/// It gives its builder, its handles and their transactions what only they can do.
///
/// ```
/// use requeue::{ByPriority, Handle, PriorityQueue};
///
/// fn fill(handle: &mut Handle<&str, ByPriority>) {
///     handle.push_with(1, None, "urgent").unwrap();
/// }
///
/// let queue = PriorityQueue::unbounded();
/// fill(&mut queue.handle());
/// assert_eq!(queue.len(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ByPriority {
    ageing: Option<Step>,
}

impl<T> Builder<T, ByPriority> {
    /// Lets items that wait for long be preferred, so that none waits for ever: after each `step` for which
    /// an item has been ready, it is preferred as if its priority were one less.
    ///
    /// The queue keeps the [time of each push](Builder::timestamps) then. A step of more than ten days
    /// counts as ten days.
    ///
    /// ```
    /// use requeue::{ManualClock, PriorityQueue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let builder = PriorityQueue::builder().clock(clock.clone());
    /// let queue = builder.age_after(Duration::from_secs(1)).build();
    /// queue.push_with(5, None, "old")?;
    /// clock.advance(Duration::from_secs(4));
    /// queue.push_with(2, None, "new")?;
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
        self.order().ageing = Some(Step::of(step));
        self
    }
}

impl<T: Send + 'static> Builder<T, ByPriority> {
    /// Makes the queue.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::<u32>::builder().capacity(8).build();
    /// assert_eq!(queue.capacity(), Some(8));
    /// ```
    pub fn build(self) -> PriorityQueue<T> {
        let (mut settings, order) = self.into_settings();
        settings.timed |= order.ageing.is_some();
        let times = Arc::new(Times::new());
        let (queue, sorted) = Queue::ordered(settings, |lanes, agenda| {
            let heap = Heap::new(Arc::clone(&times), order.ageing);
            Sorted::new(heap, Arc::clone(&times), lanes, agenda)
        });
        PriorityQueue { queue, sorted }
    }
}
