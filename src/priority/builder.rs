//! Settings of a priority queue.

use super::heap::{Heap, Step};
use super::times::Times;
use super::PriorityQueue;
use crate::order::Sorted;
use crate::sync::SMALL;
use crate::{Builder, Queue};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The order of a [`PriorityQueue`]: by priority, then by time, then who came first.
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
    strict: bool,
    ageing: Option<Step>,
}

impl ByPriority {
    /// So many heaps are enough for the consumers seldom to wait for each other: one for two threads that can
    /// run at the same time. With as many as threads they would wait for the lines of the lanes instead.
    pub(super) fn racks(self, threads: usize) -> usize {
        const MOST: usize = 8;
        if self.strict {
            1
        } else {
            (threads / 2).clamp(1, MOST)
        }
    }

    /// How many threads can run at the same time; in the models, enough for two heaps.
    fn threads() -> usize {
        if SMALL {
            return 4;
        }
        thread::available_parallelism().map_or(1, NonZeroUsize::get)
    }
}

impl<T> Builder<T, ByPriority> {
    /// Whoever pops gets the best item there is, also while others pop.
    ///
    /// Without it, consumers that pop at the same time each get one of the best: they choose among several
    /// heaps, so that they need not wait for each other. One that is alone gets the best in any case.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::builder().strict().build();
    /// queue.push_with(2, None, "normal")?;
    /// queue.push_with(1, None, "urgent")?;
    /// assert_eq!(queue.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn strict(mut self) -> Self {
        self.order().strict = true;
        self
    }

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
    pub fn age_after(mut self, step: Duration) -> Self {
        assert!(!step.is_zero(), "a step of ageing must last for some time");
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
            let heap = |_| Heap::new(Arc::clone(&times), order.ageing);
            let heaps = (0..order.racks(ByPriority::threads())).map(heap);
            Sorted::new(heaps, Arc::clone(&times), lanes, agenda)
        });
        PriorityQueue { queue, sorted }
    }
}
