//! Pushes with a priority, and at a time: views, and their short forms.

use super::view::PushWith;
use super::PriorityError;
use crate::order::priority::{Prioritized, Ticket};
use crate::{Handle, PushError, Queue, Transaction};
use std::time::{Duration, Instant};

/// Pushes with a priority or a time. Each of [`priority`](Self::priority), [`at`](Self::at) and
/// [`after`](Self::after) returns a view, which has the others too, and all forms of a push.
impl<T: Send, O: Prioritized<T>> Queue<T, O> {
    /// A view whose pushes have this priority, from 1, the first, to 9999, the last.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.priority(2).push("normal")?;
    /// queue.priority(1).push("urgent")?;
    /// assert_eq!(queue.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn priority(&self, priority: u16) -> PushWith<&Self> {
        PushWith::new(self).priority(priority)
    }

    /// A view whose items are kept back until `at`. A past time makes them ready immediately; one beyond the clock's
    /// range is clamped.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().by_priority().clock(clock.clone()).build();
    /// queue.at(clock.now() + Duration::from_secs(1)).push_batch(["one", "other"])?;
    /// assert!(queue.is_empty());
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn at(&self, at: Instant) -> PushWith<&Self> {
        PushWith::new(self).at(at)
    }

    /// A view whose items are kept back until `delay` has passed, counted from each push.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.after(Duration::from_millis(1)).priority(1).push("later")?;
    /// assert_eq!(queue.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn after(&self, delay: Duration) -> PushWith<&Self> {
        PushWith::new(self).after(delay)
    }

    /// Pushes an item with a priority from 1, the first, to 9999, the last, and keeps it back until a time if there
    /// is one: short for [`PriorityQueue::priority`](crate::PriorityQueue::priority) with
    /// [`at`](crate::priority::PushWith::at).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().by_priority().clock(clock.clone()).build();
    /// let soon = clock.now() + Duration::from_secs(1);
    /// queue.push_with(2, None, "normal")?;
    /// queue.push_with(1, Some(soon), "urgent, but not yet")?;
    /// queue.push_with(2, None, "normal too")?;
    ///
    /// assert_eq!(queue.pop()?, "normal");
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.pop()?, "urgent, but not yet");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if the priority is out of range, [`PriorityError::Full`] if the queue is bounded
    /// and had no room at some point during the call, [`PriorityError::Closed`] if it is closed. The item comes back
    /// with the error.
    #[inline]
    pub fn push_with(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        self.priority(priority).not_before(not_before).push(item)
    }

    /// Pushes an item that is kept back until `at`, with the [default priority](Self::DEFAULT_PRIORITY): short for
    /// [`PriorityQueue::at`](crate::PriorityQueue::at).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.push_at(queue.now(), "now")?;
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Queue::push`](crate::Queue::push).
    pub fn push_at(&self, at: Instant, item: T) -> Result<Ticket, PushError<T>> {
        self.at(at).push_at_default_priority(item)
    }

    /// Pushes an item that is kept back until `delay` has passed, with the
    /// [default priority](Self::DEFAULT_PRIORITY): short for [`PriorityQueue::after`](crate::PriorityQueue::after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.push_after(Duration::from_millis(1), "later")?;
    /// assert_eq!(queue.handle().pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Queue::push`](crate::Queue::push).
    pub fn push_after(&self, delay: Duration, item: T) -> Result<Ticket, PushError<T>> {
        self.after(delay).push_at_default_priority(item)
    }
}

/// Pushes with a priority or a time through a handle of a [`PriorityQueue`](crate::PriorityQueue).
impl<T: Send, O: Prioritized<T>> Handle<T, O> {
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
    #[inline]
    pub fn priority(&mut self, priority: u16) -> PushWith<&mut Self> {
        PushWith::new(self).priority(priority)
    }

    /// A view whose items are kept back until `at`; see [`PriorityQueue::at`](crate::PriorityQueue::at).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.handle().at(queue.now()).push("now")?;
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn at(&mut self, at: Instant) -> PushWith<&mut Self> {
        PushWith::new(self).at(at)
    }

