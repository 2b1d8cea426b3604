//! Pushes with a priority that wait for room.

use super::wish::Wish;
use super::{OutOfRange, PriorityError};
use crate::core::put::Put;
use crate::core::Local;
use crate::future::{PushAsync, StageAsync};
use crate::order::priority::{ByPriority, Prioritized, Ticket};
use crate::{Handle, Transaction};
use std::fmt;
use std::future::Future;
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// See [`PriorityQueue::push_with`](super::PriorityQueue::push_with).
impl<T: Send, O: Prioritized<T>> Handle<T, O> {
    /// Pushes an item with a priority, and perhaps a time before which it is not to be had, and waits for
    /// room if there is none.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
    /// let mut handle = queue.handle();
    /// handle.push_with_blocking(2, None, "normal")?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| handle.push_with_blocking(1, None, "urgent"));
    ///     assert_eq!(queue.pop(), Ok("normal"));
    /// });
    /// assert_eq!(queue.pop(), Ok("urgent"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if there is no such priority, [`PriorityError::Closed`] if the queue is
    /// closed. The item comes back with the error.
    pub fn push_with_blocking(
        &mut self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        put_waiting(
            self.local(),
            Put::Publish,
            (priority, not_before),
            item,
            None,
        )
    }

    /// As [`Handle::push_with_blocking`], but waits no longer than `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut handle = requeue::Queue::builder().by_priority().capacity(1).build().handle();
    /// handle.push_with(2, None, "normal")?;
    /// let refused = handle.push_with_timeout(1, None, "urgent", Duration::from_millis(1));
    /// assert!(refused.unwrap_err().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::Full`] if the time is over, else as for [`Handle::push_with_blocking`].
    pub fn push_with_timeout(
        &mut self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
        timeout: Duration,
    ) -> Result<Ticket, PriorityError<T>> {
        put_waiting(
            self.local(),
            Put::Publish,
            (priority, not_before),
            item,
            Some(timeout),
        )
    }

    /// A future that pushes the item when there is room. Its output is that of
    /// [`Handle::push_with_blocking`]. Cancel safe: if it is dropped before it is ready, the item is dropped
    /// with it and was not pushed.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
    /// let ticket = queue.handle().push_with_async(1, None, "job").await?;
    /// assert_eq!(queue.cancel(ticket), Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn push_with_async(
        &mut self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> PushWithAsync<'_, T, O> {
        let wish = Wish::new(self.local().shared(), priority, not_before);
        let push = PushAsync::new(self.cell(), item);
        let ticket = Ticket::new();
        PushWithAsync { push, wish, ticket }
    }
}

fn put_waiting<T: Send, O: Prioritized<T>>(
    mut local: impl DerefMut<Target = Local<T, O>>,
    put: Put,
    (priority, not_before): (u16, Option<Instant>),
    item: T,
    timeout: Option<Duration>,
) -> Result<Ticket, PriorityError<T>> {
    let Ok(wish) = Wish::new(local.shared(), priority, not_before) else {
        return Err(PriorityError::OutOfRange(item));
    };
    let ticket = Ticket::new();
    let register = |shared: &_, _: &T| Some(wish.register(ticket, shared));
    Local::put_waiting(&mut local, item, put, timeout, register)?;
    Ok(ticket)
}

/// See [`PriorityQueue::push_with`](super::PriorityQueue::push_with).
impl<T: Send, O: Prioritized<T>> Transaction<'_, T, O> {
    /// Stages a push with a priority, and waits for room if there is none; see
    /// [`Transaction::push_blocking`].
    ///
    /// ```
    /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_with_blocking(1, None, "job")?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if there is no such priority, else as for [`Transaction::push_blocking`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_with_blocking(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> Result<Ticket, PriorityError<T>> {
        put_waiting(self.local(), Put::Stage, (priority, not_before), item, None)
    }

    /// As [`Transaction::push_with_blocking`], but waits no longer than `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
    /// queue.push("first")?;
    /// let mut handle = queue.handle();
    /// let refused = handle.begin().push_with_timeout(1, None, "second", Duration::from_millis(1));
    /// assert!(refused.unwrap_err().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorityError::OutOfRange`] if there is no such priority, else as for [`Transaction::push_timeout`].
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_with_timeout(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
        timeout: Duration,
    ) -> Result<Ticket, PriorityError<T>> {
        put_waiting(
            self.local(),
            Put::Stage,
            (priority, not_before),
            item,
            Some(timeout),
        )
    }

    /// A future that stages a push when there is room. The transaction is lent to it meanwhile. Its output is
    /// that of [`Transaction::push_with_blocking`]. Cancel safe: if it is dropped before it is ready, the item
    /// is dropped with it and was not staged.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// tx.push_with_async(1, None, "job").await?;
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn push_with_async(
        &self,
        priority: u16,
        not_before: Option<Instant>,
        item: T,
    ) -> StageWithAsync<'_, T, O> {
        let local = self.local();
        let wish = Wish::new(local.shared(), priority, not_before);
        let stage = StageAsync::new(local, item);
        let ticket = Ticket::new();
        StageWithAsync {
            stage,
            wish,
            ticket,
        }
    }
}

/// The future of `push_with_async` of a [`Handle`] of a [`PriorityQueue`](super::PriorityQueue).
///
/// # Panics
///
/// When it is polled after it was ready.
#[must_use = "a future does nothing unless it is awaited"]
pub struct PushWithAsync<'h, T: Send, O: Prioritized<T> = ByPriority> {
    push: PushAsync<'h, T, O>,
    wish: Result<Wish, OutOfRange>,
    ticket: Ticket,
}

impl<T: Send, O: Prioritized<T>> Future for PushWithAsync<'_, T, O> {
    type Output = Result<Ticket, PriorityError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { push, wish, ticket } = &mut *self;
        let Ok(wish) = *wish else {
            return Poll::Ready(Err(PriorityError::OutOfRange(push.give_up())));
        };
        let register = |shared: &_, _: &T| Some(wish.register(*ticket, shared));
        let poll = push.poll_as(context, register);
        poll.map(|pushed| Ok(pushed.map(|()| *ticket)?))
    }
}

/// The future of `push_with_async` of a [`Transaction`] of a [`PriorityQueue`](super::PriorityQueue).
///
/// # Panics
///
/// When it is polled after it was ready.
#[must_use = "a future does nothing unless it is awaited"]
pub struct StageWithAsync<'t, T: Send, O: Prioritized<T> = ByPriority> {
    stage: StageAsync<'t, T, O>,
    wish: Result<Wish, OutOfRange>,
    ticket: Ticket,
}

impl<T: Send, O: Prioritized<T>> Future for StageWithAsync<'_, T, O> {
    type Output = Result<Ticket, PriorityError<T>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            stage,
            wish,
            ticket,
        } = &mut *self;
        let Ok(wish) = *wish else {
            return Poll::Ready(Err(PriorityError::OutOfRange(stage.give_up())));
        };
        let register = |shared: &_, _: &T| Some(wish.register(*ticket, shared));
        let poll = stage.poll_as(context, register);
        poll.map(|staged| Ok(staged.map(|()| *ticket)?))
    }
}

impl<T: Send, O: Prioritized<T>> fmt::Debug for PushWithAsync<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushWithAsync").finish_non_exhaustive()
    }
}

impl<T: Send, O: Prioritized<T>> fmt::Debug for StageWithAsync<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageWithAsync").finish_non_exhaustive()
    }
}
