//! How fast a queue gives out its items.

use super::Queue;
use crate::order::Order;
use crate::Pace;

impl<T, O: Order<T>> Queue<T, O> {
    /// Gives out nothing from now on, until it is [resumed](Queue::resume): pops say
    /// [`Empty`](crate::PopError::Empty), or wait. Pushes, and the ends of transactions, go on. A pop that is
    /// under way may still take an item.
    ///
    /// A queue that was paused or [paced](Queue::set_pace) once is not as fast afterwards as one that never was:
    /// each pop looks whether it is now.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.pause();
    /// queue.push(1)?;
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// queue.resume();
    /// assert_eq!(queue.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&self) {
        self.shared.pause();
    }

    /// Ends a [pause](Queue::pause), and wakes all who wait for an item.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.pause();
    /// std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| queue.handle().pop_blocking());
    ///     queue.push(1).unwrap();
    ///     queue.resume();
    ///     assert_eq!(waiter.join().unwrap(), Ok(1));
    /// });
    /// ```
    pub fn resume(&self) {
        self.shared.resume();
    }

    /// Whether the queue is [paused](Queue::pause).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(!queue.is_paused());
    /// queue.pause();
    /// assert!(queue.is_paused());
    /// ```
    pub fn is_paused(&self) -> bool {
        self.shared.gate.is_paused()
    }

    /// Gives the queue another [pace](crate::Builder::pace), from the next start on. All who wait are woken.
    ///
    /// The new pace counts from the last start of the queue on: the next one is at least one of its intervals later, or
    /// as many as the old pace was owed then, less the burst. What was started without a pace is not known.
    /// To change the pace of several queues, see [`Pace::set_interval`].
    ///
    /// What is held goes on as it is. Its turns, if they are given back, go to the pace that they came from; the new
    /// one goes on counting them.
    ///
    /// ```
    /// use requeue::{Pace, Queue};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// queue.set_pace(Pace::every(Duration::from_secs(3600)));
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// assert_eq!(queue.pop()?, 1);
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// queue.set_pace(Pace::unlimited());
    /// assert_eq!(queue.pop()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the new pace is a [shared](Pace::shared) one whose limiter panics when it is asked for the turns of what was
    /// started. The queue keeps its pace then.
    pub fn set_pace(&self, pace: Pace) {
        self.shared.set_pace(pace);
    }

    /// The pace of the queue: the same one, not a copy.
    ///
    /// ```
    /// use requeue::{Pace, Queue};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::<u32>::builder()
    ///     .pace(Pace::every(Duration::from_secs(1)))
    ///     .build();
    /// let other = Queue::<String>::builder().pace(queue.pace()).build();
    /// assert!(!other.pace().is_unlimited()); // both together start one in a second
    /// ```
    pub fn pace(&self) -> Pace {
        self.shared.gate.pace()
    }
}
