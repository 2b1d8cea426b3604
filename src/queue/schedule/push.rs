//! Pushes at a time, and with a priority.

use super::view::PushWith;
use crate::order::priority::Prioritized;
use crate::order::Order;
use crate::{Handle, Queue, Transaction};
use std::time::{Duration, Instant};

/// The views of a target.
macro_rules! views {
    (
        $(#[$on:meta])* $target:ty: $this:ident: $own:ty;
        $(#[$on_priority:meta])* priority
        $(#[$on_at:meta])* at
        $(#[$on_after:meta])* after
        $(#[$on_expires_in:meta])* expires_in
    ) => {
        $(#[$on])*
        impl<T: Send, O: Order<T>> $target {
            $(#[$on_at])*
            #[doc(alias("schedule", "delay"))]
            #[inline]
            pub fn at($this: $own, at: Instant) -> PushWith<$own> {
                PushWith::new($this).at(at)
            }

            $(#[$on_after])*
            #[doc(alias("schedule", "delay", "timer"))]
            #[inline]
            pub fn after($this: $own, delay: Duration) -> PushWith<$own> {
                PushWith::new($this).after(delay)
            }

            $(#[$on_expires_in])*
            #[doc(alias("ttl", "expiration", "expiry"))]
            #[cfg(feature = "broker")]
            #[inline]
            #[track_caller]
            pub fn expires_in($this: $own, life: Duration) -> PushWith<$own> {
                PushWith::new($this).expires_in(life)
            }
        }

        /// Pushes with a priority.
        impl<T: Send, O: Prioritized<T>> $target {
            $(#[$on_priority])*
            #[inline]
            pub fn priority($this: $own, priority: u16) -> PushWith<$own> {
                PushWith::new($this).priority(priority)
            }
        }
    };
}

views! {
    /// Pushes with a time. Each of [`at`](Self::at) and [`after`](Self::after), and [`priority`](Self::priority) of a
    /// [`PriorityQueue`](crate::PriorityQueue), returns a view, which has the others too, and all forms of a push.
    Queue<T, O>: self: &Self;
    /// A view whose pushes have this priority: 0 is the first, 65,535 the last.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.priority(2).push("normal")?;
    /// queue.priority(1).push("urgent")?;
    /// assert_eq!(queue.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    priority
    /// A view whose items are kept back until `at`. A push at a past time is a plain push; a time beyond the clock's range
    /// is clamped.
    ///
    /// A scheduled item counts as [delayed](crate::Stats::delayed), and toward the capacity, and a closed queue is not
    /// drained before its time. Then it goes to the head of a FIFO queue, to its place by priority, or behind the other
    /// items of its key; [`PushWith`] has the details.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// queue.at(clock.now() + Duration::from_secs(1)).push_batch(["one", "other"])?;
    /// assert!(queue.is_empty());
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    at
    /// A view whose items are kept back until `delay` has passed, counted from each push.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.after(Duration::from_millis(1)).push("later")?;
    /// assert_eq!(queue.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    after
    /// A view whose items live for `life` from their push, or from when they are due: then they are not delivered any more, as
    /// those whose [`ttl`](crate::Builder::ttl) is over. [`max_ttl`](crate::Builder::max_ttl) is the longest that an item lives; the clock of the
    /// queue decides. As in other brokers an item that is over leaves the queue when it would be next: behind items that live
    /// longer it takes up room until then.
    ///
    /// By the ageing of priorities ([`age_after`](crate::Builder::age_after)) such an item counts as older: by what it lives less
    /// than others.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let builder = requeue::Queue::builder().max_ttl(Duration::from_secs(60));
    /// let queue = builder.clock(clock.clone()).build();
    /// queue.expires_in(Duration::from_secs(1)).push("soon or never")?;
    /// queue.push("within a minute")?;
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.pop()?, "within a minute");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the queue was built without [`max_ttl`](crate::Builder::max_ttl), or if `life` is zero.
    expires_in
}

views! {
    /// Pushes with a time through a handle.
    Handle<T, O>: self: &mut Self;
    /// A view whose pushes have this priority; see [`PriorityQueue::priority`](crate::PriorityQueue::priority).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut handle = queue.handle();
    /// handle.priority(2).push("normal")?;
    /// handle.priority(1).push("urgent")?;
    /// assert_eq!(handle.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    priority
    /// A view whose items are kept back until `at`; see [`Queue::at`](crate::Queue::at).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().at(queue.now()).push("now")?;
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    at
    /// A view whose items are kept back until `delay` has passed; see [`Queue::after`](crate::Queue::after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::unbounded().handle();
    /// handle.after(Duration::from_millis(1)).push("later")?;
    /// assert_eq!(handle.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    after
    /// A view whose items live for `life`; see [`Queue::expires_in`](crate::Queue::expires_in).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder().max_ttl(Duration::from_secs(60)).build();
    /// queue.handle().expires_in(Duration::from_secs(1)).push("soon or never")?;
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the queue was built without [`max_ttl`](crate::Builder::max_ttl), or if `life` is zero.
    expires_in
}

views! {
    /// Staged pushes with a time. Their tickets are valid once the transaction is committed; a delay is counted from the
    /// push.
    Transaction<'_, T, O>: self: &Self;
    /// A view that stages pushes with this priority; see [`PriorityQueue::priority`](crate::PriorityQueue::priority).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut worker = queue.handle();
    /// worker.push("job")?;
    /// let tx = worker.begin();
    /// let _job = tx.pop()?;
    /// tx.priority(1).push("urgent follow-up")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "urgent follow-up");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    priority
    /// A view that stages pushes of items that are kept back until `at`; see [`Queue::at`](crate::Queue::at).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.at(queue.now()).push("now")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    at
    /// A view that stages pushes of items that are kept back until `delay` has passed; see
    /// [`Queue::after`](crate::Queue::after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::unbounded().handle();
    /// let tx = handle.begin();
    /// tx.after(Duration::from_millis(1)).push_batch(["one", "other"])?;
    /// tx.commit();
    /// assert_eq!(handle.pop_blocking()?, "one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    after
    /// A view that stages pushes of items that live for `life` from the push; see
    /// [`Queue::expires_in`](crate::Queue::expires_in).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::builder().max_ttl(Duration::from_secs(60)).build().handle();
    /// let tx = handle.begin();
    /// tx.expires_in(Duration::from_secs(1)).push("soon or never")?;
    /// tx.commit();
    /// assert_eq!(handle.pop()?, "soon or never");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the queue was built without [`max_ttl`](crate::Builder::max_ttl), if `life` is zero, or if the transaction
    /// [is borrowed](crate::Transaction#borrowing).
    expires_in
}