    /// A view whose items are kept back until `delay` has passed; see
    /// [`PriorityQueue::after`](crate::PriorityQueue::after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::PriorityQueue::by_priority().handle();
    /// handle.after(Duration::from_millis(1)).priority(1).push("later")?;
    /// assert_eq!(handle.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn after(&mut self, delay: Duration) -> PushWith<&mut Self> {
        PushWith::new(self).after(delay)
    }

    /// Pushes an item with a priority; see [`PriorityQueue::push_with`](crate::PriorityQueue::push_with).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut handle = queue.handle();
    /// handle.push_with(2, None, "normal")?;
    /// handle.push_with(1, None, "urgent")?;
    /// assert_eq!(handle.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`PriorityQueue::push_with`](crate::PriorityQueue::push_with).
    #[inline]
    pub fn push_with(
        &mut self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        self.priority(priority).not_before(not_before).push(item)
    }

    /// Pushes an item that is kept back until `at`; see [`PriorityQueue::push_at`](crate::PriorityQueue::push_at).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.handle().push_at(queue.now(), "now")?;
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::push`].
    pub fn push_at(&mut self, at: Instant, item: T) -> Result<Ticket, PushError<T>> {
        self.at(at).push_at_default_priority(item)
    }

    /// Pushes an item that is kept back until `delay` has passed; see
    /// [`PriorityQueue::push_after`](crate::PriorityQueue::push_after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::PriorityQueue::by_priority().handle();
    /// handle.push_after(Duration::from_millis(1), "later")?;
    /// assert_eq!(handle.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::push`].
    pub fn push_after(&mut self, delay: Duration, item: T) -> Result<Ticket, PushError<T>> {
        self.after(delay).push_at_default_priority(item)
    }
}

/// Staged pushes with a priority or a time, in a transaction of a [`PriorityQueue`](crate::PriorityQueue). Their
/// tickets are valid once the transaction is committed; a delay is counted from the push.
impl<T: Send, O: Prioritized<T>> Transaction<'_, T, O> {
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
    #[inline]
    pub fn priority(&self, priority: u16) -> PushWith<&Self> {
        PushWith::new(self).priority(priority)
    }

    /// A view that stages pushes of items that are kept back until `at`; see
    /// [`PriorityQueue::at`](crate::PriorityQueue::at).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.at(queue.now()).push("now")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn at(&self, at: Instant) -> PushWith<&Self> {
        PushWith::new(self).at(at)
    }

    /// A view that stages pushes of items that are kept back until `delay` has passed; see
    /// [`PriorityQueue::after`](crate::PriorityQueue::after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::PriorityQueue::by_priority().handle();
    /// let tx = handle.begin();
    /// tx.after(Duration::from_millis(1)).push_batch(["one", "other"])?;
    /// tx.commit();
    /// assert_eq!(handle.pop_blocking()?, "one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("schedule", "delay"))]
    #[inline]
    pub fn after(&self, delay: Duration) -> PushWith<&Self> {
        PushWith::new(self).after(delay)
    }

    /// Stages a push with a priority; see [`PriorityQueue::push_with`](crate::PriorityQueue::push_with).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_with(2, None, "normal")?;
    /// tx.push_with(1, None, "urgent")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if the priority is out of range, otherwise as for [`Transaction::push`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[inline]
    #[track_caller]
    pub fn push_with(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        self.priority(priority).not_before(not_before).push(item)
    }

    /// Stages a push of an item that is kept back until `at`; see
    /// [`PriorityQueue::push_at`](crate::PriorityQueue::push_at).
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_at(queue.now(), "now")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::push`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_at(&self, at: Instant, item: T) -> Result<Ticket, PushError<T>> {
        self.at(at).push_at_default_priority(item)
    }

    /// Stages a push of an item that is kept back until `delay` has passed, counted from now; see
    /// [`PriorityQueue::push_after`](crate::PriorityQueue::push_after).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::PriorityQueue::by_priority().handle();
    /// let tx = handle.begin();
    /// tx.push_after(Duration::from_millis(1), "later")?;
    /// tx.commit();
    /// assert_eq!(handle.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::push`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_after(&self, delay: Duration, item: T) -> Result<Ticket, PushError<T>> {
        self.after(delay).push_at_default_priority(item)
    }
}
