//! Pausing and rate limiting of a queue.

use super::Queue;
use crate::order::Order;
use crate::time::NEVER;
use std::time::Duration;

impl<T, O: Order<T>> Queue<T, O> {
    /// Pauses delivery until the queue is [resumed](Queue::resume): pops return [`Empty`](crate::PopError::Empty), or
    /// wait. Pushes, commits and aborts are not affected. A pop in progress may still take an item.
    ///
    /// A queue that was paused or [rate limited](Queue::set_pace) once stays slightly slower: each pop checks for it.
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

    /// Pauses delivery as [`Queue::pause`] does, for a time of the queue's [clock](crate::Builder::clock): then the queue is
    /// resumed, and all calls that wait for an item are woken.
    ///
    /// [`Queue::resume`] ends it earlier. The last call decides: a later [`pause`](Queue::pause) has no end, and a later
    /// `pause_for` another one. Meanwhile [`Queue::next_due`] may say when it ends.
    ///
    /// ```
    /// use requeue::{ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder().clock(clock.clone()).build();
    /// queue.push("order")?;
    /// queue.pause_for(Duration::from_secs(30)); // the shop asks for a break
    /// assert!(queue.pop().unwrap_err().is_empty());
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(queue.pop()?, "order");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("circuit breaker", "back off"))]
    pub fn pause_for(&self, duration: Duration) {
        self.shared.pause_for(duration);
    }

    /// Ends a [pause](Queue::pause), and wakes all calls that wait for an item.
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
        self.shared.resume(NEVER);
    }

    /// Returns `true` if the queue is [paused](Queue::pause).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(!queue.is_paused());
    /// queue.pause();
    /// assert!(queue.is_paused());
    /// ```
    pub fn is_paused(&self) -> bool {
        self.shared.paused_until().is_some()
    }
}

#[cfg(feature = "rate")]
impl<T, O: Order<T>> Queue<T, O> {
    /// Replaces the [pace](crate::Builder::pace) of the queue, from the next start on. All waiters are woken.
    ///
    /// The new pace counts from the last start of the queue: the next start is at least one of its intervals later,
    /// or one for each token of the old pace that was not refilled yet, less the burst. Starts without a pace are not
    /// counted. To change the pace of several queues, see [`Pace::set_interval`](crate::Pace::set_interval).
    ///
    /// Held items are not affected. Their tokens, if they are returned, go to the pace that they came from; the new
    /// one still counts them.
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
    /// If the new pace is [shared](crate::Pace::shared) and its limiter panics when it is asked for the tokens of past
    /// starts. The queue keeps its pace then.
    pub fn set_pace(&self, pace: crate::Pace) {
        self.shared.set_pace(pace);
    }

    /// The pace of the queue, which shares its rate limit.
    ///
    /// ```
    /// use requeue::{Pace, Queue};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::<u32>::builder()
    ///     .pace(Pace::every(Duration::from_secs(1)))
    ///     .build();
    /// let other = Queue::<String>::builder().pace(queue.pace()).build();
    /// assert!(!other.pace().is_unlimited()); // both together start one item per second
    /// ```
    pub fn pace(&self) -> crate::Pace {
        self.shared.gate.pace()
    }
}
