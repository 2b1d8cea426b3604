//! Pushes with a priority, and at a time.

use super::wish::Wish;
use super::{OutOfRange, PriorityError};
use crate::core::put::Put;
use crate::order::priority::{Prioritized, Ticket};
use crate::{Handle, PushError, Queue, Transaction};
use std::time::{Duration, Instant};

impl<T: Send, O: Prioritized<T>> Queue<T, O> {
    /// Pushes an item with a priority from 1, the first, to 9999, the last, and not to be had before a time
    /// if there is one.
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
    /// [`PriorityError::OutOfRange`] if there is no such priority, [`PriorityError::Full`] if the queue is
    /// bounded and had no room at some instant of the call, [`PriorityError::Closed`] if it is closed. The
    /// item comes back with the error.
    pub fn push_with(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        match Wish::new(self.shared(), priority, not_before) {
            Ok(wish) => Ok(self.push_as(wish, item)?),
            Err(OutOfRange) => Err(PriorityError::OutOfRange(item)),
        }
    }

    /// Pushes an item that is not to be had before a time, with the
    /// [default priority](Self::DEFAULT_PRIORITY).
    ///
    /// A time that is over is no hindrance; one that the clock can never say is as late as possible.
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
        self.push_as(Wish::at(self.shared(), at), item)
    }

    /// Pushes an item that is not to be had before `delay` is over, with the
    /// [default priority](Self::DEFAULT_PRIORITY).
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
        self.push_as(Wish::after(self.shared(), delay), item)
    }

    fn push_as(&self, wish: Wish, item: T) -> Result<Ticket, PushError<T>> {
        let (shared, ticket) = (self.shared(), Ticket::new());
        shared.push_as(item, |_| Some(wish.register(ticket, shared)))?;
        Ok(ticket)
    }
}

/// What only handles of a [`PriorityQueue`](crate::PriorityQueue) do.
impl<T: Send, O: Prioritized<T>> Handle<T, O> {
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
    pub fn push_with(
        &mut self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        let shared = self.local().shared();
        match Wish::new(shared, priority, not_before) {
            Ok(wish) => Ok(self.push_as(wish, item)?),
            Err(OutOfRange) => Err(PriorityError::OutOfRange(item)),
        }
    }

    /// Pushes an item that is not to be had before a time; see [`PriorityQueue::push_at`](crate::PriorityQueue::push_at).
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
        let wish = Wish::at(self.local().shared(), at);
        self.push_as(wish, item)
    }

    /// Pushes an item that is not to be had before `delay` is over; see [`PriorityQueue::push_after`](crate::PriorityQueue::push_after).
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
        let wish = Wish::after(self.local().shared(), delay);
        self.push_as(wish, item)
    }

    fn push_as(&mut self, wish: Wish, item: T) -> Result<Ticket, PushError<T>> {
        let ticket = Ticket::new();
        let register = |shared: &_, _: &T| Some(wish.register(ticket, shared));
        self.local().put(item, Put::Publish, register)?;
        Ok(ticket)
    }
}

/// What only transactions of a [`PriorityQueue`](crate::PriorityQueue) do.
impl<T: Send, O: Prioritized<T>> Transaction<'_, T, O> {
    /// Stages a push with a priority; see [`PriorityQueue::push_with`](crate::PriorityQueue::push_with).
    ///
    /// The ticket is of use once the transaction is committed.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let mut worker = queue.handle();
    /// worker.push("job")?;
    /// let tx = worker.begin();
    /// let _job = tx.pop()?;
    /// tx.push_with(1, None, "urgent follow-up")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "urgent follow-up");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if there is no such priority, else as for [`Transaction::push`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_with(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        let wish = Wish::new(self.local().shared(), priority, not_before);
        match wish {
            Ok(wish) => Ok(self.push_as(wish, item)?),
            Err(OutOfRange) => Err(PriorityError::OutOfRange(item)),
        }
    }

    /// Stages a push of an item that is not to be had before a time; see [`PriorityQueue::push_at`](crate::PriorityQueue::push_at).
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
        let wish = Wish::at(self.local().shared(), at);
        self.push_as(wish, item)
    }

    /// Stages a push of an item that is not to be had before `delay` is over, counted from now; see
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
        let wish = Wish::after(self.local().shared(), delay);
        self.push_as(wish, item)
    }

    #[track_caller]
    fn push_as(&self, wish: Wish, item: T) -> Result<Ticket, PushError<T>> {
        let ticket = Ticket::new();
        let register = |shared: &_, _: &T| Some(wish.register(ticket, shared));
        self.local().put(item, Put::Stage, register)?;
        Ok(ticket)
    }
}
